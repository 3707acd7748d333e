package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Statistics of a planned scan for Spark's planner. */
final class Estimates implements Statistics {
    private final long bytes, rows;
    private final Map<NamedReference, ColumnStatistics> columns = new HashMap<>();

    /** Statistics as planning answers them, of the columns of a schema. */
    Estimates(JsonNode plan, StructType schema) {
        bytes = plan.get("bytes").asLong();
        rows = plan.get("rows").asLong();
        for (StructField field : schema.fields()) {
            JsonNode found = plan.get("columns").get(field.name());
            if (found != null) {
                columns.put(Expressions.column("`" + field.name().replace("`", "``") + "`"), new OfColumn(found, field));
            }
        }
    }

    @Override
    public OptionalLong sizeInBytes() {
        return OptionalLong.of(bytes);
    }

    @Override
    public OptionalLong numRows() {
        return rows < 0 ? OptionalLong.empty() : OptionalLong.of(rows);
    }

    @Override
    public Map<NamedReference, ColumnStatistics> columnStats() {
        return columns;
    }

    private static final class OfColumn implements ColumnStatistics {
        private final JsonNode found;
        private final StructField field;

        OfColumn(JsonNode found, StructField field) {
            this.found = found;
            this.field = field;
        }

        @Override
        public Optional<Object> min() {
            return Optional.ofNullable(Values.of(found.get("min"), field.dataType()));
        }

        @Override
        public Optional<Object> max() {
            return Optional.ofNullable(Values.of(found.get("max"), field.dataType()));
        }

        @Override
        public OptionalLong nullCount() {
            return number("nulls");
        }

        @Override
        public OptionalLong distinctCount() {
            return number("distinct");
        }

        private OptionalLong number(String name) {
            return found.has(name) ? OptionalLong.of(found.get(name).asLong()) : OptionalLong.empty();
        }
    }
}
