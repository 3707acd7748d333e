package io.fastpq.spark;

import java.io.IOException;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructType;

/** Makes a job's writers, one for each file. */
final class FastpqOutput extends OutputWriterFactory {
    private static final long serialVersionUID = 1L;
    private final String plan;
    private final String extension;
    private final String python;
    private final boolean hasMaterialBesideFiles;
    private final boolean hasUniqueNames;

    /**
     * A factory for one job.
     *
     * @param plan the plan for the workers, as JSON
     * @param extension ending for file names
     * @param python the workers' interpreter
     * @param hasMaterialBesideFiles whether workers write key material beside each file, and not into it
     * @param hasUniqueNames whether each file's name occurs only once in the table, also in other partitions
     */
    FastpqOutput(String plan, String extension, String python, boolean hasMaterialBesideFiles, boolean hasUniqueNames) {
        this.plan = plan;
        this.extension = extension;
        this.python = python;
        this.hasMaterialBesideFiles = hasMaterialBesideFiles;
        this.hasUniqueNames = hasUniqueNames;
    }

    /** Spark asks once for each file, and otherwise gives a task's files in different partitions one name. */
    @Override
    public String getFileExtension(TaskAttemptContext context) {
        return hasUniqueNames ? "-" + UUID.randomUUID().toString().replace("-", "") + extension : extension;
    }

    @Override
    public OutputWriter newInstance(String path, StructType rows, TaskAttemptContext context) {
        Path target = new Path(path);
        if (hasMaterialBesideFiles && !isInAttemptFolder(target, context)) {
            throw new FastpqException("UnsupportedError",
                "key material beside a file that is outside of the committer's folder "
                    + "(in a partition with a location of its own, or of a stream): Spark commits the file alone, so that the key material "
                    + "could be lost. Leave out parquet.encryption.key.material.store.internally=false");
        }
        Configuration hadoop = context.getConfiguration();
        HadoopFiles files = new HadoopFiles(() -> hadoop);
        try {
            if (HadoopFiles.isLocal(target)) {
                target.getFileSystem(hadoop).mkdirs(target.getParent());
            } else {
                files.create(target);
            }
        } catch (IOException error) {
            throw FastpqException.unchecked(error);
        }
        boolean isOpen = false;
        try {
            FastpqWriter writer =
                new FastpqWriter(Types.stored(rows), Worker.task(plan, HadoopFiles.text(target)), python, files);
            isOpen = true;
            return new FileOutput(path, writer);
        } finally {
            if (!isOpen) {
                close(files);
            }
        }
    }

    /** Closes files after an error, which says more than one of closing. */
    private static void close(HadoopFiles files) {
        try {
            files.close();
        } catch (IOException error) {
            // the committer removes the file
        }
    }

    /** Whether a file is in the folder of a task's attempt, which the committer moves as a whole. */
    private static boolean isInAttemptFolder(Path file, TaskAttemptContext context) {
        String folder = FileOutputCommitter.PENDING_DIR_NAME + Path.SEPARATOR + context.getTaskAttemptID();
        return file.toUri().getPath().contains(Path.SEPARATOR + folder + Path.SEPARATOR);
    }

    /** Writes one file. */
    private static final class FileOutput extends OutputWriter {
        private final String path;
        private final FastpqWriter writer;
        private boolean isBroken = false;

        FileOutput(String path, FastpqWriter writer) {
            this.path = path;
            this.writer = writer;
        }

        @Override
        public void write(InternalRow row) {
            boolean isWritten = false;
            try {
                writer.write(row);
                isWritten = true;
            } catch (IOException error) {
                throw FastpqException.unchecked(error);
            } finally {
                isBroken |= !isWritten;
            }
        }

        /** Completes the file. Spark calls this after an error too: then it only ends the worker, and the committer removes the file. */
        @Override
        public void close() {
            try (FastpqWriter last = writer) {
                if (!isBroken) {
                    last.commit();
                }
            } catch (IOException error) {
                throw FastpqException.unchecked(error);
            }
        }

        @Override
        public String path() {
            return path;
        }
    }
}
