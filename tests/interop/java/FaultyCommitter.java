import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.parquet.hadoop.ParquetOutputCommitter;

/**
 * Spark's committer of Parquet files, whose process dies once: an executor behind a task's commit, or the driver before the job's.
 *
 * The file fastpq.test.fault of the configuration names a file that is there while the process is to die. The setting
 * fastpq.test.dies is "task" or "job".
 */
public class FaultyCommitter extends ParquetOutputCommitter {
    public FaultyCommitter(org.apache.hadoop.fs.Path path, TaskAttemptContext context) throws IOException {
        super(path, context);
    }

    @Override
    public void commitTask(TaskAttemptContext context) throws IOException {
        super.commitTask(context);
        if (context.getTaskAttemptID().getTaskID().getId() == 1) {
            die(context, "task");
        }
    }

    @Override
    public void commitJob(JobContext context) throws IOException {
        die(context, "job");
        super.commitJob(context);
    }

    private static void die(JobContext context, String where) throws IOException {
        boolean isHere = where.equals(context.getConfiguration().get("fastpq.test.dies"));
        if (isHere && Files.deleteIfExists(Path.of(context.getConfiguration().get("fastpq.test.fault")))) {
            Runtime.getRuntime().halt(137);
        }
    }
}
