"""Turns nested columns into levels (README.md, "Nested Encoding"). A leaf's entries are made for a page at a time.

Every row begins as one entry. A list replaces a slot's entry by one entry for each element. The first new entry keeps the slot's
repetition level. At an empty list or a null, the entry ends: it keeps the definition level that it has reached. All other entries
have a value, and with it the highest definition level.

For all rows together, only the places where each row's entries and values start are kept. To find them, no level is made. A
page's levels are made when it is written, in memory that the next page reuses.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

import numpy as np

from fastpq.arrays.memory cimport GrowingBuffer
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.encodings.levels cimport has_list_levels

from fastpq.errors import LimitError, SchemaError

cdef fused Offset:
    int32_t
    int64_t

cdef enum:
    BLOCK = 1 << 15         # entries that are made together, while entries are counted or slots are listed

# What _enter_layers has to make.
cdef enum:
    DEFINITION = 1
    REPETITION = 2
    SLOTS = 4               # the slot that each entry has in the leaf


cdef inline bint is_valid(const uint8_t* bits, int64_t slot) noexcept nogil:
    return bits[slot >> 3] >> (slot & 7) & 1


cdef inline int check_entries(int64_t entries) except -1 nogil:
    if entries > INT32_MAX:
        with gil:
            raise LimitError(f"{entries} levels in one column chunk: write smaller row groups")
    return 0


cdef inline int64_t list_size(const Offset* offsets, const Front* front, int64_t entry, int64_t* start) noexcept nogil:
    """Return how many elements an entry has in a list, and set where they start. An entry that ended has none."""
    cdef int64_t slot = front.first_slot + entry if front.slots == NULL else front.slots[entry]
    if slot < 0:
        start[0] = 0
        return 0
    start[0] = offsets[slot]
    return offsets[slot + 1] - start[0]


cdef int64_t entries_below(const Offset* offsets, const Front* front) noexcept nogil:
    """Return how many entries a list makes from the entries above it."""
    cdef int64_t count = 0, start = 0, i
    for i in range(front.count):
        count += max(list_size(offsets, front, i, &start), <int64_t>1)
    return count


cdef void enter_elements(const Offset* offsets, const Front* outer, Front* inner, int max_definition,
                         int repetition_level) noexcept nogil:
    """Make the levels and the slots for a list's elements, from the entries above the list. A NULL array of inner is not made."""
    cdef int64_t done = 0, start = 0, size, i, j
    cdef uint8_t ended
    if inner.definition != NULL:
        memset(inner.definition, max_definition, <size_t>inner.count)
    if inner.repetition != NULL:
        memset(inner.repetition, repetition_level, <size_t>inner.count)
    for i in range(outer.count):
        size = list_size(offsets, outer, i, &start)
        if inner.repetition != NULL:
            inner.repetition[done] = 0 if outer.repetition == NULL else outer.repetition[i]
        if inner.definition != NULL:
            ended = outer.level
            if outer.slots != NULL and outer.slots[i] < 0:
                ended = outer.definition[i]
            inner.definition[done] = ended if size == 0 else <uint8_t>max_definition
        if inner.slots != NULL:
            inner.slots[done] = start if size else -1
            for j in range(1, size):
                inner.slots[done + j] = start + j
        done += max(size, <int64_t>1)


cdef void count_elements(const Offset* offsets, const Front* front, RowStarts* starts) noexcept nogil:
    """Count the entries and values that the innermost list makes, if none of its elements can end below it."""
    cdef RowStarts now = starts[0]
    cdef int64_t start = 0, size, i
    for i in range(front.count):
        size = list_size(offsets, front, i, &start)
        now.entry_starts[now.row] = <int32_t>now.entries
        now.value_starts[now.row] = <int32_t>now.values
        now.row += front.repetition == NULL or front.repetition[i] == 0
        now.gaps += (size > 0) & (start != now.next_slot)
        now.first_slot = start if size > 0 and now.values == 0 else now.first_slot
        now.next_slot = start + size if size > 0 else now.next_slot
        now.entries += max(size, <int64_t>1)
        now.values += size
    starts[0] = now


cdef void count_slots(const Front* front, RowStarts* starts) noexcept nogil:
    """Count entries, and the values among them, by the slots that the entries have in the leaf."""
    cdef RowStarts now = starts[0]
    cdef int64_t slot, i
    for i in range(front.count):
        slot = front.first_slot + i if front.slots == NULL else front.slots[i]
        now.entry_starts[now.row] = <int32_t>(now.entries + i)
        now.value_starts[now.row] = <int32_t>now.values
        now.row += front.repetition == NULL or front.repetition[i] == 0
        now.gaps += (slot >= 0) & (slot != now.next_slot)
        now.first_slot = slot if slot >= 0 and now.values == 0 else now.first_slot
        now.next_slot = slot + 1 if slot >= 0 else now.next_slot
        now.values += slot >= 0
    now.entries += front.count
    starts[0] = now


cdef class Levels:
    """The levels for the rows [start, stop). The caller enters the layers above a leaf, the outermost first, and then finishes.

    Arrays are not checked here. Columns have already checked that bitmaps are long enough, and that offsets ascend and stay
    within the elements.
    """

    def __cinit__(self, int64_t start, int64_t stop):
        self.first_slot = start
        self.rows = stop - start
        self.layers = GrowingBuffer()
        self.owners = []
        self.last_list = self.last_nulls = -1

    def __dealloc__(self):
        with nogil:             # because it takes long to return large blocks to the operating system
            scratch_free(&self.entry_starts)
            scratch_free(&self.value_starts)
            self.free()

    cdef void free(self) noexcept nogil:
        scratch_free(&self.definition)
        scratch_free(&self.repetition)
        scratch_free(&self.slots)
        scratch_free(&self.outer_definition)
        scratch_free(&self.outer_repetition)
        scratch_free(&self.outer_slots)

    cdef Layer* layer(self, int64_t index) noexcept nogil:
        return <Layer*>self.layers.data + index

    cdef int64_t layer_count(self) noexcept nogil:
        return <int64_t>(self.layers.size // sizeof(Layer))

    cdef int64_t entry_start(self, int64_t row) noexcept nogil:
        return (<const int32_t*>self.entry_starts.data)[row]

    cdef int64_t value_start(self, int64_t row) noexcept nogil:
        return (<const int32_t*>(self.entry_starts.data if self.value_starts.data == NULL else self.value_starts.data))[row]

    cdef int _add_layer(self, const Layer* layer) except -1:
        memcpy(self.layers.room(sizeof(Layer)), layer, sizeof(Layer))
        self.layers.size += sizeof(Layer)
        return 0

    def enter_value(self, const uint8_t[::1] validity, bint nullable):
        """Enter a layer that may be null: a value, a struct or a list.

        Args:
            validity: bitmap with a bit for each slot; None without nulls.
            nullable: whether the schema allows nulls. A null below another null is always allowed.
        """
        cdef Layer layer
        memset(&layer, 0, sizeof(Layer))
        layer.nullable = nullable
        if validity is not None and validity.shape[0]:
            layer.validity = &validity[0]
            self.owners.append(validity)
            self.last_nulls = self.layer_count()
        self._add_layer(&layer)

    def enter_list(self, const Offset[::1] offsets, uint8_t repetition_level):
        """Enter a list's elements. enter_value must enter the list's nulls before.

        Args:
            offsets: where each slot's elements start, then where the last slot ends.
            repetition_level: the elements' repetition level, at least 1.
        """
        cdef Layer layer
        memset(&layer, 0, sizeof(Layer))
        layer.repetition_level = repetition_level
        if Offset is int32_t:
            layer.offsets = &offsets[0]
        else:
            layer.large_offsets = &offsets[0]
        self.owners.append(offsets)
        self.last_list = self.layer_count()
        self._add_layer(&layer)

    def finish(self, uint8_t max_definition):
        """Count every row's entries. This follows the last layer.

        Returns:
            The leaf's slots that have a value: a slice if they are consecutive, otherwise an ascending int64 array.

        Raises:
            LimitError: there are 2^31 entries or more.
            SchemaError: a required field is null, and no layer above it is.
        """
        cdef RowStarts starts
        cdef int64_t i
        cdef int64_t[::1] slots
        self.max_definition = max_definition
        memset(&starts, 0, sizeof(RowStarts))
        with nogil:
            self._count(&starts)
        for i in range(self.layer_count()):
            if self.layer(i).nulls and not self.layer(i).nullable:
                raise SchemaError(f"{self.layer(i).nulls} nulls in a required field")
        self.is_consecutive = starts.gaps <= 1      # one gap is before the first value
        if self.is_consecutive:
            return slice(starts.first_slot, starts.first_slot + starts.values)
        slots = np.empty(starts.values + 1, np.int64)
        with nogil:
            self._list_slots(&slots[0])
        return np.asarray(slots)[:starts.values]

    def levels(self, int64_t row, int64_t rows):
        """Return the definition levels and the repetition levels for some rows, a byte an entry."""
        cdef Entries entries
        if not 0 <= row <= row + rows <= self.rows:
            raise ValueError(f"{rows} rows from {row} on, of {self.rows}")
        self.make(row, rows, &entries)
        definition = bytes([self.max_definition]) * entries.count
        repetition = (b"\0" + b"\1" * (self.length - 1)) * rows
        if entries.definition != NULL:
            definition = (<const char*>entries.definition)[:entries.count]
        if entries.repetition != NULL:
            repetition = (<const char*>entries.repetition)[:entries.count]
        return definition, repetition

    cdef int _count(self, RowStarts* starts) except -1 nogil:
        """Count every row's entries and values, block by block."""
        cdef int64_t row = 0, rows = BLOCK // 8, layers = self.layer_count(), before
        cdef Front front
        cdef Layer* innermost
        cdef size_t room = <size_t>(self.rows + 1) * sizeof(int32_t)
        starts.entry_starts = <int32_t*>scratch_reserve(&self.entry_starts, room)
        starts.value_starts = <int32_t*>scratch_reserve(&self.value_starts, room)
        starts.next_slot = -1
        while row < self.rows:
            rows = min(rows, self.rows - row)
            before = starts.entries
            if self.last_list > self.last_nulls:
                self._enter_layers(row, rows, self.last_list, REPETITION | SLOTS, &front)
                innermost = self.layer(self.last_list)
                if innermost.offsets != NULL:
                    count_elements(innermost.offsets, &front, starts)
                else:
                    count_elements(innermost.large_offsets, &front, starts)
            else:
                self._enter_layers(row, rows, layers, REPETITION | SLOTS, &front)
                count_slots(&front, starts)
            check_entries(starts.entries)
            row += rows
            rows = max(1, rows * BLOCK // max(starts.entries - before, 1))
        starts.entry_starts[self.rows] = <int32_t>starts.entries
        starts.value_starts[self.rows] = <int32_t>starts.values
        if starts.values == starts.entries:
            scratch_free(&self.value_starts)
        self.length = self._length()
        return 0

    cdef int64_t _length(self) noexcept nogil:
        """Return how many entries every row has, if the rows have only one list and equal counts. Otherwise return 0."""
        cdef const int32_t* starts = <const int32_t*>self.entry_starts.data
        cdef int64_t row
        if self.rows == 0 or self.last_list < 0 or self.layer(self.last_list).repetition_level > 1:
            return 0
        for row in range(self.rows):
            if starts[row + 1] - starts[row] != starts[1]:
                return 0
        return starts[1]

    cdef int _list_slots(self, int64_t* slots) except -1 nogil:
        """Store all values' slots. One more number may be written behind them."""
        cdef int64_t row = 0, rows, i
        cdef Front front
        while row < self.rows:
            rows = min(<int64_t>BLOCK // 8, self.rows - row)
            while rows > 1 and self.entry_start(row + rows) - self.entry_start(row) > BLOCK:
                rows //= 2
            self._enter_layers(row, rows, self.layer_count(), SLOTS, &front)
            for i in range(front.count):
                slots[0] = front.first_slot + i if front.slots == NULL else front.slots[i]
                slots += slots[0] >= 0
            row += rows
        return 0

    cdef int make(self, int64_t row, int64_t rows, Entries* entries) except -1 nogil:
        cdef Front front
        cdef int parts = 0
        entries.count = self.entry_start(row + rows) - self.entry_start(row)
        entries.rows = rows
        entries.present = self.value_start(row + rows) - self.value_start(row)
        entries.length = self.length
        entries.definition = entries.repetition = NULL
        if entries.present < entries.count:
            parts |= DEFINITION
        if self.last_list >= 0 and not has_list_levels(self.length):
            parts |= REPETITION
        if parts:
            self._enter_layers(row, rows, self.layer_count(), parts, &front)
            entries.definition, entries.repetition = front.definition, front.repetition
        return 0

    cdef int _enter_layers(self, int64_t row, int64_t rows, int64_t layers, int parts, Front* front) except -1 nogil:
        """Enter the first layers for some rows. front becomes the entries below them.

        parts: what is made for these entries. Without DEFINITION and SLOTS, no entry is known to have ended: this is for rows
            whose entries all have a value.
        """
        cdef int64_t i
        memset(front, 0, sizeof(Front))
        front.count = rows
        front.first_slot = self.first_slot + row
        for i in range(layers):
            if self.layer(i).repetition_level:
                self._enter_list(self.layer(i), i, parts, front)
            else:
                if self.layer(i).validity != NULL and parts & (DEFINITION | SLOTS):
                    self._enter_nulls(self.layer(i), parts, front)
                front.level += self.layer(i).nullable
        return 0

    cdef int _enter_nulls(self, Layer* layer, int parts, Front* front) except -1 nogil:
        """End the entries that a layer has nulls for."""
        cdef int64_t i, slot
        cdef bint ends
        if front.slots == NULL:
            front.slots = <int64_t*>scratch_reserve(&self.slots, <size_t>front.count * sizeof(int64_t))
            for i in range(front.count):
                front.slots[i] = front.first_slot + i
        if parts & DEFINITION and front.definition == NULL:
            front.definition = scratch_reserve(&self.definition, <size_t>front.count)
            memset(front.definition, self.max_definition, <size_t>front.count)
        for i in range(front.count):
            slot = front.slots[i]
            ends = slot >= 0 and not is_valid(layer.validity, slot)
            if ends:
                front.slots[i] = -1
                layer.nulls += 1
            if front.definition != NULL:
                front.definition[i] = front.level if ends else front.definition[i]
        return 0

    cdef int _enter_list(self, Layer* layer, int64_t index, int parts, Front* front) except -1 nogil:
        """Replace each entry by one for each of its elements in a list."""
        cdef Front inner
        memset(&inner, 0, sizeof(Front))
        inner.level = front.level + 1
        inner.count = entries_below(layer.offsets, front) if layer.offsets != NULL else entries_below(layer.large_offsets, front)
        check_entries(inner.count)
        self.definition, self.outer_definition = self.outer_definition, self.definition
        self.repetition, self.outer_repetition = self.outer_repetition, self.repetition
        self.slots, self.outer_slots = self.outer_slots, self.slots
        if parts & DEFINITION:
            inner.definition = scratch_reserve(&self.definition, <size_t>inner.count)
        if parts & REPETITION:
            inner.repetition = scratch_reserve(&self.repetition, <size_t>inner.count)
        if parts & SLOTS or index < self.last_list or (parts & DEFINITION and index < self.last_nulls):
            inner.slots = <int64_t*>scratch_reserve(&self.slots, <size_t>inner.count * sizeof(int64_t))
        if layer.offsets != NULL:
            enter_elements(layer.offsets, front, &inner, self.max_definition, layer.repetition_level)
        else:
            enter_elements(layer.large_offsets, front, &inner, self.max_definition, layer.repetition_level)
        front[0] = inner
        return 0
