package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Base64;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.sources.StringStartsWith;
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

/** Spark's conditions as JSON trees: [op, [column], value...], ["AND", tree, tree], ["NOT", tree]. */
final class FilterTrees {
    private FilterTrees() {}

    /** A condition's tree. Null if the condition has other parts than columns and values with known types. */
    static JsonNode tree(Filter filter) {
        if (filter instanceof And) {
            return both("AND", ((And) filter).left(), ((And) filter).right());
        }
        if (filter instanceof Or) {
            return both("OR", ((Or) filter).left(), ((Or) filter).right());
        }
        if (filter instanceof Not) {
            JsonNode inner = tree(((Not) filter).child());
            return inner == null ? null : Worker.JSON.createArrayNode().add("NOT").add(inner);
        }
        if (filter instanceof EqualTo) {
            return leaf("=", ((EqualTo) filter).attribute(), ((EqualTo) filter).value());
        }
        if (filter instanceof EqualNullSafe) {
            return leaf("<=>", ((EqualNullSafe) filter).attribute(), ((EqualNullSafe) filter).value());
        }
        if (filter instanceof LessThan) {
            return leaf("<", ((LessThan) filter).attribute(), ((LessThan) filter).value());
        }
        if (filter instanceof LessThanOrEqual) {
            return leaf("<=", ((LessThanOrEqual) filter).attribute(), ((LessThanOrEqual) filter).value());
        }
        if (filter instanceof GreaterThan) {
            return leaf(">", ((GreaterThan) filter).attribute(), ((GreaterThan) filter).value());
        }
        if (filter instanceof GreaterThanOrEqual) {
            return leaf(">=", ((GreaterThanOrEqual) filter).attribute(), ((GreaterThanOrEqual) filter).value());
        }
        if (filter instanceof IsNull) {
            return leaf("IS_NULL", ((IsNull) filter).attribute());
        }
        if (filter instanceof IsNotNull) {
            return leaf("IS_NOT_NULL", ((IsNotNull) filter).attribute());
        }
        if (filter instanceof In) {
            return leaf("IN", ((In) filter).attribute(), ((In) filter).values());
        }
        if (filter instanceof StringStartsWith) {
            return leaf("STARTS_WITH", ((StringStartsWith) filter).attribute(), ((StringStartsWith) filter).value());
        }
        return null;
    }

    private static JsonNode both(String name, Filter left, Filter right) {
        JsonNode first = tree(left), second = tree(right);
        return first == null || second == null ? null : Worker.JSON.createArrayNode().add(name).add(first).add(second);
    }

    private static JsonNode leaf(String name, String column, Object... values) {
        ArrayNode tree = Worker.JSON.createArrayNode().add(name);
        tree.addArray().add(column);
        for (Object value : values) {
            JsonNode node = value(value);
            if (node == null) {
                return null;
            }
            tree.add(node);
        }
        return tree;
    }

    /** {kind: text}. Null for a type that the workers do not compare. */
    private static JsonNode value(Object external) {
        ObjectNode node = Worker.JSON.createObjectNode();
        if (external == null) {
            return node.putNull("null");
        }
        if (external instanceof Row || external instanceof scala.collection.Iterable) {    // Spark makes no literal from these
            return null;
        }
        Literal literal = Literal$.MODULE$.apply(external);
        String kind = kind(literal.dataType());
        Object value = literal.value();
        if (kind == null) {
            return null;
        }
        return node.put(kind, value instanceof byte[] ? Base64.getEncoder().encodeToString((byte[]) value) : value.toString());
    }

    /** The kind of a type's values, or null for a type that the workers do not compare. */
    static String kind(DataType type) {
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
        if (type.equals(DataTypes.StringType)) {    // with collations text compares in other ways
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
