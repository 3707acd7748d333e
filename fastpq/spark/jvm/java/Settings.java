package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap$;
import org.apache.spark.sql.internal.SQLConf;
import scala.jdk.javaapi.CollectionConverters;

/** The session's settings that reads and writes obey. Only the driver sees them. */
final class Settings {
    static final String DRIVER_PYTHON = "spark.fastpq.driver.python", PYTHON = "spark.fastpq.python";

    private static final List<String> OF_SESSION = List.of("spark.sql.session.timeZone", "spark.sql.timestampType",
        "spark.sql.caseSensitive", "spark.sql.parquet.mergeSchema", "spark.sql.parquet.respectSummaryFiles",
        "spark.sql.parquet.binaryAsString", "spark.sql.parquet.inferTimestampNTZ.enabled", "spark.sql.parquet.int96AsTimestamp",
        "spark.sql.parquet.int96TimestampConversion", "spark.sql.parquet.fieldId.write.enabled",
        "spark.sql.parquet.fieldId.read.enabled", "spark.sql.parquet.fieldId.read.ignoreMissing",
        "spark.sql.legacy.parquet.nanosAsLong", "spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles");
    private static final String ENCRYPTION = "parquet.encryption.";    // start of the names of settings
    // Without one of these, Spark's own format encrypts nothing.
    private static final List<String> KEYS = List.of("footer.key", "column.keys", "uniform.key");
    // Settings of parquet-java's key service clients. A client in Python has options of its own.
    private static final Set<String> OF_JAVA_CLIENTS = Set.of("kms.client.class", "key.access.token", "key.list");
    private static final Set<String> INSTANCE = Set.of("kms.instance.id", "kms.instance.url");
    // Options that name files or streams, in lower case. The check of a plan does not depend on them.
    private static final Set<String> OF_FILES =
        Set.of("path", "basepath", "pathglobfilter", "modifiedafter", "modifiedbefore", "checkpointlocation", "queryname");
    private static final int MOST_CHECKED = 100;
    // Answers by question. The one that was not used for the longest time goes first.
    private static final Map<String, JsonNode> CHECKED = Collections.synchronizedMap(new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, JsonNode> eldest) {
            return size() > MOST_CHECKED;
        }
    });

    private Settings() {}

    /** The Python interpreter on the driver. */
    static String driverPython() {
        return first(setting(DRIVER_PYTHON), setting("spark.pyspark.driver.python"), System.getenv("PYSPARK_DRIVER_PYTHON"),
            executorPython());
    }

    /** The Python interpreter on executors. */
    static String executorPython() {
        return first(setting(PYTHON), setting("spark.pyspark.python"), System.getenv("PYSPARK_PYTHON"), "python3");
    }

    /** A question with the options of a read or a write, and the session's settings on which the answer depends. */
    static ObjectNode question(String what, Map<String, String> options) {
        ObjectNode question = Worker.JSON.createObjectNode().put("ask", what);
        ObjectNode node = question.putObject("options");
        options.forEach(node::put);
        ObjectNode session = question.putObject("session");
        for (String name : OF_SESSION) {
            session.put(name, setting(name));
        }
        return question;
    }

    /** Options in the case in which the user wrote them, as far as Spark knows it. */
    static Map<String, String> plain(scala.collection.immutable.Map<String, String> options) {
        return new HashMap<>(CollectionConverters.asJava(
            options instanceof CaseInsensitiveMap ? ((CaseInsensitiveMap<String>) options).originalMap() : options));
    }

    /** Options without one whose value is a mapping in JSON, which Spark's own format does not know. */
    static scala.collection.immutable.Map<String, String> withoutMapping(
        scala.collection.immutable.Map<String, String> options, String option) {
        Map<String, String> others = plain(options);
        others.entrySet().removeIf(entry -> entry.getKey().equalsIgnoreCase(option) && entry.getValue().startsWith("{"));
        return CaseInsensitiveMap$.MODULE$.apply(
            scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(others)));
    }

    /**
     * Adds the encryption that Hadoop's settings ask for to the options of a write. Spark's own format obeys these settings, and a
     * write that ignored one of them would store plaintext, or encrypt less strongly. The worker refuses a setting that it lacks.
     */
    static void addEncryption(ObjectNode question, Configuration hadoop) {
        if (KEYS.stream().allMatch(name -> hadoop.getTrimmed(ENCRYPTION + name, "").isEmpty())) {
            return;
        }
        addMissing((ObjectNode) question.get("options"), hadoop, name -> !OF_JAVA_CLIENTS.contains(name));
    }

    /** Adds the instance of the key service that Hadoop's settings name to the options of a read, as to those of a write. */
    static void addInstance(ObjectNode question, Configuration hadoop) {
        addMissing((ObjectNode) question.get("options"), hadoop, INSTANCE::contains);
    }

    private static void addMissing(ObjectNode options, Configuration hadoop, Predicate<String> counts) {
        Set<String> present = new HashSet<>();
        options.fieldNames().forEachRemaining(name -> present.add(withoutPrefix(name)));
        for (Map.Entry<String, String> setting : hadoop) {
            String name = setting.getKey(), plain = withoutPrefix(name);
            if (name.startsWith(ENCRYPTION) && counts.test(plain) && !present.contains(plain)) {
                String value = hadoop.getTrimmed(name, "");
                if (!value.isEmpty()) {
                    options.put(name, value);
                }
            }
        }
    }

    /** The name of an option in lower case, without the prefix that options of encryption may lack. */
    private static String withoutPrefix(String option) {
        String name = option.toLowerCase(Locale.ROOT);
        return name.startsWith(ENCRYPTION) ? name.substring(ENCRYPTION.length()) : name;
    }

    /**
     * Asks a worker on the driver whether it can read by a plan's options. Each combination of options is asked about once.
     *
     * @return the driver's versions, which executors need too
     */
    static JsonNode check(ObjectNode plan) {
        ObjectNode question = plan.deepCopy().put("ask", "check");
        question.remove("filters");
        question.remove("pushdown");
        question.remove("table");
        question.remove("schema");
        for (Iterator<String> names = question.get("options").fieldNames(); names.hasNext();) {
            if (OF_FILES.contains(names.next().toLowerCase(Locale.ROOT))) {
                names.remove();
            }
        }
        JsonNode answer = CHECKED.get(question.toString());
        if (answer == null) {
            answer = Worker.ask(driverPython(), question, null);
            CHECKED.put(question.toString(), answer);
        }
        return answer.get("versions");
    }

    private static String setting(String name) {
        String value = SQLConf.get().getConfString(name, null);
        SparkConf conf = SparkEnv.get().conf();
        return value != null ? value : conf.get(name, null);
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
