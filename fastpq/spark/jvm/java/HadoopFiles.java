package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;

/**
 * Files in Hadoop's filesystems, which a worker reads and writes through this process. Local files the worker opens itself.
 *
 * So every filesystem that Spark knows works, with Spark's own credentials.
 */
final class HadoopFiles implements AutoCloseable {
    private final Supplier<Configuration> configuration;
    private Path inputPath;
    private FSDataInputStream input;
    private FSDataOutputStream output;

    HadoopFiles(Supplier<Configuration> configuration) {
        this.configuration = configuration;
    }

    /** A local file's path, or another file's URL. */
    static String text(Path path) {
        return isLocal(path) ? path.toUri().getPath() : path.toString();
    }

    static boolean isLocal(Path path) {
        String scheme = path.toUri().getScheme();
        return scheme == null || scheme.equals("file");
    }

    /** Bytes from a file, by path, offset and size. Without a size, the answer is the file's own size in eight bytes. */
    byte[] read(JsonNode request) throws IOException {
        Path path = new Path(request.get("path").asText());
        if (!request.hasNonNull("size")) {
            long size = path.getFileSystem(configuration.get()).getFileStatus(path).getLen();
            return ByteBuffer.allocate(Long.BYTES).order(java.nio.ByteOrder.LITTLE_ENDIAN).putLong(size).array();
        }
        if (!path.equals(inputPath)) {
            closeInput();
            input = path.getFileSystem(configuration.get()).open(path);
            inputPath = path;
        }
        byte[] bytes = new byte[request.get("size").asInt()];
        input.readFully(request.get("offset").asLong(), bytes);
        return bytes;
    }

    /** Creates the file that a worker writes. */
    void create(Path path) throws IOException {
        output = path.getFileSystem(configuration.get()).create(path, false);
    }

    /** Appends bytes to the file that was created. */
    void write(ByteBuffer bytes) throws IOException {
        output.write(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
    }

    private void closeInput() throws IOException {
        if (input != null) {
            FSDataInputStream last = input;
            input = null;
            inputPath = null;
            last.close();
        }
    }

    /** Closes the files. The file that was written is complete. */
    @Override
    public void close() throws IOException {
        closeInput();
        if (output != null) {
            FSDataOutputStream last = output;
            output = null;
            last.close();
        }
    }
}
