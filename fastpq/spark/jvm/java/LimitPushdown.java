package io.fastpq.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.catalyst.expressions.Descending$;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.types.StructField;
import scala.PartialFunction$;

/**
 * Tells the workers how many rows a query takes at most from each part of a file: the first ones, or the first ones in an order.
 *
 * Spark still takes the rows itself, from those of all parts. Conditions on folders alone may stand between: they are true for all
 * rows of a file or for none.
 */
final class LimitPushdown extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        if (!Pushdown.isOn()) {
            return plan;
        }
        return plan.transformDown(
            PartialFunction$.MODULE$.fromFunction(part -> part instanceof LocalLimit ? pushed((LocalLimit) part) : part));
    }

    private static LogicalPlan pushed(LocalLimit limit) {
        if (!(limit.limitExpr() instanceof Literal) || !(((Literal) limit.limitExpr()).value() instanceof Integer)) {
            return limit;
        }
        int rows = (Integer) ((Literal) limit.limitExpr()).value();
        LogicalPlan below = limit.child();
        while (below instanceof Project) {
            below = ((Project) below).child();
        }
        if (below instanceof Sort) {
            return ((Sort) below).global() ? ordered(limit, (Sort) below, rows) : limit;
        }
        ScanBelow scan = ScanBelow.of(limit.child());
        ObjectNode plan = Worker.JSON.createObjectNode().put("limit", rows);
        return scan == null ? limit : scan.changedIn(limit, new Pushdown(plan, "[limit " + rows + "]"));
    }

    private static LogicalPlan ordered(LocalLimit limit, Sort sort, int rows) {
        ScanBelow scan = ScanBelow.of(sort.child());
        SortOrder order = sort.order().head();
        StructField field = scan == null ? null : scan.column(order.child());
        if (field == null) {
            return limit;
        }
        boolean isDescending = order.direction() == Descending$.MODULE$;
        ObjectNode plan = Worker.JSON.createObjectNode();
        plan.putObject("order")
            .put("column", field.name())
            .put("is_descending", isDescending)
            .put("has_nulls_first", order.nullOrdering() == NullsFirst$.MODULE$)
            .put("rows", rows);
        return scan.changedIn(
            limit, new Pushdown(plan, "[first " + rows + " by " + field.name() + (isDescending ? " desc]" : "]")));
    }
}
