package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/**
 * Takes columns, conditions, a limit and aggregates from Spark's plan.
 *
 * Planning in Python decides for which conditions and which aggregates it answers.
 */
final class FastpqScanBuilder
        implements SupportsPushDownRequiredColumns, SupportsPushDownV2Filters, SupportsPushDownAggregates, SupportsPushDownLimit {
    private static final int NO_LIMIT = -1;

    private final StructType table;
    private final Map<String, String> options;
    private final JsonNode files;
    private final Supplier<ScanBuilder> stream;
    private StructType schema;
    private Predicate[] pushed = {};
    private ArrayNode conditions = Worker.JSON.createArrayNode();
    private boolean isLookup;       // planning reads the few rows that the conditions leave
    private int limit = NO_LIMIT;
    private Aggregation asked;
    private Aggregates aggregates;      // null where Spark aggregates
    private final ArrayNode averages = Worker.JSON.createArrayNode();       // asked for before their sums and counts

    FastpqScanBuilder(StructType table, Map<String, String> options, JsonNode files, Supplier<ScanBuilder> stream) {
        this.table = table;
        this.options = options;
        this.files = files;
        this.stream = stream;
        schema = table;
    }

    @Override
    public Predicate[] pushPredicates(Predicate[] predicates) {
        List<Predicate> known = new ArrayList<>(), left = new ArrayList<>(), taken = new ArrayList<>();
        ObjectNode question = question("filters");
        ArrayNode trees = question.putArray("filters");
        for (Predicate predicate : predicates) {
            JsonNode tree = Conditions.tree(predicate);
            if (tree == null) {
                left.add(predicate);
            } else {
                known.add(predicate);
                trees.add(tree);
            }
        }
        question.put("whole", left.isEmpty());
        if (!known.isEmpty()) {
            JsonNode answer = Worker.ask(Settings.driverPython(), question), verdicts = answer.get("verdicts");
            isLookup = answer.get("lookup").asBoolean();
            for (int i = 0; i < known.size(); i++) {
                String verdict = verdicts.get(i).asText();
                if (!verdict.equals("no")) {
                    taken.add(known.get(i));
                    conditions.add(Worker.JSON.createObjectNode().put("verdict", verdict).set("tree", trees.get(i)));
                }
                if (!verdict.equals("exact")) {
                    left.add(known.get(i));
                }
            }
        }
        pushed = taken.toArray(new Predicate[0]);
        return left.toArray(new Predicate[0]);
    }

    @Override
    public Predicate[] pushedPredicates() {
        return pushed;
    }

    @Override
    public boolean supportCompletePushDown(Aggregation aggregation) {
        ask(aggregation);
        return aggregates != null && aggregates.rows() != null;
    }

    @Override
    public boolean pushAggregation(Aggregation aggregation) {
        if (aggregation != asked) {
            ask(aggregation);
        }
        if (aggregates != null && aggregates.rows() == null && !aggregates.hasParts()) {
            aggregates = null;
        }
        return aggregates != null;
    }

    private void ask(Aggregation aggregation) {
        asked = aggregation;
        averages.addAll(Aggregates.averages(aggregation));
        ObjectNode question = conditioned("aggregates");
        question.set("averages", averages);
        aggregates = Aggregates.of(aggregation, question);
    }

    /** Takes a limit for the tasks: Spark takes the rows that are too many. */
    @Override
    public boolean pushLimit(int rows) {
        if (aggregates == null) {
            limit = rows;
        }
        return aggregates == null;
    }

    @Override
    public void pruneColumns(StructType required) {
        schema = required;
    }

    @Override
    public Scan build() {
        if (aggregates != null && aggregates.rows() != null) {
            return Answer.of(aggregates);
        }
        if (isLookup) {
            JsonNode rows = Worker.ask(Settings.driverPython(), conditioned("lookup")).get("rows");
            if (!rows.isNull()) {
                String description = "fastpq lookup PushedFilters: " + Arrays.toString(pushed);
                return Answer.of(rows, schema, description + " ReadSchema: " + schema.catalogString());
            }
        }
        ObjectNode question = conditioned("plan");
        question.put("statistics", SQLConf.get().cboEnabled() || SQLConf.get().planStatsEnabled());
        if (limit != NO_LIMIT) {
            question.put("limit", limit);
        }
        if (aggregates != null) {
            aggregates.ask(question);
        }
        return new FastpqScan(schema, question, pushed, aggregates, stream);
    }

    private ObjectNode conditioned(String what) {
        ObjectNode question = question(what).put("lookup", isLookup);
        question.set("conditions", conditions);
        return question;
    }

    private ObjectNode question(String what) {
        ObjectNode question = Settings.question(what, options);
        question.put("table", table.json()).put("schema", schema.json());
        question.set("files", files);
        return question;
    }
}
