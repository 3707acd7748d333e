package io.fastpq.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.types.StructType;

/** Makes the writers of a job's tasks on executors. */
final class FastpqWriterFactory implements DataWriterFactory {
    private static final long serialVersionUID = 1L;

    private final StructType schema;
    private final byte[] writer;
    private final String python;

    FastpqWriterFactory(StructType schema, byte[] writer, String python) {
        this.schema = schema;
        this.writer = writer;
        this.python = python;
    }

    @Override
    public DataWriter<InternalRow> createWriter(int partition, long attempt) {
        return new FastpqWriter(schema, writer, partition, attempt, python);
    }
}
