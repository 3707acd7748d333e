package io.fastpq.spark;

import org.apache.spark.unsafe.Platform;

/** Bytes outside the heap that grow at their end. */
final class GrowingMemory implements AutoCloseable {
    private static final long LEAST = 1 << 12;
    private static final long KEPT = 16 << 20;    // bytes kept from one batch to the next

    private long address = 0, capacity = 0, size = 0;

    /** Number of bytes. */
    long size() {
        return size;
    }

    /** Makes the buffer longer. Returns the address where the new bytes begin. Their values are undefined. */
    long extend(long bytes) {
        long end = size + bytes;
        if (end > capacity) {
            long larger = Math.max(LEAST, Math.max(end, 2 * capacity));
            address = address == 0 ? Platform.allocateMemory(larger) : Platform.reallocateMemory(address, capacity, larger);
            capacity = larger;
        }
        long place = address + size;
        size = end;
        return place;
    }

    /** Address of a byte. */
    long at(long offset) {
        return address + offset;
    }

    void copyTo(long target) {
        Platform.copyMemory(null, address, null, target, size);
    }

    /** Leaves no bytes. Memory stays for the next ones, unless there is much. */
    void clear() {
        size = 0;
        if (capacity > KEPT) {
            close();
        }
    }

    @Override
    public void close() {
        if (address != 0) {
            Platform.freeMemory(address);
            address = 0;
        }
        capacity = 0;
        size = 0;
    }
}
