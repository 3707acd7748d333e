package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.errors.QueryCompilationErrors;
import org.apache.spark.sql.execution.datasources.DataSourceUtils;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.AnsiIntervalType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The format {@code fastpq}: Parquet datasets, encrypted or not, read and written by fastpq in columns.
 *
 * Spark lets tables of this kind append and overwrite alone, and has the modes {@code errorifexists} (its default) and {@code ignore}
 * for relations: rows for a path are therefore taken as for a relation, and written to it as to a table.
 */
public class FastpqProvider implements TableProvider, DataSourceRegister, CreatableRelationProvider {
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
        JsonNode files = options.equals(foundFor) ? found.get("files") : null;
        return new FastpqTable(schema, partitioning, options, files, isNamed, isNamed || takesRows(schema));
    }

    /** Whether rows for a path are written as to a table: Spark takes intervals for tables alone. */
    boolean takesRows(StructType schema) {
        return schema.existsRecursively(type -> type instanceof AnsiIntervalType);
    }

    /** Writes rows to a path, if the mode allows it. */
    @Override
    public BaseRelation createRelation(
        SQLContext context, SaveMode mode, scala.collection.immutable.Map<String, String> given, Dataset<Row> rows
    ) {
        Map<String, String> options = new HashMap<>(CollectionConverters.asJava(((CaseInsensitiveMap<String>) given).originalMap()));
        String folders = options.remove(DataSourceUtils.PARTITIONING_COLUMNS_KEY());
        if (mode == SaveMode.ErrorIfExists || mode == SaveMode.Ignore) {
            JsonNode target = Worker.ask(Settings.driverPython(), Settings.question("target", options));
            if (target.get("exists").asBoolean()) {
                if (mode == SaveMode.Ignore) {
                    return new Written(context, rows.schema());
                }
                throw refusal(target.get("path").asText());
            }
        }
        DataFrameWriter<Row> writer = rows.write().format(Rows.class.getName()).options(options)
            .mode(mode == SaveMode.Overwrite ? SaveMode.Overwrite : SaveMode.Append);
        if (folders != null) {
            List<String> names = CollectionConverters.asJava(DataSourceUtils.decodePartitioningColumns(folders));
            writer = writer.partitionBy(names.toArray(new String[0]));
        }
        writer.save();
        return new Written(context, rows.schema());
    }

    @Override
    public boolean supportsDataType(DataType type) {
        return true;        // types without a column in Parquet are refused by planning
    }

    /** Spark's own exception about a path that exists, which its analysis throws; no method of Java declares it. */
    @SuppressWarnings("unchecked")
    private static <T extends Throwable> RuntimeException refusal(String path) throws T {
        throw (T) QueryCompilationErrors.outputPathAlreadyExistsError(new Path(path));
    }

    /** The same format for rows whose mode has been obeyed. */
    public static final class Rows extends FastpqProvider {
        @Override
        boolean takesRows(StructType schema) {
            return true;
        }
    }

    /** What Spark gets back from a write to a path: no rows are read through it. */
    private static final class Written extends BaseRelation {
        private final SQLContext context;
        private final StructType schema;

        Written(SQLContext context, StructType schema) {
            this.context = context;
            this.schema = schema;
        }

        @Override
        public SQLContext sqlContext() {
            return context;
        }

        @Override
        public StructType schema() {
            return schema;
        }
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
        return new FastpqTable(schema, folders.toArray(new Transform[0]), foundFor, found.get("files"), true, true);
    }

    @Override
    public boolean supportsExternalMetadata() {
        return true;
    }
}
