package io.fastpq.spark;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.OutputCommitter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.parquet.hadoop.ParquetOutputCommitter;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Spark's committer for Parquet files, with a folder below {@code _temporary} for each job.
 *
 * All jobs share a folder with Spark's own committer. Of two jobs that append at the same time, the one that ends first commits the
 * other's finished tasks and removes its remaining files.
 */
public final class FastpqCommitter extends ParquetOutputCommitter {
    public FastpqCommitter(Path output, TaskAttemptContext context) throws IOException {
        super(output, context);
    }

    /** Makes this class a job's committer, unless the session names one (spark.sql.parquet.output.committer.class). */
    static void use(Configuration job) {
        if (job.get(SQLConf.PARQUET_OUTPUT_COMMITTER_CLASS().key()) == null) {
            job.setClass(SQLConf.OUTPUT_COMMITTER_CLASS().key(), FastpqCommitter.class, OutputCommitter.class);
            // the name of the job's folder
            job.setInt(MRJobConfig.APPLICATION_ATTEMPT_ID, ThreadLocalRandom.current().nextInt(1, Integer.MAX_VALUE));
        }
    }

    /** Removes the job's folder, and the folder for all jobs if it is empty. */
    @Override
    @SuppressWarnings("deprecation")    // Hadoop's own committers still clean up here
    public void cleanupJob(JobContext context) throws IOException {
        Path own = getJobAttemptPath(context), all = own.getParent();
        FileSystem files = own.getFileSystem(context.getConfiguration());
        files.delete(own, true);
        try {
            Path resolved = files.resolvePath(all);
            if (HadoopFiles.isLocal(resolved)) {    // Hadoop lists the folder first, then deletes all that is in it by then
                Files.delete(Paths.get(resolved.toUri().getPath()));
            } else if (files.listStatus(all).length == 0) {
                files.delete(all, false);
            }
        } catch (IOException error) {
            // the folder is in use by another job, or was removed by one
        }
    }
}
