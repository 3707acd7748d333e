package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The format {@code fastpq}: Parquet datasets, encrypted or not, read by fastpq in columns. */
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
        return new FastpqTable(schema, partitioning, options, options.equals(foundFor) ? found.get("files") : null);
    }

    @Override
    public boolean supportsExternalMetadata() {
        return true;
    }
}
