package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.spark.SparkFiles;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Writes the rows of a task: gathers them into columns, and copies batches of columns into the shared memory of a worker.
 *
 * The worker takes a batch out of the memory at once, and encodes while further rows are gathered.
 */
final class FastpqWriter implements DataWriter<InternalRow> {
    private static final int MOST_ROWS = 1 << 16;           // of a batch
    private static final long MOST_BYTES = 32L << 20;       // of a batch, unless a row has more
    private static final byte[] NOTHING = {};

    /** The files of a task, as the worker names them: a pickled commit message. */
    record Message(String pickled) implements WriterCommitMessage {}

    private final Worker worker;
    private final Gatherer[] columns;
    private SharedMemory segment;
    private long segmentSize = 0;
    private int rows = 0;
    private long bytes = 0;             // of the rows of the batch, as Spark holds them
    private boolean isTaken = true;     // whether the worker has taken the last batch
    private boolean closed = false;

    /**
     * A writer of a task.
     *
     * @param schema columns of the rows
     * @param writer the pickled writer of the job
     * @param partition number of the task
     * @param attempt number of the attempt
     */
    FastpqWriter(StructType schema, byte[] writer, int partition, long attempt, String python) {
        StructField[] fields = schema.fields();
        columns = new Gatherer[fields.length];
        for (int i = 0; i < fields.length; i++) {
            columns[i] = Gatherer.of(fields[i].dataType());
        }
        worker = new Worker(python);
        byte[] files = Worker.bytes(SparkFiles.getRootDirectory());
        ByteBuffer task = ByteBuffer.allocate(20 + files.length + writer.length).order(ByteOrder.LITTLE_ENDIAN);
        task.putInt(partition).putLong(attempt).putInt(files.length).putInt(writer.length).put(files).put(writer);
        try {
            worker.request(Worker.WRITE, task.array());
        } catch (IOException error) {
            worker.close();
            throw new FastpqException(error.getClass().getSimpleName(), error.getMessage());
        }
    }

    @Override
    public void write(InternalRow row) throws IOException {
        for (int i = 0; i < columns.length; i++) {
            columns[i].append(row, i);
        }
        rows++;
        bytes = row instanceof UnsafeRow ? bytes + ((UnsafeRow) row).getSizeInBytes() : gathered();
        if (rows >= MOST_ROWS || bytes >= MOST_BYTES) {
            flush();
        }
    }

    private long gathered() {
        long sum = 0;
        for (Gatherer column : columns) {
            sum += column.bytes();
        }
        return sum;
    }

    private void flush() throws IOException {
        Description description = new Description();
        for (Gatherer column : columns) {
            column.describeAll(description);
        }
        await();
        if (segment == null || description.end > segmentSize) {
            reserve(description.end);
        }
        description.copyTo(segment.address);
        ByteBuffer numbers = ByteBuffer.allocate(8 * (2 + description.numbers.size())).order(ByteOrder.LITTLE_ENDIAN);
        numbers.putLong(rows).putLong(description.end);
        description.numbers.forEach(numbers::putLong);
        worker.send(Worker.BATCH, numbers.array());
        isTaken = false;
        for (Gatherer column : columns) {
            column.clear();
        }
        rows = 0;
        bytes = 0;
    }

    private void await() throws IOException {
        if (!isTaken) {
            expect(Worker.NEXT);
            isTaken = true;
        }
    }

    private void reserve(long size) throws IOException {
        worker.send(Worker.RESERVE, ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(Math.max(1, size)).array());
        JsonNode found = expect(Worker.SEGMENT).json();
        if (segment != null) {
            segment.close();
        }
        segmentSize = found.get("size").asLong();
        segment = new SharedMemory(found.get("path").asText(), segmentSize, true);
    }

    private Worker.Message expect(int kind) throws IOException {
        Worker.Message message = worker.receive();
        if (message.kind() != kind) {
            throw new IllegalStateException("a message of kind " + message.kind() + " from a worker that writes");
        }
        return message;
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
        if (rows > 0) {
            flush();
        }
        await();
        worker.send(Worker.END, NOTHING);
        return new Message(expect(Worker.ANSWER).json().get("message").asText());
    }

    @Override
    public void abort() {
        worker.stop();
    }

    @Override
    public void close() throws IOException {
        if (closed) {
            return;
        }
        closed = true;
        worker.close();
        for (Gatherer column : columns) {
            column.close();
        }
        if (segment != null) {
            segment.close();
        }
    }
}
