package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.OptionalLong;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructType;

/** Rows that planning has answered, of aggregates or of a lookup: a scan without a task. */
final class Answer implements LocalScan, SupportsReportStatistics {
    private final StructType schema;
    private final InternalRow[] rows;
    private final String description;

    private Answer(StructType schema, InternalRow[] rows, String description) {
        this.schema = schema;
        this.rows = rows;
        this.description = description;
    }

    /** The answer to aggregates whose rows footers tell. */
    static Answer of(Aggregates aggregates) {
        StructType schema = aggregates.schema();
        return new Answer(schema, rows(aggregates.rows(), schema), "fastpq, from footers: " + schema.catalogString());
    }

    /** The rows of a lookup. */
    static Answer of(JsonNode found, StructType schema, String description) {
        return new Answer(schema, rows(found, schema), description);
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

    @Override
    public Statistics estimateStatistics() {
        return new Statistics() {
            @Override
            public OptionalLong sizeInBytes() {
                return OptionalLong.of(Math.max(1, (long) rows.length * schema.defaultSize()));
            }

            @Override
            public OptionalLong numRows() {
                return OptionalLong.of(rows.length);
            }
        };
    }
}
