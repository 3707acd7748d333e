package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A dataset as a table. Streams and writes go to the Python source (fastpq.spark.register). */
final class FastpqTable implements SupportsRead, SupportsWrite {
    private static final String BEHIND = "fastpq_python";       // name of the Python source, as fastpq.spark.register gives it

    private final StructType schema;
    private final Transform[] partitioning;
    private final Map<String, String> options;
    private final JsonNode files;       // as found with the schema; null where the schema was given

    FastpqTable(StructType schema, Transform[] partitioning, Map<String, String> options, JsonNode files) {
        this.schema = schema;
        this.partitioning = partitioning;
        this.options = options;
        this.files = files;
    }

    @Override
    public String name() {
        String path = options.getOrDefault("path", options.getOrDefault("paths", ""));
        return "fastpq " + path;
    }

    @Override
    @SuppressWarnings("deprecation")
    public StructType schema() {
        return schema;
    }

    @Override
    public Transform[] partitioning() {
        return partitioning;
    }

    @Override
    public Map<String, String> properties() {
        return options;
    }

    @Override
    public Set<TableCapability> capabilities() {
        return Set.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ, TableCapability.BATCH_WRITE,
            TableCapability.STREAMING_WRITE, TableCapability.TRUNCATE, TableCapability.ACCEPT_ANY_SCHEMA);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap given) {
        Map<String, String> all = new HashMap<>(options);
        all.putAll(Settings.options(given.asCaseSensitiveMap()));
        return new FastpqScanBuilder(schema, all, files,
            () -> ((SupportsRead) pythonTable()).newScanBuilder(new CaseInsensitiveStringMap(all)));
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return ((SupportsWrite) pythonTable()).newWriteBuilder(info);
    }

    private Table pythonTable() {
        PythonDataSourceV2 source = new PythonDataSourceV2();
        source.setShortName(BEHIND);
        return source.getTable(schema, partitioning, options);
    }
}
