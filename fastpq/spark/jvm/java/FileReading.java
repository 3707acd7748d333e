package io.fastpq.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumns;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import org.apache.spark.util.TaskCompletionListener;
import scala.runtime.AbstractFunction1;

/** Reads the rows in a part of a file, in an executor: as batches, or one row after the other. */
final class FileReading
    extends AbstractFunction1<PartitionedFile, scala.collection.Iterator<InternalRow>> implements Serializable {
    private static final long serialVersionUID = 1L;
    private final StructType required;
    private final StructType partition;
    private final String plan;
    private final String python;
    private final Broadcast<SerializableConfiguration> files;
    private final boolean inBatches;
    private final ScanMetrics metrics;
    private transient DataType[] types;        // of required, as files have them; null before the first part
    private transient InternalRow defaults;    // values for columns that a file does not have

    /**
     * A reader for one scan.
     *
     * @param required columns that Spark reads from files
     * @param partition columns whose values are in folder names
     * @param plan the plan for the workers, as JSON
     * @param python the workers' interpreter
     * @param files Hadoop's settings, for files that are not local
     * @param inBatches whether Spark takes column batches
     * @param metrics the scan's metrics, or null
     */
    FileReading(StructType required, StructType partition, String plan, String python, Broadcast<SerializableConfiguration> files,
        boolean inBatches, ScanMetrics metrics) {
        this.required = required;
        this.partition = partition;
        this.plan = plan;
        this.python = python;
        this.files = files;
        this.inBatches = inBatches;
        this.metrics = metrics;
    }

    @Override
    @SuppressWarnings("unchecked")
    public scala.collection.Iterator<InternalRow> apply(PartitionedFile file) {
        ObjectNode part = Worker.JSON.createObjectNode()
                              .put("path", HadoopFiles.text(file.toPath()))
                              .put("start", file.start())
                              .put("length", file.length())
                              .put("size", file.fileSize());
        HadoopFiles remote = new HadoopFiles(() -> files.value().value());
        if (types == null) {
            prepare();
        }
        FastpqReader reader = new FastpqReader(types, defaults, plan, part.toString(), python, remote);
        FileBatches batches = new FileBatches(reader, partition, file.partitionValues(), file.toPath(), metrics);
        TaskContext context = TaskContext.get();
        if (context != null) {
            context.addTaskCompletionListener((TaskCompletionListener) ended -> batches.close());
        }
        Object rows = inBatches ? batches : new FileRows(batches, required, partition);
        return (scala.collection.Iterator<InternalRow>) (scala.collection.Iterator<?>) rows;
    }

    private void prepare() {
        StructType stored = Types.stored(required);
        defaults = new GenericInternalRow(ResolveDefaultColumns.existenceDefaultValues(stored));
        types = List.of(stored.fields()).stream().map(StructField::dataType).toArray(DataType[] ::new);
    }

    /** The rows from batches, as rows in Spark's binary form. */
    private static final class FileRows extends scala.collection.AbstractIterator<Object> implements java.io.Closeable {
        private final FileBatches batches;
        private final UnsafeProjection projection;
        private Iterator<InternalRow> rows = java.util.Collections.emptyIterator();

        FileRows(FileBatches batches, StructType required, StructType partition) {
            this.batches = batches;
            StructType all = required;
            for (StructField field : partition.fields()) {
                all = all.add(field);
            }
            projection = UnsafeProjection.create(all);
        }

        @Override
        public boolean hasNext() {
            while (!rows.hasNext()) {
                if (!batches.hasNext()) {
                    return false;
                }
                rows = batches.next().rowIterator();
            }
            return true;
        }

        @Override
        public Object next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            return projection.apply(rows.next());
        }

        @Override
        public void close() {
            batches.close();
        }
    }
}
