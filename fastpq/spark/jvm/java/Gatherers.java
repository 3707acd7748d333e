package io.fastpq.spark;

import java.math.BigInteger;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/** The columns that rows are gathered into, one class for each layout. */
final class Gatherers {
    private Gatherers() {}

    static final class NullGatherer extends Gatherer {
        NullGatherer() {
            super(Vectors.NULLS);
        }

        @Override
        void take(SpecializedGetters row, int place) {
            throw new IllegalStateException("a value in a column of type void");
        }

        @Override
        void skip() {}

        @Override
        void describe(ColumnsDescription description) {
            description.pad(0);
        }
    }

    /** Columns with one buffer for their values. */
    private abstract static class ValueGatherer extends Gatherer {
        final GrowingMemory values = buffer();
        private final int width;

        ValueGatherer(int layout, int width) {
            super(layout);
            this.width = width;
        }

        @Override
        void skip() {
            Platform.setMemory(values.extend(width), (byte) 0, width);
        }

        @Override
        void describe(ColumnsDescription description) {
            description.place(values);
            description.number(width);
            description.pad(2);
        }
    }

    static final class Int8 extends ValueGatherer {
        Int8() {
            super(Vectors.FIXED, 1);
        }

        @Override
        void take(SpecializedGetters row, int place) {
            Platform.putByte(null, values.extend(1), row.getByte(place));
        }
    }

    static final class Int16 extends ValueGatherer {
        Int16() {
            super(Vectors.FIXED, 2);
        }

        @Override
        void take(SpecializedGetters row, int place) {
            Platform.putShort(null, values.extend(2), row.getShort(place));
        }
    }

    /** Integers, dates and floats. A float is taken as the integer with the same bits. */
    static final class Int32 extends ValueGatherer {
        private final boolean isFloat;

        Int32(boolean isFloat) {
            super(Vectors.FIXED, 4);
            this.isFloat = isFloat;
        }

        @Override
        void take(SpecializedGetters row, int place) {
            int bits = isFloat ? Float.floatToRawIntBits(row.getFloat(place)) : row.getInt(place);
            Platform.putInt(null, values.extend(4), bits);
        }
    }

    static final class Int64 extends ValueGatherer {
        private final boolean isDouble;

        Int64(boolean isDouble) {
            super(Vectors.FIXED, 8);
            this.isDouble = isDouble;
        }

        @Override
        void take(SpecializedGetters row, int place) {
            long bits = isDouble ? Double.doubleToRawLongBits(row.getDouble(place)) : row.getLong(place);
            Platform.putLong(null, values.extend(8), bits);
        }
    }

    /** Booleans, a bit each. */
    static final class BitGatherer extends Gatherer {
        private final GrowingMemory values = buffer();

        BitGatherer() {
            super(Vectors.BITS);
        }

        @Override
        void take(SpecializedGetters row, int place) {
            add(row.getBoolean(place) ? 1 : 0);
        }

        @Override
        void skip() {
            add(0);
        }

        private void add(int bit) {
            if ((rows & 7) == 0) {
                Platform.putByte(null, values.extend(1), (byte) bit);
            } else {
                long at = values.at(rows >> 3);
                Platform.putByte(null, at, (byte) (Platform.getByte(null, at) | bit << (rows & 7)));
            }
        }

        @Override
        void describe(ColumnsDescription description) {
            description.place(values);
            description.pad(1);
        }
    }

    static final class DecimalGatherer extends ValueGatherer {
        private final int width, precision, scale;

        DecimalGatherer(DecimalType type) {
            super(Vectors.FIXED, width(type.precision()));
            width = width(type.precision());
            precision = type.precision();
            scale = type.scale();
        }

        private static int width(int precision) {
            return precision <= Decimal.MAX_INT_DIGITS() ? 4 : precision <= Decimal.MAX_LONG_DIGITS() ? 8 : 16;
        }

        @Override
        void take(SpecializedGetters row, int place) {
            Decimal value = row.getDecimal(place, precision, scale);
            if (width == 4) {
                Platform.putInt(null, values.extend(4), (int) value.toUnscaledLong());
            } else if (width == 8) {
                Platform.putLong(null, values.extend(8), value.toUnscaledLong());
            } else {
                BigInteger digits = value.toJavaBigDecimal().unscaledValue();
                long at = values.extend(16);
                Platform.putLong(null, at, digits.longValue());
                Platform.putLong(null, at + 8, digits.shiftRight(64).longValue());
            }
        }
    }

    /** Columns with offsets (int32), which begin with 0. */
    private abstract static class OffsetGatherer extends Gatherer {
        private final GrowingMemory offsets = buffer();

        OffsetGatherer(int layout, Gatherer... children) {
            super(layout, children);
        }

        /** Ends the present row's value. */
        final void end(long at) {
            if (at > Integer.MAX_VALUE) {
                throw new IllegalStateException("more than 2 GiB, or 2^31 elements, in a batch of rows");
            }
            if (offsets.size() == 0) {
                Platform.putInt(null, offsets.extend(4), 0);
            }
            Platform.putInt(null, offsets.extend(4), (int) at);
        }

        @Override
        void describe(ColumnsDescription description) {
            if (offsets.size() == 0) {
                Platform.putInt(null, offsets.extend(4), 0);
            }
            description.place(offsets);
        }
    }

    static class TextGatherer extends OffsetGatherer {
        private final GrowingMemory values = buffer();

        TextGatherer() {
            super(Vectors.TEXT);
        }

        @Override
        void take(SpecializedGetters row, int place) {
            UTF8String text = row.getUTF8String(place);
            add(text.getBaseObject(), text.getBaseOffset(), text.numBytes());
        }

        final void add(Object base, long offset, int count) {
            Platform.copyMemory(base, offset, null, values.extend(count), count);
            end(values.size());
        }

        @Override
        void skip() {
            end(values.size());
        }

        @Override
        void describe(ColumnsDescription description) {
            super.describe(description);
            description.place(values);
            description.pad(2);
        }
    }

    static final class BinaryGatherer extends TextGatherer {
        @Override
        void take(SpecializedGetters row, int place) {
            add(row.getBinary(place));
        }

        private void add(byte[] bytes) {
            add(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length);
        }

        /** Takes bytes that come from no row. */
        void appendBytes(byte[] bytes) {
            add(bytes);
            taken();
        }
    }

    static final class ListGatherer extends OffsetGatherer {
        private final Gatherer elements;

        ListGatherer(Gatherer elements) {
            super(Vectors.LIST, elements);
            this.elements = elements;
        }

        @Override
        void take(SpecializedGetters row, int place) {
            ArrayData list = row.getArray(place);
            int count = list.numElements();
            for (int i = 0; i < count; i++) {
                elements.append(list, i);
            }
            end(elements.rows);
        }

        @Override
        void skip() {
            end(elements.rows);
        }

        @Override
        void describe(ColumnsDescription description) {
            super.describe(description);
            description.pad(1);
        }
    }

    static final class MapGatherer extends OffsetGatherer {
        private final Gatherer keys, values;

        MapGatherer(Gatherer keys, Gatherer values) {
            super(Vectors.MAP, keys, values);
            this.keys = keys;
            this.values = values;
        }

        @Override
        void take(SpecializedGetters row, int place) {
            MapData map = row.getMap(place);
            ArrayData ofKeys = map.keyArray(), ofValues = map.valueArray();
            int count = map.numElements();
            for (int i = 0; i < count; i++) {
                keys.append(ofKeys, i);
                values.append(ofValues, i);
            }
            end(keys.rows);
        }

        @Override
        void skip() {
            end(keys.rows);
        }

        @Override
        void describe(ColumnsDescription description) {
            super.describe(description);
            description.pad(1);
        }
    }

    /** Structs, a column for each field; below a null each field has a null. */
    static class StructGatherer extends Gatherer {
        final Gatherer[] children;

        StructGatherer(StructType type) {
            this(new Gatherer[type.fields().length]);
            for (int i = 0; i < children.length; i++) {
                children[i] = of(type.fields()[i].dataType());
            }
        }

        StructGatherer(Gatherer[] children) {
            super(Vectors.STRUCT, children);
            this.children = children;
        }

        @Override
        void take(SpecializedGetters row, int place) {
            InternalRow struct = row.getStruct(place, children.length);
            for (int i = 0; i < children.length; i++) {
                children[i].append(struct, i);
            }
        }

        @Override
        void skip() {
            for (Gatherer child : children) {
                child.appendNull();
            }
        }

        @Override
        void describe(ColumnsDescription description) {
            description.number(children.length);
            description.pad(1);
        }
    }

    /** Variants: structs with value and metadata. */
    static final class VariantGatherer extends StructGatherer {
        VariantGatherer() {
            super(new Gatherer[] {new BinaryGatherer(), new BinaryGatherer()});
        }

        @Override
        void take(SpecializedGetters row, int place) {
            VariantVal variant = row.getVariant(place);
            ((BinaryGatherer) children[0]).appendBytes(variant.getValue());
            ((BinaryGatherer) children[1]).appendBytes(variant.getMetadata());
        }
    }
}
