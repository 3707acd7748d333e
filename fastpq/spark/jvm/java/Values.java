package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Base64;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;

/** Values that planning answers, as Spark holds them in rows: whole numbers, and bits of others, are text, bytes are in base64. */
final class Values {
    private Values() {}

    /** A value of a type; null for null. */
    static Object of(JsonNode value, DataType type) {
        if (value == null || value.isNull()) {
            return null;
        }
        if (type instanceof BooleanType) {
            return value.booleanValue();
        }
        if (type instanceof StringType) {
            return UTF8String.fromBytes(Base64.getDecoder().decode(value.asText()));
        }
        if (type instanceof BinaryType) {
            return Base64.getDecoder().decode(value.asText());
        }
        if (type instanceof DecimalType) {
            DecimalType decimal = (DecimalType) type;
            BigDecimal number = new BigDecimal(new BigInteger(value.asText()), decimal.scale());
            return Decimal.apply(number, decimal.precision(), decimal.scale());
        }
        if (type instanceof ByteType) {
            return Byte.valueOf(value.asText());
        }
        if (type instanceof ShortType) {
            return Short.valueOf(value.asText());
        }
        if (type instanceof IntegerType || type instanceof DateType) {
            return Integer.valueOf(value.asText());
        }
        if (type instanceof FloatType) {
            return Float.intBitsToFloat(Integer.parseInt(value.asText()));
        }
        if (type instanceof DoubleType) {
            return Double.longBitsToDouble(Long.parseLong(value.asText()));
        }
        return Long.valueOf(value.asText());
    }
}
