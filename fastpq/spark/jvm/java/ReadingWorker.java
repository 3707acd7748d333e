package io.fastpq.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;

/** A worker that reads parts of files, one after the other, and the memory that it shares with this process. */
final class ReadingWorker {
    private static final int SEGMENTS = 2;

    final Worker worker;
    private final SharedMemory[] segments = new SharedMemory[SEGMENTS];
    private String plan;    // that the worker has, or null

    /**
     * A worker from Spark's pool.
     *
     * @param python the worker's interpreter
     */
    ReadingWorker(String python) {
        worker = new Worker(python, null);
    }

    /** Asks for the rows in a part of a file. The worker keeps the plan, and the memory stays mapped, for further parts. */
    void request(String planOfPart, String part) throws IOException {
        if (planOfPart.equals(plan)) {
            worker.request(Worker.PART, Worker.bytes(part));
        } else {
            worker.request(Worker.READ, Worker.task(planOfPart, part));
            plan = planOfPart;
        }
    }

    /** Maps a segment, in place of an earlier one with its number. */
    void map(JsonNode segment) {
        int number = segment.get("segment").asInt();
        if (segments[number] != null) {
            segments[number].close();
            segments[number] = null;
        }
        segments[number] = SharedMemory.of(segment, false);
    }

    SharedMemory segment(int number) {
        return segments[number];
    }

    /** Unmaps the memory, which no thread reads, and gives the worker back to Spark's pool. */
    void close() {
        worker.close();
        for (SharedMemory segment : segments) {
            if (segment != null) {
                segment.close();
            }
        }
    }

    /** Like close, but another thread may still read the memory. */
    void leave() {
        worker.close();
        for (SharedMemory segment : segments) {
            if (segment != null) {
                segment.leave();
            }
        }
    }
}
