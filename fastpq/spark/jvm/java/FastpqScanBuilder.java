package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;

/** Takes columns and conditions from Spark's plan; planning in Python decides which conditions it answers for. */
final class FastpqScanBuilder implements SupportsPushDownRequiredColumns, SupportsPushDownV2Filters {
    private final StructType table;
    private final Map<String, String> options;
    private final JsonNode files;
    private final Supplier<ScanBuilder> stream;
    private StructType schema;
    private Predicate[] pushed = {};
    private ArrayNode conditions = Worker.JSON.createArrayNode();

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
        if (!known.isEmpty()) {
            JsonNode verdicts = Worker.ask(Settings.driverPython(), question).get("verdicts");
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
    public void pruneColumns(StructType required) {
        schema = required;
    }

    @Override
    public Scan build() {
        ObjectNode question = question("plan");
        question.set("conditions", conditions);
        return new FastpqScan(schema, question, pushed, stream);
    }

    private ObjectNode question(String what) {
        ObjectNode question = Settings.question(what, options);
        question.put("table", table.json()).put("schema", schema.json());
        question.set("files", files);
        return question;
    }
}
