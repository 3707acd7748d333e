package io.fastpq.spark;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** The base class for columns over shared memory. It has the nulls, and refuses to give values in other types. */
abstract class MemoryVector extends ColumnVector {
    private final int nulls;
    private final long validity;    // the bitmap's address, or 0 without nulls

    /** The memory of the values. It stays mapped while a thread can reach the column. */
    SharedMemory segment;

    MemoryVector(DataType type, int nulls, long validity) {
        super(type);
        this.nulls = nulls;
        this.validity = nulls == 0 ? 0 : validity;
    }

    @Override
    public void close() {}    // the reader or the garbage collector unmaps the memory

    @Override
    public boolean hasNull() {
        return nulls > 0;
    }

    @Override
    public int numNulls() {
        return nulls;
    }

    @Override
    public boolean isNullAt(int row) {
        return validity != 0 && (Platform.getByte(null, validity + (row >> 3)) >> (row & 7) & 1) == 0;
    }

    UnsupportedOperationException other() {
        return new UnsupportedOperationException(getClass().getSimpleName() + " of " + dataType().sql());
    }

    @Override
    public boolean getBoolean(int row) {
        throw other();
    }

    @Override
    public byte getByte(int row) {
        throw other();
    }

    @Override
    public short getShort(int row) {
        throw other();
    }

    @Override
    public int getInt(int row) {
        throw other();
    }

    @Override
    public long getLong(int row) {
        throw other();
    }

    @Override
    public float getFloat(int row) {
        throw other();
    }

    @Override
    public double getDouble(int row) {
        throw other();
    }

    @Override
    public ColumnarArray getArray(int row) {
        throw other();
    }

    @Override
    public ColumnarMap getMap(int row) {
        throw other();
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
        throw other();
    }

    @Override
    public UTF8String getUTF8String(int row) {
        throw other();
    }

    @Override
    public byte[] getBinary(int row) {
        throw other();
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        throw other();
    }
}
