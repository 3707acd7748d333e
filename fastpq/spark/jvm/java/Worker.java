package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkFiles;
import org.apache.spark.TaskContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.api.python.PythonWorker;
import org.apache.spark.sql.errors.QueryCompilationErrors;

/**
 * A Python process that runs fastpq. Spark's pool of workers lends it, and takes it back.
 *
 * A message is its kind (int32), the length of its payload (int32) and the payload, all little-endian. fastpq/spark/jvm/worker.py
 * is the other side, and describes the kinds.
 */
final class Worker implements AutoCloseable {
    static final int ASK = 1, READ = 2, NEXT = 3, STOP = 4, WRITE = 5, RESERVE = 6, DATA = 7, PROBLEM = 8, PART = 9;
    static final int ANSWER = 16, FAILURE = 17, SEGMENT = 18, BATCH = 19, END = 20, FETCH = 21, STORE = 22;
    static final ObjectMapper JSON = new ObjectMapper();

    private static final String DAEMON = "fastpq.spark.jvm.daemon", MODULE = "fastpq.spark.jvm.worker";
    private static final String ENVIRONMENT = "spark.executorEnv.";
    private static final int HEADER = 8;

    /** One message. */
    record Message(int kind, ByteBuffer payload) {
        JsonNode json() throws IOException {
            return JSON.readTree(payload.array(), payload.arrayOffset(), payload.limit());
        }
    }

    private final String executable;
    private final scala.collection.immutable.Map<String, String> environment;
    private final PythonWorker process;
    private final SocketChannel channel;
    private HadoopFiles files;    // null if the worker has no file to read or write through this process
    private final ByteBuffer header = ByteBuffer.allocate(HEADER).order(ByteOrder.LITTLE_ENDIAN);
    private boolean idle = true;    // no request without its last answer
    private boolean closed = false;

    /**
     * A worker that runs an interpreter.
     *
     * @param executable the interpreter of Python, with fastpq among its packages
     * @param files files that are not local, or null
     */
    Worker(String executable, HadoopFiles files) {
        this.executable = executable;
        this.files = files;
        Map<String, String> variables = new HashMap<>();
        for (scala.Tuple2<String, String> pair : SparkEnv.get().conf().getAllWithPrefix(ENVIRONMENT)) {
            variables.put(pair._1(), pair._2());
        }
        variables.put("SPARK_REUSE_WORKER", "1");
        variables.put("OMP_NUM_THREADS", "1");    // a task runs on one core
        environment = PythonUtils.toScalaMap(variables);
        process = start(executable, environment);
        channel = process.channel();
        try {
            if (!channel.isBlocking()) {
                SelectionKey key = process.selectionKey();
                if (key != null) {
                    key.cancel();
                    process.selector().close();
                }
                channel.configureBlocking(true);
            }
            if (channel.getLocalAddress() instanceof InetSocketAddress) {
                channel.setOption(StandardSocketOptions.TCP_NODELAY, true);    // see serve in worker.py
            }
        } catch (IOException error) {
            close();
            throw FastpqException.lost(error);
        }
    }

    private static PythonWorker start(String executable, scala.collection.immutable.Map<String, String> environment) {
        try {
            return SparkEnv.get().createPythonWorker(executable, MODULE, DAEMON, environment, true)._1();
        } catch (Exception error) {
            throw FastpqException.notStarted(SparkEnv.get().blockManager().blockManagerId().host(), executable, error);
        }
    }

    /** Serves files that are not local to the worker from now on. */
    void serve(HadoopFiles others) {
        files = others;
    }

    /** Whether the worker can take another request. */
    boolean isReusable() {
        return idle && channel.isOpen();
    }

    /** Sends a request; the worker is busy until the last answer has come. */
    void request(int kind, byte[] payload) throws IOException {
        idle = false;
        send(kind, payload);
    }

    /** Sends a message. */
    void send(int kind, byte[] payload) throws IOException {
        ByteBuffer message = ByteBuffer.allocate(HEADER + payload.length).order(ByteOrder.LITTLE_ENDIAN);
        message.putInt(kind).putInt(payload.length).put(payload).flip();
        try {
            while (message.hasRemaining()) {
                channel.write(message);
            }
        } catch (IOException error) {
            throw FastpqException.lost(error);
        }
    }

    /**
     * The next message that is not about a file, which this method answers itself.
     *
     * @throws FastpqException an error raised in the worker
     */
    Message receive() throws IOException {
        while (true) {
            Message message = message();
            switch (message.kind()) {
                case FETCH:
                    fetch(message.json());
                    break;
                case STORE:
                    files.write(message.payload());
                    break;
                case FAILURE:
                    JsonNode error = message.json();
                    throw FastpqException.of(error.get("class").asText(), error.get("message").asText());
                default:
                    return message;
            }
        }
    }

    private void fetch(JsonNode request) throws IOException {
        byte[] bytes;
        try {
            bytes = files.read(request);
        } catch (IOException | RuntimeException error) {
            String kind = error instanceof FileNotFoundException ? "FileNotFoundError" : "OSError";
            send(PROBLEM, JSON.writeValueAsBytes(Map.of("class", kind, "message", String.valueOf(error.getMessage()))));
            return;
        }
        send(DATA, bytes);
    }

    private Message message() throws IOException {
        header.clear();
        fill(header);
        int kind = header.getInt(0);
        ByteBuffer payload = ByteBuffer.allocate(header.getInt(4)).order(ByteOrder.LITTLE_ENDIAN);
        fill(payload);
        payload.flip();
        if (kind == ANSWER || kind == END || kind == FAILURE) {
            idle = true;
        }
        return new Message(kind, payload);
    }

    /**
     * Asks a busy worker to leave its request, and waits until it has. A worker that is lost or fails needs no more.
     *
     * @return the END of a read, or null
     */
    Message stop() {
        if (idle || Thread.currentThread().isInterrupted() || !channel.isOpen()) {
            return null;
        }
        Message last = null;
        try {
            send(STOP, new byte[0]);
            while (!idle) {
                last = receive();
            }
            return last.kind() == END && last.payload().hasRemaining() ? last : null;
        } catch (IOException | RuntimeException error) {
            return null;    // close() ends the process unless the error was its last answer
        }
    }

    private void fill(ByteBuffer buffer) throws IOException {
        while (buffer.hasRemaining()) {
            int count;
            try {
                count = channel.read(buffer);
            } catch (IOException error) {
                throw FastpqException.lost(error);
            }
            if (count < 0) {
                throw FastpqException.lost(new EOFException("the process has ended"));
            }
        }
    }

    /**
     * Asks one question, in a worker that does nothing else, and returns the answer.
     *
     * @param executable the worker's interpreter
     * @param question the question
     * @param files files that are not local, or null
     */
    static JsonNode ask(String executable, ObjectNode question, HadoopFiles files) {
        try (files; Worker worker = new Worker(executable, files)) {
            worker.request(ASK, task(JSON.writeValueAsString(question), ""));
            return worker.receive().json();
        } catch (Exception error) {
            throw analysis(question, error.getMessage());
        }
    }

    /** Spark's exception for Python sources. Callers in Python and SQL see it without Java's frames. */
    private static RuntimeException analysis(ObjectNode question, String message) {
        String kind = question.get("ask").asText().equals("write") ? "write" : "read";
        return FastpqException.unchecked(QueryCompilationErrors.pythonDataSourceError("plan", kind, message));
    }

    /**
     * The payload of a task or a question: the folder of Spark's files (--py-files), the name of this thread's task, the plan, and
     * what the task is about.
     */
    static byte[] task(String plan, String about) {
        byte[] files = bytes(SparkFiles.getRootDirectory()), name = bytes(nameOfTask());
        byte[] first = bytes(plan), second = bytes(about);
        int size = 12 + files.length + name.length + first.length + second.length;
        ByteBuffer task = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
        task.putInt(files.length).putInt(name.length).putInt(first.length);
        return task.put(files).put(name).put(first).put(second).array();
    }

    /** The name of this thread's task for records of audits, as keyservice.py makes it. Outside of a task it is empty. */
    private static String nameOfTask() {
        TaskContext task = TaskContext.get();
        if (task == null) {
            return "";
        }
        return "stage " + task.stageId() + ", partition " + task.partitionId() + ", attempt " + task.taskAttemptId();
    }

    /** Text as the bytes of a payload. */
    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Gives the process back for the next task; ends a process that is still at work. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        if (isReusable()) {
            closed = true;
            SparkEnv.get().releasePythonWorker(executable, MODULE, DAEMON, environment, process);
        } else {
            destroy();
        }
    }

    /** Ends the process. A thread that waits for its answer gets an exception. */
    void destroy() {
        closed = true;
        SparkEnv.get().destroyPythonWorker(executable, MODULE, DAEMON, environment, process);
    }
}
