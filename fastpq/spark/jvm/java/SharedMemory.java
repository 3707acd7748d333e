package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.Buffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.atomic.AtomicLong;
import sun.misc.Unsafe;

/** A worker's memory, mapped into this process. The memory lives until both have let it go. */
final class SharedMemory implements AutoCloseable {
    private static final long COLLECTED_BYTES = 512L << 20;
    private static final AtomicLong LEFT_BYTES = new AtomicLong();    // since the last collection that this class asked for
    private static final Unsafe UNSAFE;
    private static final long ADDRESS;

    static {
        try {
            Field unsafe = Unsafe.class.getDeclaredField("theUnsafe");
            unsafe.setAccessible(true);
            UNSAFE = (Unsafe) unsafe.get(null);
            ADDRESS = UNSAFE.objectFieldOffset(Buffer.class.getDeclaredField("address"));
        } catch (ReflectiveOperationException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    private MappedByteBuffer map;

    /** First byte. */
    final long address;

    /**
     * Maps a worker's segment.
     *
     * @param segment number, path and size, as the worker sent them
     * @param writable whether this process writes
     * @throws FastpqException.Fatal the system refuses. That says nothing about the bytes of a file
     */
    static SharedMemory of(JsonNode segment, boolean writable) {
        try {
            return new SharedMemory(segment.get("path").asText(), segment.get("size").asLong(), writable);
        } catch (IOException | RuntimeException error) {
            if (error instanceof ClosedByInterruptException) {
                throw FastpqException.unchecked(error);
            }
            throw FastpqException.notMapped(segment.toString(), error);
        }
    }

    /**
     * Maps a file's first bytes.
     *
     * @param path file, or the worker's descriptor below /proc
     * @param size bytes
     * @param writable whether this process writes
     */
    private SharedMemory(String path, long size, boolean writable) throws IOException {
        StandardOpenOption[] options = writable ? new StandardOpenOption[] {StandardOpenOption.READ, StandardOpenOption.WRITE}
                                                : new StandardOpenOption[] {StandardOpenOption.READ};
        try (FileChannel file = FileChannel.open(Path.of(path), options)) {
            map = file.map(writable ? FileChannel.MapMode.READ_WRITE : FileChannel.MapMode.READ_ONLY, 0, size);
        }
        address = UNSAFE.getLong(map, ADDRESS);
    }

    /**
     * Leaves the memory to the garbage collector, which unmaps it when no thread can reach this object.
     *
     * The collector does not know the size of the memory. So every COLLECTED_BYTES that are left ask for a collection.
     */
    void leave() {
        if (LEFT_BYTES.addAndGet(map.capacity()) >= COLLECTED_BYTES) {
            LEFT_BYTES.set(0);
            System.gc();
        }
    }

    /** Unmaps the memory at once. A thread that still reads it ends the process: use {@code leave} unless there is none. */
    @Override
    public void close() {
        if (map != null) {
            UNSAFE.invokeCleaner(map);
            map = null;
        }
    }
}
