package io.fastpq.spark;

import java.util.ArrayList;
import java.util.List;

/** Numbers that describe a batch of columns, and the bytes that they point to. */
final class ColumnsDescription {
    private static final int ALIGNMENT = 64, PARTS = 4;
    final List<Long> numbers = new ArrayList<>();
    private final List<GrowingMemory> buffers = new ArrayList<>();
    private final List<Long> places = new ArrayList<>();
    long end = 0;

    void number(long number) {
        numbers.add(number);
    }

    void place(GrowingMemory buffer) {
        numbers.add(end);
        buffers.add(buffer);
        places.add(end);
        end += (buffer.size() + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }

    /** Fills a layout's numbers up to four. */
    void pad(int given) {
        for (int i = given; i < PARTS; i++) {
            numbers.add(0L);
        }
    }

    void copyTo(long memory) {
        for (int i = 0; i < buffers.size(); i++) {
            buffers.get(i).copyTo(memory + places.get(i));
        }
    }
}
