"""Tuning constants for reading: limits for what metadata may claim, and costs that decide between two ways to read.

``python -m benchmarks.selective`` measures reads that take few rows, ``python -m benchmarks.latency`` measures remote reads,
and ``tools/bench`` measures whole files. Before you change a constant, run the benchmark that its section names.
"""

from __future__ import annotations

# ---- plausible claims: memory beyond these limits is taken only after the page headers confirm the number of values

# Bytes in memory for each stored byte. Run-length encoding makes any number of values from a few bytes.
PLAUSIBLE_EXPANSION = 1024
# If a chunk's values take at most this many bytes in memory, their number is believed without a look at the page headers.
ALWAYS_PLAUSIBLE = 64 << 20


def is_plausible(size: int, stored_size: int) -> bool:
    """Return whether stored_size bytes in a file may well give size bytes in memory."""
    return size <= max(ALWAYS_PLAUSIBLE, stored_size * PLAUSIBLE_EXPANSION)


# ---- whole columns (tools/bench --jobs read)

# A read uses threads if it has at least this many bytes (stored + decoded). Fewer are decoded before the threads have started.
WORTH_A_THREAD = 2 << 20
# A read uses threads if its chunks have on average at least this many bytes (stored + decoded). Smaller chunks take more time
# in Python, which holds the GIL, than in C.
WORTH_A_TASK = 1 << 14
# Smallest buffer of a nested column, in bytes.
ALWAYS_RESERVED = 1 << 20
# Memory is reserved for at most this many decoded bytes per stored byte of a nested column, even if the footer claims more.
LIKELY_EXPANSION = 16

# Number of chunks in a local file that one call locates, without reading them. A call for each chunk would cost more than the
# work itself.
AT_ONCE = 256

# Upper bound of one run of chunks (stored + decoded bytes). Larger runs delay Ctrl-C and starve other threads (benchmarks.gil).
# Smaller runs need more Python calls.
LARGEST_RUN = 128 << 20
# Number of columns whose chunks are opened before the first values are decoded. Decoding evicts the interpreter's own data from
# the processor's caches, and opening a chunk then takes twice as long. A file may have a million columns, so there is a limit.
COLUMNS_OPENED = 64
# Small columns (fastpq.read.small_columns) are read together if there are at least this many of them. For fewer, the import of
# the module costs more than it saves.
FEWEST_SMALL = 8
# So many consecutive small files of a dataset, or more, are read together (fastpq.datasets.stacked_files).
FEWEST_STACKED = 4
# Number of tasks for each thread. With fewer, threads wait for the last task.
TASKS_A_THREAD = 8

# A text column is held as codes (CodedViews) only if its chunks have on average at least this many rows. In smaller chunks the
# dictionaries cost more than the codes save.
ROWS_WORTH_CODES = 1 << 14
# It must also have at least this many rows for each stored byte in its dictionary pages, so that many rows share a text.
ROWS_A_STORED_BYTE = 8
# A chunk with at most this many uncompressed bytes per row is assumed to be fully dictionary-encoded.
SURELY_CODED = 2

# ---- some rows (benchmarks.selective)

# Views may hold this many page bytes for each byte of their values. If they hold more, the values are copied and the pages
# released.
MOST_SLACK = 2
# Views that hold at most this many page bytes more than that are not copied.
ALWAYS_HELD = 1 << 16
# All columns are read together if they have at most this many values in the candidates. Otherwise the predicate's columns are
# read first.
MOST_TOGETHER = 1 << 20
# All columns are read together only if no chunk has more than this many pages with doubtful candidates (local files).
MOST_DOUBTFUL_PAGES = 4
# They are read together only if all such pages have at most this many bytes. For a remote file, round_trip_bytes is the limit.
MOST_WASTED = 1 << 20
# Number of rows for which the predicate's columns are in memory at a time, while batches are read.
WINDOW = 1 << 16
# Largest number of stored bytes that are fetched together for the predicate's columns.
FETCHED = 64 << 20
# A dictionary page is read as evidence if the read has at least this many stored bytes for each byte of the page. A larger page
# costs more than its evidence saves.
WORTH_A_DICTIONARY = 4

# ---- remote files (benchmarks.latency)

# A remote read uses dictionary pages as evidence only if it has at least this many stored bytes. Fewer bytes arrive sooner than
# the answer to another request.
WORTH_A_ROUND_TRIP = 1 << 20
# Number of parts of a remote file that are fetched while an earlier part is decoded.
PARTS_AHEAD = 2
