package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Base64;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** Conditions of Spark as trees of JSON: [op, column, value...], ["AND", tree, tree], ["NOT", tree]. */
final class Conditions {
    private static final Map<String, String> MIRRORED =
        Map.of("=", "=", "<>", "<>", "<", ">", "<=", ">=", ">", "<", ">=", "<=", "<=>", "<=>");

    private Conditions() {}

    /** The tree of a condition; null where it has other parts than columns and values of known types. */
    static JsonNode tree(Expression condition) {
        if (!(condition instanceof org.apache.spark.sql.connector.expressions.GeneralScalarExpression)) {
            return null;
        }
        String name = ((org.apache.spark.sql.connector.expressions.GeneralScalarExpression) condition).name();
        Expression[] parts = condition.children();
        ArrayNode tree = Worker.JSON.createArrayNode();
        if (name.equals("AND") || name.equals("OR") || name.equals("NOT")) {
            tree.add(name);
            for (Expression part : parts) {
                JsonNode inner = tree(part);
                if (inner == null) {
                    return null;
                }
                tree.add(inner);
            }
            return tree;
        }
        if (parts.length == 2 && parts[0] instanceof Literal && MIRRORED.containsKey(name)) {
            parts = new Expression[] {parts[1], parts[0]};
            name = MIRRORED.get(name);
        }
        if (parts.length == 0 || !(parts[0] instanceof NamedReference)) {
            return null;
        }
        tree.add(name);
        ArrayNode path = tree.addArray();
        for (String field : ((NamedReference) parts[0]).fieldNames()) {
            path.add(field);
        }
        for (int i = 1; i < parts.length; i++) {
            JsonNode value = parts[i] instanceof Literal ? value((Literal<?>) parts[i]) : null;
            if (value == null) {
                return null;
            }
            tree.add(value);
        }
        return tree;
    }

    /** {kind: text}; null of a type that planning does not know. */
    private static JsonNode value(Literal<?> literal) {
        DataType type = literal.dataType();
        ObjectNode node = Worker.JSON.createObjectNode();
        String kind = kind(type);
        Object value = literal.value();
        if (kind == null) {
            return null;
        }
        if (value == null) {
            return node.putNull("null");
        }
        return node.put(kind, value instanceof byte[] ? Base64.getEncoder().encodeToString((byte[]) value) : value.toString());
    }

    private static String kind(DataType type) {
        if (type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType || type instanceof LongType) {
            return "integer";
        }
        if (type instanceof BooleanType) {
            return "boolean";
        }
        if (type instanceof FloatType || type instanceof DoubleType) {
            return "float";
        }
        if (type instanceof DecimalType) {
            return "decimal";
        }
        if (type.equals(DataTypes.StringType)) {        // with collations text compares in other ways
            return "text";
        }
        if (type instanceof BinaryType) {
            return "bytes";
        }
        if (type instanceof DateType) {
            return "date";
        }
        if (type instanceof TimestampType) {
            return "timestamp";
        }
        return type instanceof TimestampNTZType ? "local timestamp" : null;
    }
}
