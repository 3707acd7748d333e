package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Aggregates that planning has answered from footers: a scan of the answer's rows, without a task. */
final class Answer implements LocalScan {
    private final StructType schema;
    private final InternalRow[] rows;
    private final String description;

    private Answer(StructType schema, InternalRow[] rows, String description) {
        this.schema = schema;
        this.rows = rows;
        this.description = description;
    }

    /**
     * The answer to aggregates; null where the footers do not tell it, or where fastpq knows no such aggregate.
     *
     * @param aggregation groups and aggregates
     * @param table schema of the dataset
     * @param question a question for planning, with the conditions on folders
     */
    static Answer of(Aggregation aggregation, StructType table, ObjectNode question) {
        StructType schema = new StructType();
        ArrayNode groups = question.putArray("groups"), aggregates = question.putArray("aggregates");
        for (Expression group : aggregation.groupByExpressions()) {
            StructField field = field(group, table);
            if (field == null) {
                return null;
            }
            groups.add(field.name());
            schema = schema.add(field.name(), field.dataType());
        }
        for (AggregateFunc function : aggregation.aggregateExpressions()) {
            ArrayNode asked = aggregates.addArray();
            String kind = kind(function);
            if (kind == null) {
                return null;
            }
            asked.add(kind);
            StructField field = function instanceof CountStar ? null : field(function.children()[0], table);
            if (field != null) {
                asked.add(field.name());
            } else if (!(function instanceof CountStar)) {
                return null;
            }
            schema = schema.add(function.toString(), kind.equals("count") ? DataTypes.LongType : field.dataType());
        }
        JsonNode found = Worker.ask(Settings.driverPython(), question).get("rows");
        return found.isNull() ? null : new Answer(schema, rows(found, schema), "fastpq, from footers: " + schema.catalogString());
    }

    private static String kind(AggregateFunc function) {
        if (function instanceof CountStar || function instanceof Count && !((Count) function).isDistinct()) {
            return "count";
        }
        return function instanceof Min ? "min" : function instanceof Max ? "max" : null;
    }

    /** The column of the table that an expression is; null for any other expression. */
    private static StructField field(Expression expression, StructType table) {
        if (!(expression instanceof NamedReference) || ((NamedReference) expression).fieldNames().length != 1) {
            return null;
        }
        String name = ((NamedReference) expression).fieldNames()[0];
        return table.getFieldIndex(name).isDefined() ? table.apply(name) : null;
    }

    private static InternalRow[] rows(JsonNode found, StructType schema) {
        InternalRow[] rows = new InternalRow[found.size()];
        for (int i = 0; i < rows.length; i++) {
            Object[] values = new Object[schema.size()];
            for (int j = 0; j < values.length; j++) {
                values[j] = Values.of(found.get(i).get(j), schema.apply(j).dataType());
            }
            rows[i] = new GenericInternalRow(values);
        }
        return rows;
    }

    @Override
    public StructType readSchema() {
        return schema;
    }

    @Override
    public String description() {
        return description;
    }

    @Override
    public InternalRow[] rows() {
        return rows;
    }
}
