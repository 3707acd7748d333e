package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Avg;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.expressions.aggregate.Sum;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.StructType;

/**
 * Aggregates in Spark's plan that fastpq computes: at once from footers, or a part in each task, for Spark to put together.
 *
 * Planning in Python decides which.
 */
final class Aggregates {
    private final ObjectNode question;
    private final List<String> names;
    private final JsonNode answer;

    private Aggregates(ObjectNode question, List<String> names) {
        this.question = question;
        this.names = names;
        answer = Worker.ask(Settings.driverPython(), question);
    }

    /**
     * Asks planning about aggregates; null where one is of a kind, or of an expression, that has no tree.
     *
     * @param aggregation groups and aggregates
     * @param question a question for planning, with the conditions on folders
     */
    static Aggregates of(Aggregation aggregation, ObjectNode question) {
        List<String> names = new ArrayList<>();
        ArrayNode groups = question.putArray("groups"), aggregates = question.putArray("aggregates");
        for (Expression group : aggregation.groupByExpressions()) {
            String name = column(group);
            if (name == null) {
                return null;
            }
            groups.add(name);
            names.add(name);
        }
        for (AggregateFunc function : aggregation.aggregateExpressions()) {
            String kind = kind(function);
            if (kind == null) {
                return null;
            }
            ArrayNode asked = aggregates.addArray().add(kind);
            names.add(function.toString());
            if (!(function instanceof CountStar)) {
                JsonNode tree = tree(function.children()[0]);
                if (tree == null) {
                    return null;
                }
                asked.add(tree);
            }
        }
        return new Aggregates(question, names);
    }

    /** The trees of the expressions of which averages are asked. */
    static List<JsonNode> averages(Aggregation aggregation) {
        List<JsonNode> found = new ArrayList<>();
        for (AggregateFunc function : aggregation.aggregateExpressions()) {
            JsonNode tree = function instanceof Avg ? tree(function.children()[0]) : null;
            if (tree != null) {
                found.add(tree);
            }
        }
        return found;
    }

    private static String kind(AggregateFunc function) {
        if (function instanceof CountStar || function instanceof Count && !((Count) function).isDistinct()) {
            return "count";
        }
        if (function instanceof Sum && !((Sum) function).isDistinct()) {
            return "sum";
        }
        return function instanceof Min ? "min" : function instanceof Max ? "max" : null;
    }

    /** The name of a column that an expression is; null for any other expression. */
    private static String column(Expression expression) {
        if (!(expression instanceof NamedReference) || ((NamedReference) expression).fieldNames().length != 1) {
            return null;
        }
        return ((NamedReference) expression).fieldNames()[0];
    }

    /**
     * ["column", name], ["decimal", text, precision, scale], ["double", text], and of functions their name and a tree for each
     * argument; null for any other expression.
     */
    private static JsonNode tree(Expression expression) {
        ArrayNode tree = Worker.JSON.createArrayNode();
        if (expression instanceof NamedReference) {
            String name = column(expression);
            return name == null ? null : tree.add("column").add(name);
        }
        if (expression instanceof Literal) {
            return literal((Literal<?>) expression, tree);
        }
        if (!(expression instanceof GeneralScalarExpression)) {
            return null;
        }
        tree.add(((GeneralScalarExpression) expression).name());
        for (Expression part : expression.children()) {
            JsonNode inner = tree(part);
            if (inner == null) {
                return null;
            }
            tree.add(inner);
        }
        return tree;
    }

    private static JsonNode literal(Literal<?> literal, ArrayNode tree) {
        if (literal.value() != null && literal.dataType() instanceof DecimalType) {
            DecimalType type = (DecimalType) literal.dataType();
            return tree.add("decimal").add(literal.value().toString()).add(type.precision()).add(type.scale());
        }
        if (literal.value() != null && literal.dataType() instanceof DoubleType) {
            return tree.add("double").add(literal.value().toString());
        }
        return null;
    }

    /** The rows of the answer from footers; null where footers do not tell it. */
    JsonNode rows() {
        return answer.get("rows").isNull() ? null : answer.get("rows");
    }

    /** Whether tasks can compute parts of the aggregates. */
    boolean hasParts() {
        return !answer.get("types").isNull();
    }

    /** The groups, then the aggregates, or parts of them. */
    StructType schema() {
        StructType schema = new StructType();
        for (int i = 0; i < names.size(); i++) {
            schema = schema.add(names.get(i), DataType.fromJson(answer.get("types").get(i).asText()));
        }
        return schema;
    }

    /** Adds the aggregates to the question for a plan. */
    void ask(ObjectNode plan) {
        plan.set("groups", question.get("groups"));
        plan.set("aggregates", question.get("aggregates"));
        plan.set("averages", question.get("averages"));
    }

    @Override
    public String toString() {
        return names.toString();
    }
}
