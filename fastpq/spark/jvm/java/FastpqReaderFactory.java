package io.fastpq.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Makes the readers of a scan's tasks on executors. */
final class FastpqReaderFactory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1L;

    private final StructType schema;
    private final byte[] plan;
    private final String python;

    FastpqReaderFactory(StructType schema, byte[] plan, String python) {
        this.schema = schema;
        this.plan = plan;
        this.python = python;
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        throw new UnsupportedOperationException("fastpq reads columns, not rows");
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
        return new FastpqReader(schema, plan, ((FastpqScan.Task) partition).splits(), python);
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
        return true;
    }
}
