package io.fastpq.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.runtime.BoxedUnit;

/** Rules for plans that read the format. Spark finds this class in the jar, without a setting. */
public final class FastpqExtensions implements SparkSessionExtensionsProvider {
    // Spark then asks its own Parquet format, and every subclass, for parts instead of whole variants
    private static final String PUSHED_VARIANTS = "spark.sql.variant.pushVariantIntoScan";

    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        extensions.injectCheckRule(session -> plan -> {
            EarlierStreams.refuse(plan, session.sparkContext().hadoopConfiguration());
            plan.foreachWithSubqueries(part -> {
                if (reads(part)) {
                    takeWholeVariants();
                }
                return BoxedUnit.UNIT;
            });
            return BoxedUnit.UNIT;
        });
        extensions.injectPreCBORule(session -> new AggregatePushdown());
        extensions.injectPreCBORule(session -> new LimitPushdown());
        extensions.injectColumnar(session -> new ScanMetrics.Addition());
        return BoxedUnit.UNIT;
    }

    /** Whether a plan's part is a scan in this format. */
    static boolean reads(LogicalPlan part) {
        return part instanceof LogicalRelation && ((LogicalRelation) part).relation() instanceof HadoopFsRelation
            && ((HadoopFsRelation) ((LogicalRelation) part).relation()).fileFormat() instanceof FastpqFileFormat;
    }

    private static void takeWholeVariants() {
        SQLConf settings = SQLConf.get();
        if (!settings.getConfString(PUSHED_VARIANTS, "true").equalsIgnoreCase("false")) {
            settings.setConfString(PUSHED_VARIANTS, "false");
        }
    }
}
