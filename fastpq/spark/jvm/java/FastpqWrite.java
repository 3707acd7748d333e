package io.fastpq.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Base64;
import java.util.function.Function;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.types.StructType;

/** A write of a dataset: the writer in Python checks it, names the job and commits; streams are written by the Python source. */
final class FastpqWrite implements WriteBuilder, SupportsTruncate, SupportsDynamicOverwrite, Write, BatchWrite {
    private final StructType schema;
    private final ObjectNode question;
    private final Function<Boolean, StreamingWrite> stream;
    private boolean overwrites = false;
    private String writer;      // pickled, and free of keys

    /**
     * A write.
     *
     * @param schema columns of the rows
     * @param question a question for planning: how to write
     * @param stream the same write as one of a stream; whether each batch replaces all rows
     */
    FastpqWrite(StructType schema, ObjectNode question, Function<Boolean, StreamingWrite> stream) {
        this.schema = schema;
        this.question = question;
        this.stream = stream;
    }

    @Override
    public WriteBuilder truncate() {
        overwrites = true;
        return this;
    }

    @Override
    public WriteBuilder overwriteDynamicPartitions() {
        overwrites = true;
        question.put("dynamic", true);
        return this;
    }

    @Override
    public Write build() {
        return this;
    }

    @Override
    public BatchWrite toBatch() {
        return this;
    }

    @Override
    public StreamingWrite toStreaming() {
        return stream.apply(overwrites);
    }

    @Override
    public String description() {
        return "fastpq " + question.get("options").path("path").asText();
    }

    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
        writer = Worker.ask(Settings.driverPython(), question.put("overwrite", overwrites)).get("writer").asText();
        return new FastpqWriterFactory(schema, Base64.getDecoder().decode(writer), Settings.executorPython());
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
        end("commit", messages);
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
        if (writer != null) {
            end("abort", messages);
        }
    }

    private void end(String how, WriterCommitMessage[] messages) {
        ObjectNode end = question.deepCopy().put("ask", how).put("writer", writer);
        ArrayNode pickled = end.putArray("messages");
        for (WriterCommitMessage message : messages) {
            if (message != null) {
                pickled.add(((FastpqWriter.Message) message).pickled());
            }
        }
        Worker.ask(Settings.driverPython(), end);
    }
}
