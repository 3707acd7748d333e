package io.fastpq.spark;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.Buffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import sun.misc.Unsafe;

/** Memory of a worker, mapped into this process; the memory lives until both have let go of it. */
final class SharedMemory implements AutoCloseable {
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
     * Maps the first bytes of a file.
     *
     * @param path file, or descriptor of the worker below /proc
     * @param size bytes
     * @param writable whether this process writes
     */
    SharedMemory(String path, long size, boolean writable) throws IOException {
        StandardOpenOption[] options =
            writable
                ? new StandardOpenOption[] {StandardOpenOption.READ, StandardOpenOption.WRITE}
                : new StandardOpenOption[] {StandardOpenOption.READ};
        try (FileChannel file = FileChannel.open(Path.of(path), options)) {
            map = file.map(writable ? FileChannel.MapMode.READ_WRITE : FileChannel.MapMode.READ_ONLY, 0, size);
        }
        address = UNSAFE.getLong(map, ADDRESS);
    }

    @Override
    public void close() {
        if (map != null) {
            UNSAFE.invokeCleaner(map);
            map = null;
        }
    }
}
