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
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimeType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.VariantType;
import org.apache.spark.unsafe.Platform;

/**
 * Values of rows gathered into a column; the layouts and their descriptions are those of Vectors.
 *
 * Decimals are their digits: in 4 bytes up to 9 of them, in 8 up to 18, else in 16. The bitmap of validity begins at the first null.
 */
abstract class Gatherer {
    /** Whether values of a type can be gathered. */
    static boolean canTake(DataType type) {
        if (type instanceof StructType) {
            for (StructField field : ((StructType) type).fields()) {
                if (!canTake(field.dataType())) {
                    return false;
                }
            }
            return true;
        }
        if (type instanceof ArrayType) {
            return canTake(((ArrayType) type).elementType());
        }
        if (type instanceof MapType) {
            return canTake(((MapType) type).keyType()) && canTake(((MapType) type).valueType());
        }
        return type instanceof NullType || type instanceof BooleanType || type instanceof DecimalType || width(type) > 0
            || type instanceof StringType || type instanceof BinaryType || type instanceof VariantType;
    }

    /** Bytes of a value of fixed width; 0 for other types, decimals too. */
    private static int width(DataType type) {
        if (type instanceof ByteType) {
            return 1;
        }
        if (type instanceof ShortType) {
            return 2;
        }
        if (type instanceof IntegerType || type instanceof DateType || type instanceof FloatType) {
            return 4;
        }
        return type instanceof LongType || type instanceof DoubleType || type instanceof TimestampType
            || type instanceof TimestampNTZType || type instanceof TimeType || type instanceof DayTimeIntervalType ? 8 : 0;
    }

    static Gatherer of(DataType type) {
        if (type instanceof NullType) {
            return new Gatherers.Nulls();
        }
        if (type instanceof BooleanType) {
            return new Gatherers.Bits();
        }
        if (type instanceof DecimalType) {
            return new Gatherers.Decimals((DecimalType) type);
        }
        if (type instanceof StringType) {
            return new Gatherers.Text();
        }
        if (type instanceof BinaryType) {
            return new Gatherers.Binary();
        }
        if (type instanceof VariantType) {
            return new Gatherers.Variants();
        }
        if (type instanceof ArrayType) {
            return new Gatherers.Lists(of(((ArrayType) type).elementType()));
        }
        if (type instanceof MapType) {
            return new Gatherers.Maps(of(((MapType) type).keyType()), of(((MapType) type).valueType()));
        }
        if (type instanceof StructType) {
            return new Gatherers.Structs((StructType) type);
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
    private final List<Growing> buffers = new ArrayList<>();
    private final Growing validity = buffer();
    int rows = 0;
    private int nulls = 0;

    /**
     * A column without rows.
     *
     * @param layout one of Vectors' layouts
     * @param inside the columns inside, in the order of their descriptions
     */
    Gatherer(int layout, Gatherer... inside) {
        this.layout = layout;
        this.inside = inside;
    }

    /** A buffer more of this column. */
    final Growing buffer() {
        Growing buffer = new Growing();
        buffers.add(buffer);
        return buffer;
    }

    /** Takes the value at a place of a row, or an element of an array. */
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

    /** Adds the numbers of the layout, up to four. */
    abstract void describe(Description description);

    final void describeAll(Description description) {
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
        for (Growing buffer : buffers) {
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
        buffers.forEach(Growing::clear);
        for (Gatherer column : inside) {
            column.clear();
        }
    }

    final void close() {
        buffers.forEach(Growing::close);
        for (Gatherer column : inside) {
            column.close();
        }
    }
}
