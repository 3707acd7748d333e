package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Work that the planner leaves to the workers of a scan, beyond what Spark gives to its own file formats.
 *
 * @param plan the work as JSON, for file_reading.py
 * @param text what {@code explain} shows
 */
record Pushdown(String plan, String text) implements Serializable {
    static final Pushdown NONE = new Pushdown("{}", "");
    private static final String SETTING = "spark.fastpq.pushdown";
    private static final long serialVersionUID = 1L;

    Pushdown(ObjectNode plan, String text) {
        this(plan.toString(), text);
    }

    /** The work as a part of a plan for the workers. */
    JsonNode json() {
        try {
            return Worker.JSON.readTree(plan);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Whether the session lets the planner leave such work to the workers. */
    static boolean isOn() {
        return Boolean.parseBoolean(SQLConf.get().getConfString(SETTING, "true"));
    }
}
