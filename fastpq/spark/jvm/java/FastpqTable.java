package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A dataset as a table.
 *
 * Streams go to the Python source (fastpq.spark.register), and so do writes of types that no Gatherer takes: a warning says so once.
 */
final class FastpqTable implements SupportsRead, SupportsWrite {
    private static final String BEHIND = "fastpq_python";       // name of the Python source, as fastpq.spark.register gives it

    private static final Set<String> SAID = ConcurrentHashMap.newKeySet();
    private static final Logger LOG = LoggerFactory.getLogger("io.fastpq.spark");

    private final StructType schema;
    private final Transform[] partitioning;
    private final Map<String, String> options;
    private final JsonNode files;       // as found with the schema; null where the schema was given
    private final boolean isNamed;      // of a catalog: rows take its columns by their order, and are cast
    private final boolean takesRows;    // in batches; see FastpqProvider

    FastpqTable(
        StructType schema, Transform[] partitioning, Map<String, String> options, JsonNode files, boolean isNamed, boolean takesRows
    ) {
        this.schema = schema;
        this.partitioning = partitioning;
        this.options = options;
        this.files = files;
        this.isNamed = isNamed;
        this.takesRows = takesRows;
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
        Set<TableCapability> capabilities = EnumSet.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ,
            TableCapability.STREAMING_WRITE, TableCapability.TRUNCATE, TableCapability.OVERWRITE_DYNAMIC);
        if (takesRows) {
            capabilities.add(TableCapability.BATCH_WRITE);
        }
        if (!isNamed) {
            capabilities.add(TableCapability.ACCEPT_ANY_SCHEMA);
        }
        return capabilities;
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
        StructType written = info.schema();
        if (!Gatherer.canTake(written)) {
            refuseFolders("rows of " + written.catalogString());
            if (SAID.add(written.catalogString())) {
                LOG.warn("fastpq writes rows of {} through Python, for the jar gathers no such values", written.catalogString());
            }
            return ((SupportsWrite) pythonTable()).newWriteBuilder(info);
        }
        Map<String, String> all = new HashMap<>(options);
        all.putAll(Settings.options(info.options().asCaseSensitiveMap()));
        ObjectNode question = Settings.question("write", all).put("schema", written.json());
        ArrayNode folders = question.putArray("folders");
        for (Transform transform : partitioning) {
            if (!transform.name().equals("identity")) {
                throw new UnsupportedOperationException("fastpq makes folders of columns, not of " + transform.describe());
            }
            folders.add(transform.references()[0].fieldNames()[0]);
        }
        return new FastpqWrite(written, question, overwrites -> streaming(info, overwrites));
    }

    /** Spark tells a Python source nothing of folders: without this error its rows would land in files of no folder. */
    private void refuseFolders(String what) {
        if (partitioning.length > 0) {
            throw new UnsupportedOperationException("fastpq writes " + what + " through Python, where Spark leaves out partitionBy()"
                + " and partitions of tables: give the columns in the option partitionBy instead");
        }
    }

    private StreamingWrite streaming(LogicalWriteInfo info, boolean overwrites) {
        refuseFolders("streams");
        WriteBuilder builder = ((SupportsWrite) pythonTable()).newWriteBuilder(info);
        return (overwrites ? ((SupportsTruncate) builder).truncate() : builder).build().toStreaming();
    }

    private Table pythonTable() {
        PythonDataSourceV2 source = new PythonDataSourceV2();
        source.setShortName(BEHIND);
        return source.getTable(schema, partitioning, options);
    }
}
