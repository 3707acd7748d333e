package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import org.apache.spark.SparkFiles;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reads the rows of a task in columns, from the shared memory of a worker.
 *
 * The worker fills one of two segments while Spark reads the other; Spark's next call gives the segment that it has read back.
 */
final class FastpqReader implements PartitionReader<ColumnarBatch> {
    private static final byte[] NOTHING = {};

    private final DataType[] types;
    private final Worker worker;
    private final SharedMemory[] segments = new SharedMemory[2];
    private ColumnarBatch batch;
    private boolean ended = false;

    FastpqReader(StructType schema, byte[] plan, byte[] splits, String python) {
        StructField[] fields = schema.fields();
        types = new DataType[fields.length];
        for (int i = 0; i < fields.length; i++) {
            types[i] = fields[i].dataType();
        }
        worker = new Worker(python);
        byte[] files = Worker.bytes(SparkFiles.getRootDirectory());
        ByteBuffer task = ByteBuffer.allocate(8 + files.length + plan.length + splits.length).order(ByteOrder.LITTLE_ENDIAN);
        task.putInt(files.length).putInt(plan.length).put(files).put(plan).put(splits);
        try {
            worker.request(Worker.READ, task.array());
        } catch (IOException error) {
            worker.close();
            throw new FastpqException(error.getClass().getSimpleName(), error.getMessage());
        }
    }

    @Override
    public boolean next() throws IOException {
        if (ended) {
            return false;
        }
        if (batch != null) {
            worker.send(Worker.NEXT, NOTHING);
            batch = null;
        }
        while (true) {
            Worker.Message message = worker.receive();
            switch (message.kind()) {
                case Worker.SEGMENT:
                    map(message.json());
                    break;
                case Worker.BATCH:
                    batch = batch(message.payload().asLongBuffer());
                    return true;
                case Worker.END:
                    ended = true;
                    return false;
                default:
                    throw new IllegalStateException("a message of kind " + message.kind() + " from a worker that reads");
            }
        }
    }

    private void map(JsonNode segment) throws IOException {
        int number = segment.get("segment").asInt();
        if (segments[number] != null) {
            segments[number].close();
        }
        segments[number] = new SharedMemory(segment.get("path").asText(), segment.get("size").asLong(), false);
    }

    private ColumnarBatch batch(LongBuffer numbers) {
        int segment = (int) numbers.get(), rows = (int) numbers.get();
        long memory = segments[segment] == null ? 0 : segments[segment].address;
        ColumnVector[] columns = new ColumnVector[types.length];
        for (int i = 0; i < columns.length; i++) {
            columns[i] = Vectors.read(numbers, memory, types[i]);
        }
        return new ColumnarBatch(columns, rows);
    }

    @Override
    public ColumnarBatch get() {
        return batch;
    }

    /** Ends the read, at its end or before: a worker that has rows left is told to stop, and asked whether it did. */
    @Override
    public void close() throws IOException {
        try {
            if (!ended) {
                ended = true;
                worker.stop();
            }
        } finally {
            worker.close();
            for (SharedMemory segment : segments) {
                if (segment != null) {
                    segment.close();
                }
            }
        }
    }
}
