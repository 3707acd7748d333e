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
 * A column is described by eight numbers: its layout, rows, nulls, place of the validity bitmap or -1, and up to four that belong to
 * the layout. The columns inside follow. Places are bytes from the memory's start. fastpq/spark/jvm/batch_layout.py writes them.
 */
final class Vectors {
    static final int NULLS = 0, FIXED = 1, BITS = 2, TEXT = 3, VIEWS = 4, LIST = 5, MAP = 6, STRUCT = 7, MISSING = 8;

    private Vectors() {}

    /**
     * A column, as described; null for a column that the file does not have.
     *
     * @param numbers description, read up to the column's end
     * @param segment the shared memory, which the column keeps mapped; null if the batch has no bytes
     * @param type the column's Spark type
     */
    static ColumnVector read(LongBuffer numbers, SharedMemory segment, DataType type) {
        MemoryVector column = column(numbers, segment, type);
        if (column != null) {
            column.segment = segment;
        }
        return column;
    }

    private static MemoryVector column(LongBuffer numbers, SharedMemory segment, DataType type) {
        long memory = segment == null ? 0 : segment.address;
        int layout = (int) numbers.get();
        int rows = (int) numbers.get();
        int nulls = (int) numbers.get();
        long place = numbers.get();
        long validity = place < 0 ? 0 : memory + place;
        long first = numbers.get(), second = numbers.get();
        numbers.get();    // for layouts to come
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
                return new Lists(type, nulls, validity, memory + first, read(numbers, segment, ((ArrayType) type).elementType()));
            case MAP:
                MapType map = (MapType) type;
                ColumnVector keys = read(numbers, segment, map.keyType());
                return new Maps(type, nulls, validity, memory + first, keys, read(numbers, segment, map.valueType()));
            case STRUCT:
                ColumnVector[] children = new ColumnVector[(int) first];
                for (int i = 0; i < children.length; i++) {
                    children[i] = read(numbers, segment, fieldType(type, i));
                }
                return new Structs(type, nulls, validity, children);
            case MISSING:
                return null;
            default:
                throw FastpqException.unknown("a column of layout " + layout);
        }
    }

    private static DataType fieldType(DataType type, int i) {
        return type instanceof VariantType ? DataTypes.BinaryType : ((StructType) type).fields()[i].dataType();
    }

    /** Nulls alone. */
    private static final class Nulls extends MemoryVector {
        Nulls(DataType type, int rows) {
            super(type, rows, 0);
        }

        @Override
        public boolean isNullAt(int row) {
            return true;
        }
    }

    /** Numbers, dates, times and decimals. Decimals are their digits. */
    private static final class Fixed extends MemoryVector {
        private final long values;
        private final int width;    // bytes of a value

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
    private static final class Bits extends MemoryVector {
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

    /** The base class for text and bytes. */
    private abstract static class Bytes extends MemoryVector {
        Bytes(DataType type, int nulls, long validity) {
            super(type, nulls, validity);
        }

        /** The address where a value begins. */
        abstract long start(int row);

        /** A value's size in bytes. */
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

    /** Lists, by their elements' offsets. */
    private static final class Lists extends MemoryVector {
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

    /** Maps, by the offsets for their keys and values. */
    private static final class Maps extends MemoryVector {
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

    /** Structs, with a column for each field. A variant is a struct with value and metadata. */
    private static final class Structs extends MemoryVector {
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
}
