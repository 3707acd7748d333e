package io.fastpq.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.internal.SQLConf;

/** Settings of the session that reads and writes obey; the driver alone sees them. */
final class Settings {
    static final String DRIVER_PYTHON = "spark.fastpq.driver.python", PYTHON = "spark.fastpq.python";

    private Settings() {}

    /** The interpreter of Python on the driver. */
    static String driverPython() {
        return first(setting(DRIVER_PYTHON), setting("spark.pyspark.driver.python"), System.getenv("PYSPARK_DRIVER_PYTHON"),
            executorPython());
    }

    /** The interpreter of Python on executors. */
    static String executorPython() {
        return first(setting(PYTHON), setting("spark.pyspark.python"), System.getenv("PYSPARK_PYTHON"), "python3");
    }

    /** A question for planning, with the options of a read or a write and the session's settings that stand for missing ones. */
    static ObjectNode question(String what, Map<String, String> options) {
        ObjectNode question = Worker.JSON.createObjectNode().put("ask", what);
        ObjectNode given = question.putObject("options");
        options.forEach(given::put);
        ObjectNode session = question.putObject("session");
        for (String name : new String[] {
            "spark.sql.session.timeZone", "spark.sql.timestampType", "spark.sql.files.maxPartitionBytes",
            "spark.sql.files.ignoreMissingFiles", "spark.sql.parquet.mergeSchema", "spark.sql.sources.partitionOverwriteMode",
            "spark.fastpq.lookupRows",
        }) {
            session.put(name, setting(name));
        }
        session.put("cores", org.apache.spark.sql.SparkSession.active().sparkContext().defaultParallelism());
        return question;
    }

    /**
     * Options of a read or a write.
     *
     * @param properties options, or properties of a table in a catalog: its options have a prefix, the others are the catalog's
     */
    static Map<String, String> options(Map<String, String> properties) {
        Map<String, String> options = new HashMap<>();
        if (!properties.containsKey(TableCatalog.PROP_PROVIDER)) {
            options.putAll(properties);
            return options;
        }
        properties.forEach((name, value) -> {
            if (name.startsWith(TableCatalog.OPTION_PREFIX)) {
                options.put(name.substring(TableCatalog.OPTION_PREFIX.length()), value);
            }
        });
        String location = properties.getOrDefault(TableCatalog.PROP_LOCATION, properties.get("path"));     // of a managed table
        if (location != null && !options.containsKey("paths")) {
            options.putIfAbsent("path", location);
        }
        return options;
    }

    private static String setting(String name) {
        String found = SQLConf.get().getConfString(name, null);
        SparkConf conf = SparkEnv.get().conf();
        return found != null ? found : conf.get(name, null);
    }

    private static String first(String... texts) {
        for (String text : texts) {
            if (text != null && !text.isEmpty()) {
                return text;
            }
        }
        throw new IllegalStateException("no interpreter of Python");
    }
}
