package io.fastpq.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.PartialFunction$;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Takes count, min and max from the workers. A part of a file then has one row, with the aggregates of its rows.
 *
 * A worker knows an aggregate from the footer if the statistics are exact. Otherwise it reads the column. Either way the plan is the
 * same, so that no file is opened while Spark plans. Groups must be of columns whose values are in folder names.
 */
final class AggregatePushdown extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        if (!Pushdown.isOn()) {
            return plan;
        }
        return plan.transformDown(
            PartialFunction$.MODULE$.fromFunction(part -> part instanceof Aggregate ? pushed((Aggregate) part) : part));
    }

    private static LogicalPlan pushed(Aggregate aggregate) {
        ScanBelow scan = ScanBelow.of(aggregate.child());
        if (scan == null || !scan.onlyRenames()
            || !CollectionConverters.asJava(aggregate.groupingExpressions()).stream().allMatch(scan::isOfFolders)) {
            return aggregate;
        }
        Partials partials = new Partials(scan);
        List<NamedExpression> results = new ArrayList<>();
        for (NamedExpression result : CollectionConverters.asJava(aggregate.aggregateExpressions())) {
            Expression replaced = partials.replaced((Expression) result);
            if (replaced == null) {
                return aggregate;
            }
            results.add((NamedExpression) replaced);
        }
        LogicalPlan child = partials.plan();
        return child == null ? aggregate
                             : aggregate.copy(aggregate.groupingExpressions(), ScanBelow.seq(results), child, aggregate.hint());
    }

    /** The aggregates of one scan, as columns of its parts. */
    private static final class Partials {
        private static final String PREFIX = "fastpq ";    // of the columns' names
        private final ScanBelow scan;
        private final Map<String, AttributeReference> columns = new LinkedHashMap<>();    // by kind and name
        private final ObjectNode plan = Worker.JSON.createObjectNode();
        private final ObjectNode aggregates = plan.putObject("aggregates");
        private StructType sources = new StructType();
        private boolean areAllKnown = true;

        Partials(ScanBelow scan) {
            this.scan = scan;
        }

        /** An expression over the parts' rows in place of one over the file's rows, or null if there is none. */
        Expression replaced(Expression result) {
            Expression replaced = result.transformUp(PartialFunction$.MODULE$.fromFunction(
                part -> part instanceof AggregateExpression ? combined((AggregateExpression) part) : part));
            return areAllKnown ? replaced : null;
        }

        private Expression combined(AggregateExpression aggregate) {
            Expression combined =
                aggregate.isDistinct() || aggregate.filter().isDefined() || aggregate.mode() != Complete$.MODULE$
                ? null
                : combined(aggregate.aggregateFunction());
            areAllKnown &= combined != null;
            return combined == null ? aggregate : combined;
        }

        private Expression combined(AggregateFunction function) {
            if (function instanceof Count && ((Count) function).children().size() == 1) {
                return count(((Count) function).children().head());
            }
            if (!(function instanceof Min || function instanceof Max)) {
                return null;
            }
            boolean isMin = function instanceof Min;
            Expression child = isMin ? ((Min) function).child() : ((Max) function).child();
            StructField field = scan.column(child);
            Expression partial = field == null ? child : partial(isMin ? "min" : "max", field, field.dataType());
            if (field == null && !scan.isOfFolders(child)) {
                return null;
            }
            return (isMin ? new Min(partial) : new Max(partial)).toAggregateExpression();
        }

        private Expression count(Expression child) {
            StructField field = scan.column(child);
            if (field != null) {
                return total(partial("count", field, DataTypes.LongType));
            }
            if (!scan.isOfFolders(child)) {
                return null;
            }
            Expression rows = partial("rows", null, DataTypes.LongType);
            boolean isValue = child instanceof Literal && ((Literal) child).value() != null;
            return total(isValue ? rows : new If(new IsNotNull(child), rows, Literal$.MODULE$.apply(0L)));
        }

        private static Expression total(Expression counts) {
            return new Coalesce(ScanBelow.seq(List.of(new Sum(counts).toAggregateExpression(), Literal$.MODULE$.apply(0L))));
        }

        private AttributeReference partial(String kind, StructField source, DataType type) {
            String name = source == null ? kind : kind + " " + source.name();
            return columns.computeIfAbsent(name, key -> {
                aggregates.putArray(PREFIX + name).add(kind).add(source == null ? null : source.name());
                if (source != null && !List.of(sources.fieldNames()).contains(source.name())) {
                    sources = sources.add(source);
                }
                StructField field = new StructField(PREFIX + name, type, true, Metadata.empty());
                return DataTypeUtils.toAttributes(new StructType(new StructField[] {field})).head();
            });
        }

        /** The scan of the aggregates, or null if a folder's column has the name of one of them. */
        LogicalPlan plan() {
            for (String folder : scan.relation.partitionSchema().fieldNames()) {
                if (folder.startsWith(PREFIX)) {
                    return null;
                }
            }
            plan.put("columns", Types.stored(sources).json());
            Pushdown pushdown = new Pushdown(plan, "[" + String.join(", ", columns.keySet()) + "]");
            return scan.replaced(pushdown, new ArrayList<>(columns.values()));
        }
    }
}
