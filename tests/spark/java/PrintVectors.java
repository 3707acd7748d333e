package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.nio.LongBuffer;
import java.util.HexFormat;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.sql.vectorized.ColumnarMap;

/** Prints the layouts' numbers, and then the rows of a batch that Python has laid out (tests/spark/test_vectors.py). */
public final class PrintVectors {
    private PrintVectors() {}

    public static void main(String[] arguments) throws Exception {
        JsonNode batch = new ObjectMapper().readTree(new File(arguments[0]));
        System.out.println(String.join(" ", text(Vectors.NULLS), text(Vectors.FIXED), text(Vectors.BITS), text(Vectors.TEXT),
            text(Vectors.VIEWS), text(Vectors.LIST), text(Vectors.MAP), text(Vectors.STRUCT), text(Vectors.MISSING)));
        StructType schema = (StructType) DataType.fromJson(batch.get("schema").asText());
        LongBuffer numbers = LongBuffer.allocate(batch.get("numbers").size());
        batch.get("numbers").forEach(number -> numbers.put(number.asLong()));
        numbers.flip();
        SharedMemory segment = SharedMemory.of(batch.get("segment"), false);
        int rows = batch.get("rows").asInt();
        for (int i = 0; i < schema.size(); i++) {
            ColumnVector column = Vectors.read(numbers, segment, schema.apply(i).dataType());
            if (column == null) {
                System.out.println("missing");
                continue;
            }
            ColumnarBatch single = new ColumnarBatch(new ColumnVector[] {column}, rows);
            StringBuilder line = new StringBuilder(column.numNulls() + " " + column.hasNull() + ":");
            for (int row = 0; row < rows; row++) {
                line.append(' ').append(text(schema.apply(i).dataType(), single.getRow(row), 0));
            }
            System.out.println(line);
        }
        if (numbers.hasRemaining()) {
            throw new IllegalStateException(numbers.remaining() + " numbers are left");
        }
    }

    private static String text(int number) {
        return Integer.toString(number);
    }

    private static String text(DataType type, SpecializedGetters values, int i) {
        if (values.isNullAt(i)) {
            return "null";
        }
        if (type instanceof BooleanType) {
            return Boolean.toString(values.getBoolean(i));
        } else if (type instanceof ByteType) {
            return text(values.getByte(i));
        } else if (type instanceof ShortType) {
            return text(values.getShort(i));
        } else if (type instanceof IntegerType || type instanceof DateType) {
            return text(values.getInt(i));
        } else if (type instanceof FloatType) {
            return Integer.toHexString(Float.floatToRawIntBits(values.getFloat(i)));
        } else if (type instanceof DoubleType) {
            return Long.toHexString(Double.doubleToRawLongBits(values.getDouble(i)));
        } else if (type instanceof DecimalType decimal) {
            return values.getDecimal(i, decimal.precision(), decimal.scale()).toJavaBigDecimal().toPlainString();
        } else if (type instanceof StringType) {
            return hex(values.getUTF8String(i).getBytes());
        } else if (type instanceof BinaryType) {
            return hex(values.getBinary(i));
        } else if (type instanceof VariantType) {
            return hex(values.getVariant(i).getValue()) + "/" + hex(values.getVariant(i).getMetadata());
        } else if (type instanceof ArrayType array) {
            return list(array.elementType(), values.getArray(i), values.getArray(i).numElements());
        } else if (type instanceof MapType map) {
            ColumnarMap entries = (ColumnarMap) values.getMap(i);
            return list(map.keyType(), entries.keyArray(), entries.numElements()) + "->"
                + list(map.valueType(), entries.valueArray(), entries.numElements());
        } else if (type instanceof StructType struct) {
            StringBuilder fields = new StringBuilder("(");
            for (int field = 0; field < struct.size(); field++) {
                fields.append(text(struct.apply(field).dataType(), values.getStruct(i, struct.size()), field)).append(';');
            }
            return fields.append(')').toString();
        }
        return Long.toString(values.getLong(i));
    }

    private static String list(DataType type, SpecializedGetters elements, int count) {
        StringBuilder list = new StringBuilder("[");
        for (int i = 0; i < count; i++) {
            list.append(text(type, elements, i)).append(';');
        }
        return list.append(']').toString();
    }

    private static String hex(byte[] bytes) {
        return "x" + HexFormat.of().formatHex(bytes);
    }
}
