package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The format {@code fastpq}: Parquet datasets, encrypted or not, read and written by fastpq in columns. */
public final class FastpqProvider implements TableProvider, DataSourceRegister {
    private JsonNode found;     // schema and files, for the table that Spark makes next
    private Map<String, String> foundFor;

    @Override
    public String shortName() {
        return "fastpq";
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        foundFor = Settings.options(options.asCaseSensitiveMap());
        found = Worker.ask(Settings.driverPython(), Settings.question("schema", foundFor));
        return (StructType) DataType.fromJson(found.get("schema").toString());
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        Map<String, String> options = Settings.options(properties);
        boolean isNamed = properties.containsKey(TableCatalog.PROP_PROVIDER);
        return new FastpqTable(schema, partitioning, options, options.equals(foundFor) ? found.get("files") : null, isNamed);
    }

    /** The table of a path: its columns and folders are those of the files that are there. */
    FastpqTable tableOf(CaseInsensitiveStringMap options) {
        StructType schema = inferSchema(options);
        List<Transform> folders = new ArrayList<>();
        if (found.get("files").size() > 0) {
            for (JsonNode part : found.get("files").get(0).get(2)) {
                folders.add(Expressions.identity("`" + part.get(0).asText().replace("`", "``") + "`"));
            }
        }
        return new FastpqTable(schema, folders.toArray(new Transform[0]), foundFor, found.get("files"), true);
    }

    @Override
    public boolean supportsExternalMetadata() {
        return true;
    }
}
