package io.fastpq.spark;

import java.io.Closeable;
import java.io.IOException;
import java.util.NoSuchElementException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.vectorized.ColumnVectorUtils;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The batches from a part of a file. The file's partition values are constant columns behind the others. */
final class FileBatches extends scala.collection.AbstractIterator<ColumnarBatch> implements Closeable {
    private final FastpqReader reader;
    private final StructType partition;
    private final InternalRow values;
    private final Path path;
    private final ScanMetrics metrics;    // or null
    private Boolean hasBatch;             // null until the next batch has been asked for
    private boolean isAsking = false;     // whether a thread waits for the next batch
    private boolean isClosed = false;

    FileBatches(FastpqReader reader, StructType partition, InternalRow values, Path path, ScanMetrics metrics) {
        this.reader = reader;
        this.partition = partition;
        this.values = values;
        this.path = path;
        this.metrics = metrics;
    }

    @Override
    public boolean hasNext() {
        if (hasBatch == null) {
            hasBatch = ask();
        }
        return hasBatch;
    }

    /** Waits for the next batch. After the end of the task there is none. */
    private boolean ask() {
        synchronized (this) {
            if (isClosed) {
                return false;
            }
            isAsking = true;
        }
        boolean isRead = false;
        try {
            isRead = reader.next();
        } catch (Throwable error) {
            if (!isClosed()) {    // else the error is that close() has ended the worker
                throw FastpqException.unchecked(error);
            }
        } finally {
            if (endAsking(isRead)) {
                release();
            }
        }
        return isRead;
    }

    private synchronized boolean isClosed() {
        return isClosed;
    }

    /** Notes that no thread waits for a batch, and returns whether the read is over. */
    private synchronized boolean endAsking(boolean isRead) {
        isAsking = false;
        isClosed |= !isRead;
        return isClosed;
    }

    @Override
    public ColumnarBatch next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        ColumnarBatch batch = reader.get();
        hasBatch = null;
        if (partition.isEmpty()) {
            return batch;
        }
        ColumnVector[] columns = new ColumnVector[batch.numCols() + partition.size()];
        for (int i = 0; i < batch.numCols(); i++) {
            columns[i] = batch.column(i);
        }
        for (int i = 0; i < partition.size(); i++) {
            ConstantColumnVector constant = new ConstantColumnVector(batch.numRows(), partition.apply(i).dataType());
            ColumnVectorUtils.populate(constant, values, i);
            columns[batch.numCols() + i] = constant;
        }
        return new ColumnarBatch(columns, batch.numRows());
    }

    /**
     * Ends the read. Spark calls this at the end of the task, perhaps while another thread waits for a batch: for a script of
     * TRANSFORM, or for a pipe. Then the worker ends, and that thread lets go of the rest.
     */
    @Override
    public void close() {
        synchronized (this) {
            if (isClosed) {
                return;
            }
            isClosed = true;
            if (isAsking) {
                reader.interrupt();
                return;
            }
        }
        release();
    }

    /** Gives the worker back, or ends it. */
    private void release() {
        try {
            reader.close();
        } catch (IOException error) {
            throw FastpqException.unchecked(error);
        } finally {
            count();
        }
    }

    /** Adds what the worker has counted to the scan's metrics, and the bytes that it read by itself to those of Spark's task. */
    @SuppressWarnings("deprecation")
    private void count() {
        if (metrics != null) {
            metrics.add(reader.counts());
        }
        if (HadoopFiles.isLocal(path) && reader.bytesRead() > 0) {
            FileSystem.getStatistics("file", org.apache.hadoop.fs.LocalFileSystem.class).incrementBytesRead(reader.bytesRead());
        }
    }
}
