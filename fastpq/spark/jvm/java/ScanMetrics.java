package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics$;
import org.apache.spark.sql.catalyst.rules.Rule;
import scala.PartialFunction$;
import scala.jdk.javaapi.CollectionConverters;

/** What the workers of a scan count, as metrics of the scan in Spark's UI. */
final class ScanMetrics implements Serializable {
    private static final long serialVersionUID = 1L;
    // Spark's own metrics of the scan. A file format cannot add to them.
    private static final String FIELD = "org$apache$spark$sql$execution$FileSourceScanLike$$scanMetrics";
    private static final String BYTES = "bytesRead", TIME = "workerTime";
    // Texts in the UI, by the names of the counts in a worker's last message. fastpq/spark/jvm/part_counts.py has the names.
    private static final Map<String, String> TEXTS = Map.of(BYTES, "bytes read by workers", TIME,
        "time of workers to read and decode", "parts", "parts of files read", "skippedParts", "parts of files skipped",
        "rowGroups", "row groups read", "skippedRowGroups", "row groups skipped", "pages", "pages of filtered columns read",
        "skippedPages", "pages of filtered columns skipped", "keyServiceCalls", "calls of the key service");

    private final Map<String, SQLMetric> metrics = new HashMap<>();

    private ScanMetrics(SparkContext context) {
        SQLMetrics$ kinds = SQLMetrics$.MODULE$;
        TEXTS.forEach((name, text)
                          -> metrics.put(name,
                              name.equals(BYTES) ? kinds.createSizeMetric(context, text, kinds.createSizeMetric$default$3())
                                  : name.equals(TIME)
                                  ? kinds.createNanoTimingMetric(context, text, kinds.createNanoTimingMetric$default$3())
                                  : kinds.createMetric(context, text)));
    }

    /** Adds what a worker has counted for a part of a file. */
    void add(JsonNode counts) {
        metrics.forEach((name, metric) -> metric.add(counts.path(name).asLong()));
    }

    /** Gives metrics to the scans of a plan that is about to run. */
    static final class Addition extends ColumnarRule {
        @Override
        public Rule<SparkPlan> postColumnarTransitions() {
            return new Rule<>() {
                @Override
                public SparkPlan apply(SparkPlan plan) {
                    return plan.transformUp(PartialFunction$.MODULE$.fromFunction(Addition::withMetrics));
                }
            };
        }

        private static SparkPlan withMetrics(SparkPlan part) {
            if (!(part instanceof FileSourceScanExec)) {
                return part;
            }
            FileSourceScanExec scan = (FileSourceScanExec) part;
            HadoopFsRelation relation = scan.relation();
            if (!(relation.fileFormat() instanceof FastpqFileFormat) || ((FastpqFileFormat) relation.fileFormat()).hasMetrics()) {
                return scan;
            }
            ScanMetrics added = new ScanMetrics(relation.sparkSession().sparkContext());
            HadoopFsRelation changed =
                relation.copy(relation.location(), relation.partitionSchema(), relation.dataSchema(), relation.bucketSpec(),
                    ((FastpqFileFormat) relation.fileFormat()).with(added), relation.options(), relation.sparkSession());
            Object[] arguments = CollectionConverters.asJava(scan.productIterator().toSeq()).toArray();
            arguments[0] = changed;    // Spark's versions have different numbers of others
            return added.addTo((FileSourceScanExec) scan.makeCopy(arguments));
        }
    }

    private SparkPlan addTo(FileSourceScanExec scan) {
        Map<String, SQLMetric> all = new HashMap<>(CollectionConverters.asJava(scan.metrics()));
        metrics.forEach((name, metric) -> all.put("fastpq." + name, metric));
        try {
            Field field = FileSourceScanExec.class.getDeclaredField(FIELD);
            field.setAccessible(true);
            field.set(scan, scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(all)));
        } catch (ReflectiveOperationException error) {
            throw FastpqException.unknown("metrics of a scan (" + error + ")");
        }
        return scan;
    }
}
