package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.LongBuffer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.vectorized.ColumnVectorUtils;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reads a task's rows in columns, from memory that a worker shares.
 *
 * The worker fills one of two segments while Spark reads the other. Spark's next call gives back the segment that it has read.
 */
final class FastpqReader implements AutoCloseable {
    private static final byte[] NOTHING = {};

    private final DataType[] types;
    private final TaskWorkers workers;
    private final ReadingWorker reading;
    private final Worker worker;
    private final HadoopFiles files;
    private final InternalRow defaults;    // values for columns that a file does not have
    private ColumnarBatch batch;
    private boolean hasEnded = false;
    private boolean isClosed = false;
    private JsonNode counts = Worker.JSON.createObjectNode();

    /**
     * A reader for a part of a file.
     *
     * @param types the types of the batches' columns
     * @param defaults values for columns that a file does not have
     * @param plan the scan's plan, as JSON
     * @param part the part, as JSON
     * @param python the worker's interpreter
     * @param files files that are not local
     */
    FastpqReader(DataType[] types, InternalRow defaults, String plan, String part, String python, HadoopFiles files) {
        this.types = types;
        this.defaults = defaults;
        this.files = files;
        workers = TaskWorkers.current();
        reading = workers.take(python);
        worker = reading.worker;
        worker.serve(files);
        try {
            reading.request(plan, part);
        } catch (IOException error) {
            reading.close();
            throw FastpqException.lost(error);
        }
    }

    /** Whether there is a further batch, which is then in {@code get}. */
    boolean next() throws IOException {
        if (hasEnded) {
            return false;
        }
        if (batch != null) {
            batch = null;
            worker.send(Worker.NEXT, NOTHING);
        }
        while (true) {
            Worker.Message message = worker.receive();
            switch (message.kind()) {
                case Worker.SEGMENT:
                    reading.map(message.json());
                    break;
                case Worker.BATCH:
                    batch = batch(message.payload().asLongBuffer());
                    return true;
                case Worker.END:
                    hasEnded = true;
                    counts = message.json();
                    return false;
                default:
                    throw FastpqException.unknown("a message of kind " + message.kind() + " from a worker that reads");
            }
        }
    }

    private ColumnarBatch batch(LongBuffer numbers) {
        int segment = (int) numbers.get(), rows = (int) numbers.get();
        ColumnVector[] columns = new ColumnVector[types.length];
        for (int i = 0; i < columns.length; i++) {
            columns[i] = Vectors.read(numbers, reading.segment(segment), types[i]);
            if (columns[i] == null) {
                ConstantColumnVector constant = new ConstantColumnVector(rows, types[i]);
                ColumnVectorUtils.populate(constant, defaults, i);
                columns[i] = constant;
            }
        }
        return new ColumnarBatch(columns, rows);
    }

    /** The batch that {@code next} found. Its memory lasts until the next call. */
    ColumnarBatch get() {
        return batch;
    }

    /** What the worker has counted by the end of its task. Empty if the worker was lost. */
    JsonNode counts() {
        return counts;
    }

    /** Bytes that the worker has read from its file, once it has ended. */
    long bytesRead() {
        return counts.path("bytesRead").asLong();
    }

    /** Ends the process of the worker, while another thread waits for the worker in {@code next}. That thread calls {@code close}. */
    void interrupt() {
        worker.destroy();
    }

    /**
     * Ends the read, at its end or before: a worker that has rows left is told to stop, and asked whether it did.
     *
     * At the end the caller has read every batch, so the task's next part may use the worker and its memory. Before the end another
     * thread may still read a batch: Spark ends a task while the thread that feeds a script or a pipe is at work. The worker that was
     * told to stop does not write to that memory again.
     */
    @Override
    public void close() throws IOException {
        if (isClosed) {
            return;
        }
        isClosed = true;
        boolean isRead = hasEnded;
        hasEnded = true;
        try {
            if (!isRead) {
                Worker.Message last = worker.stop();
                counts = last == null ? counts : last.json();
            }
        } finally {
            if (isRead) {
                workers.giveBack(reading);
            } else {
                reading.leave();
            }
            files.close();
        }
    }
}
