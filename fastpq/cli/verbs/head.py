"""Print the first rows.

Section: Look at values
"""

from __future__ import annotations

from fastpq.cli.end_rows import first_matching_rows, verb_of_end

command = verb_of_end("head", "first", first_matching_rows)
