package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A planned scan: what planning in Python answered, once asked. */
final class FastpqScan implements Scan, Batch, SupportsReportStatistics, SupportsRuntimeV2Filtering {
    private final StructType schema;
    private final ObjectNode question;
    private final Predicate[] pushed;
    private final Aggregates aggregates;
    private final Supplier<ScanBuilder> stream;
    private JsonNode answer;
    private JsonNode left;      // the plan of the rows that conditions known while the query runs leave; null without such conditions
    private StructType read;
    private boolean streams;

    /** A scan of the columns of a schema, or, where aggregates are not null, of parts of these. */
    FastpqScan(
            StructType schema, ObjectNode question, Predicate[] pushed, Aggregates aggregates, Supplier<ScanBuilder> stream) {
        this.schema = aggregates == null ? schema : aggregates.schema();
        this.question = question;
        this.pushed = pushed;
        this.aggregates = aggregates;
        this.stream = stream;
    }

    /** The tasks of a scan: a part of the dataset each. */
    record Task(byte[] splits) implements InputPartition {}

    private JsonNode plan() {
        if (answer == null) {
            answer = Worker.ask(Settings.driverPython(), question);
        }
        return answer;
    }

    /** The columns to read; those without nulls, by the footers, are not nullable: Spark's code then tests for none. */
    @Override
    public StructType readSchema() {
        if (read == null) {
            Set<String> complete = new HashSet<>();
            plan().get("complete").forEach(name -> complete.add(name.asText()));
            StructField[] fields = schema.fields().clone();
            for (int i = 0; i < fields.length; i++) {
                StructField field = fields[i];
                if (complete.contains(field.name())) {
                    fields[i] = new StructField(field.name(), field.dataType(), false, field.metadata());
                }
            }
            read = new StructType(fields);
        }
        return read;
    }

    @Override
    public String description() {
        return "fastpq " + question.get("options").path("path").asText() + " PushedFilters: " + Arrays.toString(pushed)
            + (aggregates == null ? "" : " PushedAggregates: " + aggregates) + " ReadSchema: " + schema.catalogString();
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
        return streams ? ColumnarSupportMode.UNSUPPORTED : ColumnarSupportMode.SUPPORTED;
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpoint) {
        streams = true;
        return stream.get().build().toMicroBatchStream(checkpoint);
    }

    @Override
    public Statistics estimateStatistics() {
        return new Estimates(plan(), schema);
    }

    /** Columns of folders: conditions on them that other parts of the query find, leave out files before a task starts. */
    @Override
    public NamedReference[] filterAttributes() {
        JsonNode columns = plan().get("partition");
        NamedReference[] references = new NamedReference[columns.size()];
        for (int i = 0; i < references.length; i++) {
            references[i] = Expressions.column("`" + columns.get(i).asText().replace("`", "``") + "`");
        }
        return references;
    }

    /** Plans anew, with the files and the columns without nulls that Spark knows from the first plan. */
    @Override
    public void filter(Predicate[] predicates) {
        ObjectNode narrower = question.deepCopy();
        narrower.set("complete", plan().get("complete"));
        if (!plan().path("files").isNull()) {
            narrower.set("files", plan().get("files"));
        }
        for (Predicate predicate : predicates) {
            JsonNode tree = Conditions.tree(predicate);
            if (tree != null) {
                ((ArrayNode) narrower.get("conditions")).addObject().set("tree", tree);
            }
        }
        left = Worker.ask(Settings.driverPython(), narrower);
    }

    private JsonNode tasks() {
        return left == null ? plan() : left;
    }

    @Override
    public InputPartition[] planInputPartitions() {
        JsonNode tasks = tasks().get("tasks");
        InputPartition[] partitions = new InputPartition[tasks.size()];
        for (int i = 0; i < partitions.length; i++) {
            partitions[i] = new Task(binary(tasks.get(i)));
        }
        return partitions;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new FastpqReaderFactory(schema, binary(tasks().get("plan")), Settings.executorPython());
    }

    private static byte[] binary(JsonNode node) {
        try {
            return node.binaryValue();
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof FastpqScan && question.equals(((FastpqScan) other).question);
    }

    @Override
    public int hashCode() {
        return question.hashCode();
    }
}
