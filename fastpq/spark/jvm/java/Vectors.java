package io.fastpq.spark;

import java.math.BigInteger;
import java.nio.LongBuffer;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Columns over shared memory, one class for each layout.
 *
 * A column is described by eight numbers: its layout, rows, nulls, place of the validity bitmap or -1, and up to four of the
 * layout; the columns inside follow. Places are bytes from the start of the memory. fastpq/spark/jvm/layout.py writes them.
 */
final class Vectors {
    static final int NULLS = 0, FIXED = 1, BITS = 2, TEXT = 3, VIEWS = 4, LIST = 5, MAP = 6, STRUCT = 7, CONSTANT = 8;

    private Vectors() {}

    /**
     * A column, as described.
     *
     * @param numbers description, read up to the end of the column
     * @param memory address of the shared memory
     * @param type Spark type of the column
     */
    static ColumnVector read(LongBuffer numbers, long memory, DataType type) {
        int layout = (int) numbers.get();
        int rows = (int) numbers.get();
        int nulls = (int) numbers.get();
        long place = numbers.get();
        long validity = place < 0 ? 0 : memory + place;
        long first = numbers.get(), second = numbers.get();
        numbers.get();      // for layouts to come
        numbers.get();
        switch (layout) {
            case NULLS:
                return new Nulls(type, rows);
            case FIXED:
                return new Fixed(type, nulls, validity, memory + first, (int) second);
            case BITS:
                return new Bits(type, nulls, validity, memory + first);
            case TEXT:
                return new Text(type, nulls, validity, memory + first, memory + second);
            case VIEWS:
                long[] buffers = new long[(int) second];
                for (int i = 0; i < buffers.length; i++) {
                    buffers[i] = memory + numbers.get();
                }
                return new Views(type, nulls, validity, memory + first, buffers);
            case LIST:
                return new Lists(type, nulls, validity, memory + first, read(numbers, memory, ((ArrayType) type).elementType()));
            case MAP:
                MapType map = (MapType) type;
                ColumnVector keys = read(numbers, memory, map.keyType());
                return new Maps(type, nulls, validity, memory + first, keys, read(numbers, memory, map.valueType()));
            case STRUCT:
                ColumnVector[] children = new ColumnVector[(int) first];
                for (int i = 0; i < children.length; i++) {
                    children[i] = read(numbers, memory, fieldType(type, i));
                }
                return new Structs(type, nulls, validity, children);
            case CONSTANT:
                return new Constant(type, rows, read(numbers, memory, type));
            default:
                throw new IllegalStateException("a column of layout " + layout + ": the jar and fastpq are of different versions");
        }
    }

    private static DataType fieldType(DataType type, int i) {
        return type instanceof VariantType ? DataTypes.BinaryType : ((StructType) type).fields()[i].dataType();
    }

    /** The base of all: nulls, and refusal of values of other types. */
    private abstract static class Vector extends ColumnVector {
        private final int nulls;
        private final long validity;        // address of the bitmap; 0 without nulls

        Vector(DataType type, int nulls, long validity) {
            super(type);
            this.nulls = nulls;
            this.validity = nulls == 0 ? 0 : validity;
        }

        @Override
        public void close() {}      // the memory belongs to the reader

        @Override
        public boolean hasNull() {
            return nulls > 0;
        }

        @Override
        public int numNulls() {
            return nulls;
        }

        @Override
        public boolean isNullAt(int row) {
            return validity != 0 && (Platform.getByte(null, validity + (row >> 3)) >> (row & 7) & 1) == 0;
        }

        UnsupportedOperationException other() {
            return new UnsupportedOperationException(getClass().getSimpleName() + " of " + dataType().sql());
        }

        @Override
        public boolean getBoolean(int row) {
            throw other();
        }

        @Override
        public byte getByte(int row) {
            throw other();
        }

        @Override
        public short getShort(int row) {
            throw other();
        }

        @Override
        public int getInt(int row) {
            throw other();
        }

        @Override
        public long getLong(int row) {
            throw other();
        }

        @Override
        public float getFloat(int row) {
            throw other();
        }

        @Override
        public double getDouble(int row) {
            throw other();
        }

        @Override
        public ColumnarArray getArray(int row) {
            throw other();
        }

        @Override
        public ColumnarMap getMap(int row) {
            throw other();
        }

        @Override
        public Decimal getDecimal(int row, int precision, int scale) {
            throw other();
        }

        @Override
        public UTF8String getUTF8String(int row) {
            throw other();
        }

        @Override
        public byte[] getBinary(int row) {
            throw other();
        }

        @Override
        public ColumnVector getChild(int ordinal) {
            throw other();
        }
    }

    /** Nulls alone. */
    private static final class Nulls extends Vector {
        Nulls(DataType type, int rows) {
            super(type, rows, 0);
        }

        @Override
        public boolean isNullAt(int row) {
            return true;
        }
    }

    /** Numbers, dates, times and decimals; decimals by their digits. */
    private static final class Fixed extends Vector {
        private final long values;
        private final int width;        // bytes of a value

        Fixed(DataType type, int nulls, long validity, long values, int width) {
            super(type, nulls, validity);
            this.values = values;
            this.width = width;
        }

        @Override
        public boolean getBoolean(int row) {
            return Platform.getByte(null, values + row) != 0;
        }

        @Override
        public byte getByte(int row) {
            return Platform.getByte(null, values + row);
        }

        @Override
        public short getShort(int row) {
            return Platform.getShort(null, values + 2L * row);
        }

        @Override
        public int getInt(int row) {
            return Platform.getInt(null, values + 4L * row);
        }

        @Override
        public long getLong(int row) {
            return Platform.getLong(null, values + 8L * row);
        }

        @Override
        public float getFloat(int row) {
            return Platform.getFloat(null, values + 4L * row);
        }

        @Override
        public double getDouble(int row) {
            return Platform.getDouble(null, values + 8L * row);
        }

        @Override
        public Decimal getDecimal(int row, int precision, int scale) {
            if (isNullAt(row)) {
                return null;
            }
            if (width == 8) {
                return Decimal.createUnsafe(getLong(row), precision, scale);
            }
            if (width == 4) {
                return Decimal.createUnsafe(getInt(row), precision, scale);
            }
            long low = Platform.getLong(null, values + 16L * row);
            if (precision <= Decimal.MAX_LONG_DIGITS()) {
                return Decimal.createUnsafe(low, precision, scale);
            }
            long high = Platform.getLong(null, values + 16L * row + 8);
            BigInteger digits = BigInteger.valueOf(high).shiftLeft(64).add(new BigInteger(Long.toUnsignedString(low)));
            return Decimal.apply(new java.math.BigDecimal(digits, scale), precision, scale);
        }
    }

    /** Booleans, a bit each. */
    private static final class Bits extends Vector {
        private final long values;

        Bits(DataType type, int nulls, long validity, long values) {
            super(type, nulls, validity);
            this.values = values;
        }

        @Override
        public boolean getBoolean(int row) {
            return (Platform.getByte(null, values + (row >> 3)) >> (row & 7) & 1) != 0;
        }
    }

    /** The base of text and bytes. */
    private abstract static class Bytes extends Vector {
        Bytes(DataType type, int nulls, long validity) {
            super(type, nulls, validity);
        }

        /** Address of the first byte of a value. */
        abstract long start(int row);

        /** Number of bytes of a value. */
        abstract int size(int row);

        @Override
        public UTF8String getUTF8String(int row) {
            return isNullAt(row) ? null : UTF8String.fromAddress(null, start(row), size(row));
        }

        @Override
        public byte[] getBinary(int row) {
            if (isNullAt(row)) {
                return null;
            }
            byte[] copy = new byte[size(row)];
            Platform.copyMemory(null, start(row), copy, Platform.BYTE_ARRAY_OFFSET, copy.length);
            return copy;
        }
    }

    /** Text and bytes, by offsets. */
    private static final class Text extends Bytes {
        private final long offsets, bytes;

        Text(DataType type, int nulls, long validity, long offsets, long bytes) {
            super(type, nulls, validity);
            this.offsets = offsets;
            this.bytes = bytes;
        }

        @Override
        long start(int row) {
            return bytes + Platform.getInt(null, offsets + 4L * row);
        }

        @Override
        int size(int row) {
            return Platform.getInt(null, offsets + 4L * row + 4) - Platform.getInt(null, offsets + 4L * row);
        }
    }

    /** Text and bytes, by views: the size, then up to 12 bytes, or 4 bytes, number of the buffer and offset there. */
    private static final class Views extends Bytes {
        private static final int INLINE = 12;
        private final long views;
        private final long[] buffers;

        Views(DataType type, int nulls, long validity, long views, long[] buffers) {
            super(type, nulls, validity);
            this.views = views;
            this.buffers = buffers;
        }

        @Override
        long start(int row) {
            long view = views + 16L * row;
            if (Platform.getInt(null, view) <= INLINE) {
                return view + 4;
            }
            return buffers[Platform.getInt(null, view + 8)] + Platform.getInt(null, view + 12);
        }

        @Override
        int size(int row) {
            return Platform.getInt(null, views + 16L * row);
        }
    }

    /** Lists, by offsets of their elements. */
    private static final class Lists extends Vector {
        private final long offsets;
        private final ColumnVector elements;

        Lists(DataType type, int nulls, long validity, long offsets, ColumnVector elements) {
            super(type, nulls, validity);
            this.offsets = offsets;
            this.elements = elements;
        }

        @Override
        public ColumnarArray getArray(int row) {
            if (isNullAt(row)) {
                return null;
            }
            int start = Platform.getInt(null, offsets + 4L * row);
            return new ColumnarArray(elements, start, Platform.getInt(null, offsets + 4L * row + 4) - start);
        }

        @Override
        public ColumnVector getChild(int ordinal) {
            return elements;
        }
    }

    /** Maps, by offsets of their keys and values. */
    private static final class Maps extends Vector {
        private final long offsets;
        private final ColumnVector keys, values;

        Maps(DataType type, int nulls, long validity, long offsets, ColumnVector keys, ColumnVector values) {
            super(type, nulls, validity);
            this.offsets = offsets;
            this.keys = keys;
            this.values = values;
        }

        @Override
        public ColumnarMap getMap(int row) {
            if (isNullAt(row)) {
                return null;
            }
            int start = Platform.getInt(null, offsets + 4L * row);
            return new ColumnarMap(keys, values, start, Platform.getInt(null, offsets + 4L * row + 4) - start);
        }

        @Override
        public ColumnVector getChild(int ordinal) {
            return ordinal == 0 ? keys : values;
        }
    }

    /** Structs, a column for each field; a variant is a struct of value and metadata. */
    private static final class Structs extends Vector {
        private final ColumnVector[] children;

        Structs(DataType type, int nulls, long validity, ColumnVector[] children) {
            super(type, nulls, validity);
            this.children = children;
        }

        @Override
        public ColumnVector getChild(int ordinal) {
            return children[ordinal];
        }
    }

    /** One value in every row. */
    private static final class Constant extends Vector {
        private final ColumnVector value;

        Constant(DataType type, int rows, ColumnVector value) {
            super(type, value.isNullAt(0) ? rows : 0, 0);
            this.value = value;
        }

        @Override
        public boolean isNullAt(int row) {
            return value.isNullAt(0);
        }

        @Override
        public boolean getBoolean(int row) {
            return value.getBoolean(0);
        }

        @Override
        public byte getByte(int row) {
            return value.getByte(0);
        }

        @Override
        public short getShort(int row) {
            return value.getShort(0);
        }

        @Override
        public int getInt(int row) {
            return value.getInt(0);
        }

        @Override
        public long getLong(int row) {
            return value.getLong(0);
        }

        @Override
        public float getFloat(int row) {
            return value.getFloat(0);
        }

        @Override
        public double getDouble(int row) {
            return value.getDouble(0);
        }

        @Override
        public Decimal getDecimal(int row, int precision, int scale) {
            return value.getDecimal(0, precision, scale);
        }

        @Override
        public UTF8String getUTF8String(int row) {
            return value.getUTF8String(0);
        }

        @Override
        public byte[] getBinary(int row) {
            return value.getBinary(0);
        }
    }
}
