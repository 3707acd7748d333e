package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.EOFException;
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
import java.util.Set;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.api.python.PythonWorker;
import org.apache.spark.sql.errors.QueryCompilationErrors;

/**
 * A Python process of fastpq, taken from Spark's pool of workers and given back to it.
 *
 * A message is its kind (int32), the length of its payload (int32) and the payload, all little-endian. fastpq/spark/jvm/worker.py
 * is the other side, and describes the kinds.
 */
final class Worker implements AutoCloseable {
    static final int ASK = 1, READ = 2, NEXT = 3, STOP = 4, WRITE = 5, RESERVE = 6;
    static final int ANSWER = 16, FAILURE = 17, SEGMENT = 18, BATCH = 19, END = 20;
    static final ObjectMapper JSON = new ObjectMapper();

    private static final String DAEMON = "fastpq.spark.jvm.daemon", MODULE = "fastpq.spark.jvm.worker";
    private static final String ENVIRONMENT = "spark.executorEnv.";
    private static final int HEADER = 8;
    private static final Set<String> WRITES = Set.of("write", "commit", "abort");       // questions

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
    private final ByteBuffer header = ByteBuffer.allocate(HEADER).order(ByteOrder.LITTLE_ENDIAN);
    private boolean idle = true;        // no request without its last answer
    private boolean closed = false;

    /**
     * A worker that runs an interpreter.
     *
     * @param executable the interpreter of Python, with fastpq among its packages
     */
    Worker(String executable) {
        this.executable = executable;
        Map<String, String> variables = new HashMap<>();
        for (scala.Tuple2<String, String> pair : SparkEnv.get().conf().getAllWithPrefix(ENVIRONMENT)) {
            variables.put(pair._1(), pair._2());
        }
        variables.put("SPARK_REUSE_WORKER", "1");
        variables.put("OMP_NUM_THREADS", "1");      // a task runs on one core
        environment = PythonUtils.toScalaMap(variables);
        process = SparkEnv.get().createPythonWorker(executable, MODULE, DAEMON, environment, true)._1();
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
                channel.setOption(StandardSocketOptions.TCP_NODELAY, true);     // see serve in worker.py
            }
        } catch (IOException error) {
            close();
            throw new FastpqException("IOException", "the Python worker cannot be reached: " + error.getMessage());
        }
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
            throw lost(error);
        }
    }

    /**
     * The next message.
     *
     * @throws FastpqException an error raised in the worker, or the end of the worker
     */
    Message receive() throws IOException {
        header.clear();
        fill(header);
        int kind = header.getInt(0);
        ByteBuffer payload = ByteBuffer.allocate(header.getInt(4)).order(ByteOrder.LITTLE_ENDIAN);
        fill(payload);
        payload.flip();
        Message message = new Message(kind, payload);
        if (kind == ANSWER || kind == END || kind == FAILURE) {
            idle = true;
        }
        if (kind == FAILURE) {
            JsonNode error = message.json();
            throw new FastpqException(error.get("class").asText(), error.get("message").asText());
        }
        return message;
    }

    /** Asks a busy worker to leave its request, and waits until it has; a worker that is lost or fails needs no more. */
    void stop() {
        if (idle || Thread.currentThread().isInterrupted() || !channel.isOpen()) {
            return;
        }
        try {
            send(STOP, new byte[0]);
            while (!idle) {
                receive();
            }
        } catch (IOException | FastpqException error) {
            // close() ends the process unless the error was its last answer
        }
    }

    private void fill(ByteBuffer buffer) throws IOException {
        while (buffer.hasRemaining()) {
            int count;
            try {
                count = channel.read(buffer);
            } catch (IOException error) {
                throw lost(error);
            }
            if (count < 0) {
                throw lost(new EOFException("the process has ended"));
            }
        }
    }

    private static IOException lost(IOException error) {
        if (error instanceof java.nio.channels.ClosedByInterruptException) {
            return error;
        }
        return new FastpqException.Lost("fastpq's Python worker was lost (" + error.getMessage() + "): its own output is in the "
            + "executor's log; a worker that the system ended had too little memory, for which there is spark.executor.memoryOverhead",
            error);
    }

    /** Asks one question, in a worker of its own, and returns the answer. */
    static JsonNode ask(String executable, ObjectNode question) {
        try (Worker worker = new Worker(executable)) {
            worker.request(ASK, JSON.writeValueAsBytes(question));
            return worker.receive().json();
        } catch (IOException error) {
            throw analysis(question, error.getMessage());
        } catch (FastpqException error) {
            throw analysis(question, error.getMessage());
        }
    }

    /** The exception of Spark for Python sources, which callers in Python and SQL see without the frames of Java. */
    @SuppressWarnings("unchecked")
    private static <T extends Throwable> RuntimeException analysis(ObjectNode question, String message) throws T {
        String kind = WRITES.contains(question.get("ask").asText()) ? "write" : "read";
        throw (T) QueryCompilationErrors.pythonDataSourceError("plan", kind, message);      // a checked one, not declared
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
        closed = true;
        if (idle && channel.isOpen()) {
            SparkEnv.get().releasePythonWorker(executable, MODULE, DAEMON, environment, process);
        } else {
            SparkEnv.get().destroyPythonWorker(executable, MODULE, DAEMON, environment, process);
        }
    }
}
