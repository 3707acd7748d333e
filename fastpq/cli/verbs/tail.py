"""Print the last rows.

Section: Look at values
"""

from __future__ import annotations

from fastpq.cli.end_rows import last_matching_rows, verb_of_end

command = verb_of_end("tail", "last", last_matching_rows)
