package io.fastpq.spark;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;

/**
 * The workers that one of Spark's tasks has borrowed and does not use at the moment.
 *
 * A task may read many small files. Its next part takes the worker that has read the last one, without a detour through Spark's
 * pool, and the memory stays mapped. At the end of the task the workers go back to the pool.
 */
final class TaskWorkers {
    private static final Map<TaskContext, TaskWorkers> OF_TASKS = new ConcurrentHashMap<>();

    private final Deque<ReadingWorker> idle = new ArrayDeque<>();
    private boolean isOver = false;    // whether the task has ended

    private TaskWorkers() {}

    /** The workers of this thread's task. Outside of a task nothing is kept. */
    static TaskWorkers current() {
        TaskContext task = TaskContext.get();
        TaskWorkers workers = new TaskWorkers();
        if (task == null) {
            workers.isOver = true;
            return workers;
        }
        TaskWorkers present = OF_TASKS.putIfAbsent(task, workers);
        if (present != null) {
            return present;
        }
        task.addTaskCompletionListener((TaskCompletionListener) ended -> {
            OF_TASKS.remove(task);
            workers.end();
        });
        return workers;
    }

    /** An idle worker, or one from Spark's pool. */
    ReadingWorker take(String python) {
        synchronized (this) {
            if (!idle.isEmpty()) {
                return idle.pop();
            }
        }
        return new ReadingWorker(python);
    }

    /** Keeps a worker for the task's next part. No thread reads its memory any more. */
    void giveBack(ReadingWorker reading) {
        synchronized (this) {
            if (!isOver && reading.worker.isReusable()) {
                idle.push(reading);
                return;
            }
        }
        reading.close();
    }

    private synchronized void end() {
        isOver = true;
        while (!idle.isEmpty()) {
            idle.pop().close();
        }
    }
}
