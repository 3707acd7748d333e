package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.parquet.hadoop.ParquetOutputFormat;
import org.apache.spark.SparkException;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.errors.QueryExecutionErrors;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;

/**
 * The format {@code fastpq} in Spark's own file source. Python workers read and write its Parquet files, encrypted or not.
 *
 * Spark lists the files, prunes folders, cuts files into tasks and commits writes, as for its own formats. It asks for
 * ParquetFileFormat itself in some places (nested column pruning, commands that change tables), so that this class extends it.
 */
public final class FastpqFileFormat extends ParquetFileFormat {
    private static final long serialVersionUID = 1L;
    private final Pushdown pushdown;
    private final ScanMetrics metrics;    // null before the scan is about to run

    /** The format as Spark makes it by its name. */
    public FastpqFileFormat() {
        this(Pushdown.NONE);
    }

    FastpqFileFormat(Pushdown pushdown) {
        this(pushdown, null);
    }

    private FastpqFileFormat(Pushdown pushdown, ScanMetrics metrics) {
        this.pushdown = pushdown;
        this.metrics = metrics;
    }

    /** The same format, whose readers add to metrics. */
    FastpqFileFormat with(ScanMetrics added) {
        return new FastpqFileFormat(pushdown, added);
    }

    boolean hasMetrics() {
        return metrics != null;
    }

    boolean hasNoPushdown() {
        return pushdown.equals(Pushdown.NONE);
    }

    @Override
    public String shortName() {
        return "fastpq";
    }

    @Override
    public String toString() {
        return "fastpq" + pushdown.text();
    }

    /**
     * Scans with metrics of their own are equal, so that Spark runs one of them for both. A scan with metrics takes the place of one
     * without, which Spark would keep if they were equal.
     */
    @Override
    public boolean equals(Object other) {
        return other instanceof FastpqFileFormat && ((FastpqFileFormat) other).pushdown.equals(pushdown)
            && ((FastpqFileFormat) other).hasMetrics() == hasMetrics();
    }

    @Override
    public int hashCode() {
        return pushdown.hashCode();
    }

    /** The schema in the first file by path, as for Spark's own format. If schemas are to be merged, all files' schemas as one. */
    @Override
    public Option<StructType> inferSchema(SparkSession session, Map<String, String> options, Seq<FileStatus> files) {
        if (files.isEmpty()) {
            return Option.empty();
        }
        List<FileStatus> sorted = new ArrayList<>(CollectionConverters.asJava(files));
        sorted.sort(Comparator.comparing(file -> file.getPath().toString()));
        ObjectNode question = Settings.question("schema", Settings.plain(options));
        ArrayNode list = question.putArray("files");
        for (FileStatus file : sorted) {
            list.addArray().add(HadoopFiles.text(file.getPath())).add(file.getLen());
        }
        Configuration hadoop =
            ((org.apache.spark.sql.classic.SparkSession) session).sessionState().newHadoopConfWithOptions(options);
        Settings.addInstance(question, hadoop);
        JsonNode answer = Worker.ask(Settings.driverPython(), question, new HadoopFiles(() -> hadoop));
        if (answer.has("problem")) {
            FastpqException cause = new FastpqException("FormatError", answer.get("problem").asText());
            throw FastpqException.unchecked(
                QueryExecutionErrors.cannotReadFooterForFileError(new Path(answer.get("path").asText()), cause));
        }
        return merged(answer.get("schemas"), session.sessionState().conf().caseSensitiveAnalysis());
    }

    private static Option<StructType> merged(JsonNode schemas, boolean isCaseSensitive) {
        StructType merged = null;
        for (JsonNode node : schemas) {
            StructType schema = (StructType) DataType.fromJson(node.asText());
            try {
                merged = merged == null ? schema : merged.merge(schema, isCaseSensitive);
            } catch (Exception error) {
                if (error instanceof SparkException) {
                    throw FastpqException.unchecked(
                        QueryExecutionErrors.failedMergingSchemaError(merged, schema, (SparkException) error));
                }
                throw error;
            }
        }
        return Option.apply(merged);
    }

    /** Rows always come in columns. Spark converts them where it needs rows. */
    @Override
    public boolean supportBatch(SparkSession session, StructType schema) {
        return true;
    }

    /** None: the columns have our own classes, to which Spark's generated code must not cast. */
    @Override
    public Option<Seq<String>> vectorTypes(StructType required, StructType partition, SQLConf conf) {
        return Option.empty();
    }

    @Override
    public Function1<PartitionedFile, scala.collection.Iterator<InternalRow>> buildReaderWithPartitionValues(SparkSession session,
        StructType table, StructType partition, StructType required, Seq<Filter> filters, Map<String, String> options,
        Configuration hadoop) {
        ObjectNode plan = Settings.question("read", Settings.plain(options))
                              .put("schema", Types.stored(required).json())
                              .put("table", Types.stored(table).json())
                              .put("rowIndex", ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME());
        plan.set("pushdown", pushdown.json());
        Settings.addInstance(plan, hadoop);
        ArrayNode trees = plan.putArray("filters");
        boolean pushes = session.sessionState().conf().parquetFilterPushDown();
        for (Filter filter : CollectionConverters.asJava(filters)) {
            JsonNode tree = pushes ? FilterTrees.tree(filter) : null;
            if (tree != null && !Types.hasDefault(table, filter.references())) {
                trees.add(tree);
            }
        }
        plan.set("versions", Settings.check(plan));
        Broadcast<SerializableConfiguration> files = session.sparkContext().broadcast(
            new SerializableConfiguration(hadoop), ClassTag$.MODULE$.apply(SerializableConfiguration.class));
        boolean inBatches = Boolean.parseBoolean(options.getOrElse(FileFormat.OPTION_RETURNING_BATCH(), () -> "false"));
        return new FileReading(required, partition, plan.toString(), Settings.executorPython(), files, inBatches, metrics);
    }

    /** Lets Spark's own format set up the job (committer, codec), and checks options and keys before the first task. */
    @Override
    public OutputWriterFactory prepareWrite(SparkSession session, Job job, Map<String, String> options, StructType rows) {
        EarlierStreams.refuseFolder(session, FileOutputFormat.getOutputPath(job), job.getConfiguration());
        super.prepareWrite(session, job, Settings.withoutMapping(options, "compression"), rows);
        FastpqCommitter.use(job.getConfiguration());
        ObjectNode question = Settings.question("write", Settings.plain(options))
                                  .put("schema", Types.stored(rows).json())
                                  .put("codec", job.getConfiguration().get(ParquetOutputFormat.COMPRESSION))
                                  .put("version", session.version());
        Settings.addEncryption(question, job.getConfiguration());
        JsonNode answer = Worker.ask(Settings.driverPython(), question, null);
        question.set("versions", answer.get("versions"));
        return new FastpqOutput(question.toString(), answer.get("extension").asText(), Settings.executorPython(),
            answer.get("materialBesideFiles").asBoolean(), answer.get("uniqueNames").asBoolean());
    }
}
