package io.fastpq.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Set;
import org.apache.spark.sql.execution.datasources.SchemaColumnConvertNotSupportedException;

/** An error of fastpq, raised in a Python worker: the name of its class there, and its text. */
public final class FastpqException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    // Errors that say something about a file's bytes. Spark passes over files with these if ignoreCorruptFiles is set.
    private static final Set<String> OF_FILES =
        Set.of("FormatError", "UnsupportedError", "SchemaError", "LimitError", "ParquetError");

    /**
     * An error that says nothing about a file's bytes: a worker that was lost, a key that was refused, a file that was changed
     * by someone without the key. It is neither a RuntimeException nor an IOException, so that Spark never passes over it.
     */
    public static final class Fatal extends Exception {
        private static final long serialVersionUID = 1L;

        Fatal(String message, Throwable cause) {
            super(message, cause);
        }
    }

    FastpqException(String kind, String message) {
        super(kind + ": " + message);
    }

    /** The exception for a worker's error. */
    static RuntimeException of(String kind, String message) {
        if (kind.equals("FileNotFoundError")) {
            return unchecked(new FileNotFoundException(message));
        }
        if (kind.equals("ConversionError")) {    // Spark tells these from other errors by their class
            return new SchemaColumnConvertNotSupportedException(message, "", "");
        }
        if (OF_FILES.contains(kind)) {
            return new FastpqException(kind, message);
        }
        return unchecked(new Fatal(kind + ": " + message, null));
    }

    /** Throws a checked exception where none is declared. It is declared to return one, for {@code throw} before the call. */
    @SuppressWarnings("unchecked")
    static <T extends Throwable> RuntimeException unchecked(Throwable error) throws T {
        throw (T) error;
    }

    /**
     * The exception for an interpreter that cannot run fastpq's worker.
     *
     * @param host the machine
     * @param executable the interpreter
     * @param error Spark's exception, whose text has what the interpreter printed
     */
    static RuntimeException notStarted(String host, String executable, Exception error) {
        String printed = String.valueOf(error.getMessage()).split("\nPYTHONPATH was:")[0].strip();
        String reason = printed.substring(printed.lastIndexOf('\n') + 1).strip();
        return unchecked(
            new Fatal("WorkerError: on " + host + ", " + executable + " does not run fastpq's Python worker (" + reason
                    + "). Install fastpq, pyarrow and numpy there, or name an interpreter that has them in spark.pyspark.python. "
                    + "python -m fastpq.spark.check MASTER says what each executor lacks",
                error));
    }

    /**
     * The exception for shared memory that this process cannot map.
     *
     * @param segment number, path and size of the memory
     * @param error what the system or Java says
     */
    static RuntimeException notMapped(String segment, Exception error) {
        return unchecked(new Fatal("the JVM cannot map the memory that a Python worker of fastpq shares with it (" + segment
                + "): " + error + ". FASTPQ_SEGMENT_FOLDER in the environment of the executors names a folder for this memory",
            error));
    }

    /** The exception for a message that this jar does not know. */
    static RuntimeException unknown(String message) {
        return unchecked(new Fatal(message + ": the jar and fastpq are of different versions", null));
    }

    /** The exception for a worker that ended, or whose connection broke, before its answer. */
    static RuntimeException lost(IOException error) {
        if (error instanceof java.nio.channels.ClosedByInterruptException) {
            return unchecked(error);
        }
        return unchecked(new Fatal("fastpq's Python worker was lost (" + error.getMessage() + "): its own output is in the "
                + "executor's log; a worker that the system ended had too little memory, for which there is spark.executor.memoryOverhead",
            error));
    }
}
