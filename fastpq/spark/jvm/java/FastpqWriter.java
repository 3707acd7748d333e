package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Writes a file's rows: gathers them into columns, and copies batches into memory that a worker shares.
 *
 * The worker takes a batch out of the memory at once, and encodes while further rows are gathered.
 */
final class FastpqWriter implements AutoCloseable {
    private static final int MOST_ROWS = 1 << 16;        // of a batch
    private static final long MOST_BYTES = 32L << 20;    // in a batch, unless a row has more
    private static final byte[] NOTHING = {};

    private final Worker worker;
    private final Gatherer[] columns;
    private final HadoopFiles files;
    private SharedMemory segment;
    private long segmentSize = 0;
    private int rows = 0;
    private long bytes = 0;            // the batch's rows, as Spark holds them
    private boolean isTaken = true;    // whether the worker has taken the last batch
    private boolean isClosed = false;

    /**
     * A writer for one file.
     *
     * @param schema the rows' columns
     * @param task the request's payload
     * @param python the worker's interpreter
     * @param files the file to write, if it is not local
     */
    FastpqWriter(StructType schema, byte[] task, String python, HadoopFiles files) {
        StructField[] fields = schema.fields();
        columns = new Gatherer[fields.length];
        for (int i = 0; i < fields.length; i++) {
            columns[i] = Gatherer.of(fields[i].dataType());
        }
        this.files = files;
        worker = new Worker(python, files);
        try {
            worker.request(Worker.WRITE, task);
        } catch (IOException error) {
            worker.close();
            throw FastpqException.lost(error);
        }
    }

    /** Takes a row. */
    void write(InternalRow row) throws IOException {
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
        ColumnsDescription description = new ColumnsDescription();
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
        JsonNode memory = expect(Worker.SEGMENT).json();
        if (segment != null) {
            segment.close();
            segment = null;
        }
        segmentSize = memory.get("size").asLong();
        segment = SharedMemory.of(memory, true);
    }

    private Worker.Message expect(int kind) throws IOException {
        Worker.Message message = worker.receive();
        if (message.kind() != kind) {
            throw FastpqException.unknown("a message of kind " + message.kind() + " from a worker that writes");
        }
        return message;
    }

    /** Writes the last rows, and completes the file. */
    void commit() throws IOException {
        if (rows > 0) {
            flush();
        }
        await();
        worker.send(Worker.END, NOTHING);
        expect(Worker.ANSWER);
    }

    /** Gives the worker back. A worker whose file is not complete is ended. */
    @Override
    public void close() throws IOException {
        if (isClosed) {
            return;
        }
        isClosed = true;
        try (files; worker) {
            worker.stop();
        } finally {
            for (Gatherer column : columns) {
                column.close();
            }
            if (segment != null) {
                segment.close();
            }
        }
    }
}
