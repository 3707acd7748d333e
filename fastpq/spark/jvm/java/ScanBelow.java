package io.fastpq.spark;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.PartialFunction$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A scan in this format that is below a part of a plan, with only projections and conditions on folders between them. */
final class ScanBelow {
    final LogicalRelation leaf;
    final HadoopFsRelation relation;
    private final Deque<LogicalPlan> between;    // projections and conditions above the leaf, the lowest one first
    private final Map<ExprId, AttributeReference> columns = new HashMap<>();    // columns of files, by their names in the plan
    private final List<AttributeReference> folderColumns = new ArrayList<>();
    private final List<Expression> folderValues = new ArrayList<>();    // those columns, and what projections make from them
    private boolean onlyRenames = true;

    private ScanBelow(LogicalRelation leaf, Deque<LogicalPlan> between) {
        this.leaf = leaf;
        this.between = between;
        relation = (HadoopFsRelation) leaf.relation();
        boolean isCaseSensitive = SQLConf.get().caseSensitiveAnalysis();
        for (AttributeReference column : CollectionConverters.asJava(leaf.output())) {
            String name = column.name();
            if (hasName(relation.partitionSchema(), isCaseSensitive ? name::equals : name::equalsIgnoreCase)) {
                folderColumns.add(column);
                folderValues.add(column);
            } else if (hasName(relation.dataSchema(), name::equals)) {    // others are columns of metadata
                columns.put(column.exprId(), column);
            }
        }
    }

    private static boolean hasName(StructType schema, Predicate<String> isName) {
        return List.of(schema.fieldNames()).stream().anyMatch(isName);
    }

    /** The scan below a plan's part, or null if there is another plan, or a scan to which the planner has already left work. */
    static ScanBelow of(LogicalPlan part) {
        Deque<LogicalPlan> between = new ArrayDeque<>();
        LogicalPlan plan = part;
        while (plan instanceof Filter || plan instanceof Project) {
            between.addFirst(plan);
            plan = plan.children().head();
        }
        if (!FastpqExtensions.reads(plan) || plan.isStreaming()) {
            return null;
        }
        ScanBelow scan = new ScanBelow((LogicalRelation) plan, between);
        boolean isPlain = ((FastpqFileFormat) scan.relation.fileFormat()).hasNoPushdown();
        return isPlain && scan.addNames() ? scan : null;
    }

    /** Learns the names that projections give. False if a condition is on more than folders. */
    private boolean addNames() {
        for (LogicalPlan plan : between) {
            if (plan instanceof Filter && !isOfFolders(((Filter) plan).condition())) {
                return false;
            }
            if (plan instanceof Project) {
                CollectionConverters.asJava(((Project) plan).projectList()).forEach(this::addName);
            }
        }
        return true;
    }

    private void addName(NamedExpression entry) {
        if (!(entry instanceof Alias)) {
            return;
        }
        Expression value = ((Alias) entry).child();
        if (isOfFolders(value)) {
            folderValues.add((Expression) entry.toAttribute());
        } else if (value instanceof AttributeReference && columns.containsKey(((AttributeReference) value).exprId())) {
            columns.put(entry.exprId(), columns.get(((AttributeReference) value).exprId()));
        } else {
            onlyRenames = false;
        }
    }

    /** Whether projections choose and rename columns of files, and do no more with them. */
    boolean onlyRenames() {
        return onlyRenames;
    }

    /** Whether an expression has one value for all rows of a file, which the file's folders tell. */
    boolean isOfFolders(Expression expression) {
        return expression.deterministic()
            && expression.references().subsetOf(AttributeSet$.MODULE$.apply(CollectionConverters.asScala(folderValues)));
    }

    /** The field for a column that files have and that the workers can compare, or null. */
    StructField column(Expression expression) {
        if (!(expression instanceof AttributeReference)) {
            return null;
        }
        AttributeReference column = columns.get(((AttributeReference) expression).exprId());
        if (column == null || FilterTrees.kind(column.dataType()) == null
            || Types.hasDefault(relation.dataSchema(), new String[] {column.name()})) {
            return null;
        }
        return new StructField(column.name(), column.dataType(), true, column.metadata());
    }

    /**
     * The plan from the scan up, in which the workers return other columns.
     *
     * @param pushdown what the workers do
     * @param replacements columns that the workers return instead of the files' columns
     */
    LogicalPlan replaced(Pushdown pushdown, List<AttributeReference> replacements) {
        StructType schema = new StructType();
        for (AttributeReference column : replacements) {
            schema = schema.add(column.name(), column.dataType(), true);
        }
        List<AttributeReference> output = new ArrayList<>(replacements);
        output.addAll(folderColumns);
        HadoopFsRelation changed = relation.copy(relation.location(), relation.partitionSchema(), schema, Option.empty(),
            new FastpqFileFormat(pushdown), relation.options(), relation.sparkSession());
        LogicalPlan plan = leaf.copy(changed, seq(output), leaf.catalogTable(), leaf.isStreaming(), leaf.stream());
        for (LogicalPlan above : between) {
            plan = above instanceof Filter ? new Filter(((Filter) above).condition(), plan)
                                           : new Project(projection((Project) above, replacements), plan);
        }
        return plan;
    }

    /** A plan above the scan, in which the workers know more about what it needs. The scan's columns stay. */
    LogicalPlan changedIn(LogicalPlan plan, Pushdown pushdown) {
        HadoopFsRelation changed = relation.copy(relation.location(), relation.partitionSchema(), relation.dataSchema(),
            relation.bucketSpec(), new FastpqFileFormat(pushdown), relation.options(), relation.sparkSession());
        LogicalPlan scan = leaf.copy(changed, leaf.output(), leaf.catalogTable(), leaf.isStreaming(), leaf.stream());
        return plan.transformDown(PartialFunction$.MODULE$.fromFunction(part -> part == leaf ? scan : part));
    }

    private Seq<NamedExpression> projection(Project project, List<AttributeReference> replacements) {
        List<NamedExpression> entries = new ArrayList<>();
        for (NamedExpression entry : CollectionConverters.asJava(project.projectList())) {
            if (isOfFolders((Expression) entry)) {
                entries.add(entry);
            }
        }
        entries.addAll(replacements);
        return seq(entries);
    }

    static <T> Seq<T> seq(List<T> list) {
        return CollectionConverters.asScala(list).toSeq();
    }
}
