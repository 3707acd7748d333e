package io.fastpq.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.WriteToStream;
import org.apache.spark.sql.execution.datasources.DataSource;
import scala.Product;
import scala.runtime.BoxedUnit;

/**
 * Streams that fastpq's earlier jar, or its Python source, has begun. Spark's own file streams cannot go on with them: they read
 * other offsets, and hide the files that they have not written. Such a stream is refused with a word before it reads or writes.
 */
final class EarlierStreams {
    private static final String ADVICE = ". Go on with the format fastpq_python, which fastpq.spark.register(spark) registers";
    private static final String COMMITS = "_fastpq_streams", SPARK_LOG = "_spark_metadata", STREAM = "sql.streaming.queryId";

    private EarlierStreams() {}

    /** Refuses a stream that reads in this format from a checkpoint with offsets of fastpq's Python source. */
    static void refuse(LogicalPlan plan, Configuration hadoop) {
        if (!(plan instanceof WriteToStream)) {
            return;
        }
        WriteToStream stream = (WriteToStream) plan;
        int[] pythonSources = {0};
        boolean[] isRead = {false};
        stream.inputQuery().foreach(part -> {
            pythonSources[0] += part.nodeName().equals("StreamingRelationV2") ? 1 : 0;
            isRead[0] |= part.nodeName().equals("StreamingRelation") && isOfFormat(((Product) part).productElement(0));
            return BoxedUnit.UNIT;
        });
        if (isRead[0] && pythonOffsets(new Path(stream.resolvedCheckpointLocation(), "offsets"), hadoop) > pythonSources[0]) {
            throw new FastpqException("UnsupportedError",
                "the checkpoint " + stream.resolvedCheckpointLocation() + " is of a stream "
                    + "that read through Python, and Spark's own file stream has other offsets" + ADVICE
                    + ", or begin a new checkpoint");
        }
    }

    private static boolean isOfFormat(Object source) {
        String name = source instanceof DataSource ? ((DataSource) source).className() : "";
        return name.equalsIgnoreCase("fastpq") || name.equals(FastpqFileFormat.class.getName());
    }

    /** The number of sources in the checkpoint's last offsets that are of the Python source. Spark itself reports unreadable ones. */
    private static int pythonOffsets(Path folder, Configuration hadoop) {
        int count = 0;
        try {
            FileSystem files = folder.getFileSystem(hadoop);
            FileStatus last = null;
            for (FileStatus file : files.listStatus(folder, path -> path.getName().matches("\\d+"))) {
                if (last == null || number(file) > number(last)) {
                    last = file;
                }
            }
            for (String line : last == null ? new String[0] : text(files, last).split("\n")) {
                JsonNode offset = json(line);
                boolean isList = offset.path("files").isArray();    // of the first versions, which had no log
                count += isList || (offset.has("log") && offset.has("segments")) ? 1 : 0;
            }
        } catch (FileNotFoundException error) {
            return 0;    // a new stream
        } catch (IOException error) {
            throw FastpqException.unchecked(error);
        }
        return count;
    }

    private static long number(FileStatus file) {
        return Long.parseLong(file.getPath().getName());
    }

    private static String text(FileSystem files, FileStatus file) throws IOException {
        byte[] bytes = new byte[(int) file.getLen()];
        try (FSDataInputStream input = files.open(file.getPath())) {
            input.readFully(bytes);
        }
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** A line of the offsets: JSON, but for the first one. */
    private static JsonNode json(String line) throws IOException {
        try {
            return Worker.JSON.readTree(line);
        } catch (JsonProcessingException error) {
            return Worker.JSON.createObjectNode();
        }
    }

    /**
     * Refuses a stream that begins to write in this format to a folder with batches of fastpq's Python source.
     *
     * Spark has made the folder of its log by then, which hides all other files from readers even while it is empty. It goes.
     *
     * @param session the session that writes. A property of its context tells a stream
     * @param folder where Spark writes
     */
    static void refuseFolder(SparkSession session, Path folder, Configuration hadoop) {
        if (folder == null || session.sparkContext().getLocalProperty(STREAM) == null) {
            return;
        }
        try {
            FileSystem files = folder.getFileSystem(hadoop);
            Path log = new Path(folder, SPARK_LOG);
            boolean isFirst = files.exists(log) && isEmpty(files, new Path(log, "*"));
            if (!isFirst || isEmpty(files, new Path(new Path(folder, COMMITS), "*.json"))) {
                return;
            }
            files.delete(log, false);
        } catch (IOException error) {
            throw FastpqException.unchecked(error);
        }
        throw new FastpqException("UnsupportedError",
            "a stream has written to " + folder + " through Python, and the log of Spark's "
                + "own file stream would hide its files" + ADVICE + ", or begin in a new folder");
    }

    private static boolean isEmpty(FileSystem files, Path pattern) throws IOException {
        FileStatus[] matches = files.globStatus(pattern);
        return matches == null || matches.length == 0;
    }
}
