package io.fastpq.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.VariantType;
import org.apache.spark.sql.types.YearMonthIntervalType;
import org.apache.spark.unsafe.Platform;

/**
 * One column's values, gathered from rows. Vectors has the same layouts and descriptions.
 *
 * Decimals are their digits: up to 9 digits in 4 bytes, up to 18 in 8, else in 16. The validity bitmap begins at the first null.
 */
abstract class Gatherer {
    /** Bytes for a value whose type has a fixed width. 0 for other types, and for decimals. */
    private static int width(DataType type) {
        if (type instanceof ByteType) {
            return 1;
        }
        if (type instanceof ShortType) {
            return 2;
        }
        if (type instanceof IntegerType || type instanceof DateType || type instanceof FloatType
            || type instanceof YearMonthIntervalType) {
            return 4;
        }
        return type instanceof LongType || type instanceof DoubleType || type instanceof TimestampType
                || type instanceof TimestampNTZType || isTime(type) || type instanceof DayTimeIntervalType
            ? 8
            : 0;
    }

    /** Whether a type is TIME, whose class Spark 4.0 lacks. */
    private static boolean isTime(DataType type) {
        return type.typeName().startsWith("time(");
    }

    static Gatherer of(DataType type) {
        if (type instanceof NullType) {
            return new Gatherers.NullGatherer();
        }
        if (type instanceof BooleanType) {
            return new Gatherers.BitGatherer();
        }
        if (type instanceof DecimalType) {
            return new Gatherers.DecimalGatherer((DecimalType) type);
        }
        if (type instanceof StringType) {
            return new Gatherers.TextGatherer();
        }
        if (type instanceof BinaryType) {
            return new Gatherers.BinaryGatherer();
        }
        if (type instanceof VariantType) {
            return new Gatherers.VariantGatherer();
        }
        if (type instanceof ArrayType) {
            return new Gatherers.ListGatherer(of(((ArrayType) type).elementType()));
        }
        if (type instanceof MapType) {
            return new Gatherers.MapGatherer(of(((MapType) type).keyType()), of(((MapType) type).valueType()));
        }
        if (type instanceof StructType) {
            return new Gatherers.StructGatherer((StructType) type);
        }
        switch (width(type)) {
            case 1:
                return new Gatherers.Int8();
            case 2:
                return new Gatherers.Int16();
            case 4:
                return new Gatherers.Int32(type instanceof FloatType);
            case 8:
                return new Gatherers.Int64(type instanceof DoubleType);
            default:
                throw new IllegalArgumentException("values of " + type.sql());
        }
    }

    private final int layout;
    private final Gatherer[] inside;
    private final List<GrowingMemory> buffers = new ArrayList<>();
    private final GrowingMemory validity = buffer();
    int rows = 0;
    private int nulls = 0;

    /**
     * A column without rows.
     *
     * @param layout one of Vectors' layouts
     * @param inside the columns inside, in their descriptions' order
     */
    Gatherer(int layout, Gatherer... inside) {
        this.layout = layout;
        this.inside = inside;
    }

    /** A further buffer for this column. */
    final GrowingMemory buffer() {
        GrowingMemory buffer = new GrowingMemory();
        buffers.add(buffer);
        return buffer;
    }

    /** Takes the value at a place in a row, or an element in an array. */
    final void append(SpecializedGetters row, int place) {
        if (row.isNullAt(place)) {
            appendNull();
        } else {
            take(row, place);
            taken();
        }
    }

    /** Counts a value that was added. */
    final void taken() {
        if (nulls > 0) {
            mark(true);
        }
        rows++;
    }

    final void appendNull() {
        if (nulls == 0 && layout != Vectors.NULLS) {
            for (int row = 0; row < rows; row += 8) {
                Platform.putByte(null, validity.extend(1), (byte) (rows - row >= 8 ? 0xff : (1 << (rows - row)) - 1));
            }
        }
        skip();
        nulls++;
        if (layout != Vectors.NULLS) {
            mark(false);
        }
        rows++;
    }

    private void mark(boolean isValid) {
        if ((rows & 7) == 0) {
            Platform.putByte(null, validity.extend(1), (byte) (isValid ? 1 : 0));
        } else if (isValid) {
            long place = validity.at(rows >> 3);
            Platform.putByte(null, place, (byte) (Platform.getByte(null, place) | 1 << (rows & 7)));
        }
    }

    /** Adds a value that is not null. */
    abstract void take(SpecializedGetters row, int place);

    /** Adds a value that stands below a null. */
    abstract void skip();

    /** Adds the layout's numbers, up to four. */
    abstract void describe(ColumnsDescription description);

    final void describeAll(ColumnsDescription description) {
        description.number(layout);
        description.number(rows);
        description.number(nulls);
        if (nulls > 0 && layout != Vectors.NULLS) {
            description.place(validity);
        } else {
            description.number(-1);
        }
        describe(description);
        for (Gatherer column : inside) {
            column.describeAll(description);
        }
    }

    /** Bytes gathered. */
    final long bytes() {
        long bytes = 0;
        for (GrowingMemory buffer : buffers) {
            bytes += buffer.size();
        }
        for (Gatherer column : inside) {
            bytes += column.bytes();
        }
        return bytes;
    }

    final void clear() {
        rows = 0;
        nulls = 0;
        buffers.forEach(GrowingMemory::clear);
        for (Gatherer column : inside) {
            column.clear();
        }
    }

    final void close() {
        buffers.forEach(GrowingMemory::close);
        for (Gatherer column : inside) {
            column.close();
        }
    }
}
