"""Tuning constants of reading: bounds of plausible claims, and costs to decide between two ways of reading.

``python -m benchmarks.selective`` measures reads of few rows, ``python -m benchmarks.latency`` remote reads, and
``tools/bench`` whole files. A changed constant is judged by the benchmark beside the constant.
"""

from __future__ import annotations

# ---- plausible claims: memory for more values than these is taken only after the page headers confirm the number of values

# Values in memory, bytes for each stored byte. Run-length encoding makes any number of values from a few bytes.
PLAUSIBLE_EXPANSION = 1024
# Values of a chunk in memory, bytes, without a look at the page headers.
ALWAYS_PLAUSIBLE = 64 << 20

# ---- whole columns (tools/bench --jobs read)

# Stored and decoded bytes of a read with threads. Fewer bytes are decoded before threads have started.
WORTH_A_THREAD = 2 << 20
# Stored and decoded bytes of a chunk in a read with threads. Smaller chunks take longer in Python, under its lock, than in C.
WORTH_A_TASK = 1 << 14
# Least buffer size of a nested column, bytes.
ALWAYS_RESERVED = 1 << 20
# Decoded bytes for each stored byte of a nested column. A footer's claim of more values is no reason to reserve more memory.
LIKELY_EXPANSION = 16

# Chunks of a local file found at once, without a read; one by one, the call takes longer than the work.
AT_ONCE = 256

# Stored and decoded bytes of consecutive chunks that are decoded without the interpreter between them; enough for few calls
# of Python, and few enough to share a column between threads, and to answer Ctrl-C soon (benchmarks.gil).
LARGEST_RUN = 128 << 20
# Columns whose chunks are opened before the values of the first are decoded: after values, the interpreter finds nothing of its
# own in the processor's caches, and takes twice as long. There may be a million columns.
COLUMNS_OPENED = 64
# Tasks of a read with threads, for each thread; with fewer, threads wait for the last of them.
TASKS_A_THREAD = 8

# Least rows of a chunk, on average, of a text column held as codes (CodedViews): dictionaries of smaller chunks cost more.
ROWS_WORTH_CODES = 1 << 14
# Least rows for each stored byte of dictionary pages of such a column: many rows for each text.
ROWS_A_STORED_BYTE = 8
# Most bytes of uncompressed pages, for each row, of a chunk with hardly a value outside of its dictionary.
SURELY_CODED = 2

# ---- some rows (benchmarks.selective)

# Bytes of pages held by views, for each byte of the values. Values with more are copied, and the pages released.
MOST_SLACK = 2
# Bytes of pages held by views, never copied.
ALWAYS_HELD = 1 << 16
# Values of all columns read together with the columns of the predicate. More are read after the predicate is evaluated.
MOST_TOGETHER = 1 << 20
# Pages of a chunk with candidates in doubt, read together with the columns of the predicate.
MOST_DOUBTFUL_PAGES = 4
# Bytes of all pages with candidates in doubt in a local file; round_trip_bytes is the bound of a remote file.
MOST_WASTED = 1 << 20
# Rows of the columns of the predicate in memory while batches are read.
WINDOW = 1 << 16
# Stored bytes of the columns of the predicate, fetched together.
FETCHED = 64 << 20
# Stored bytes of the columns for each byte of a dictionary page. A larger dictionary page costs more than its evidence saves.
WORTH_A_DICTIONARY = 4

# ---- remote files (benchmarks.latency)

# Stored bytes of a remote read with dictionary pages as evidence. Fewer bytes arrive sooner than the answer of another request.
WORTH_A_ROUND_TRIP = 1 << 20
# Parts of a remote file fetched while an earlier part is decoded.
PARTS_AHEAD = 2
