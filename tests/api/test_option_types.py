"""Type checkers know each option: mypy over a small file with wrong names and types."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

CHECKED = '''
from pathlib import Path
from typing import assert_type

import fastpq

path = Path("x.parquet")
table = fastpq.read_table(path, ["a"], threads=2, strings="offsets", on_error="null", progress=lambda done, total: None)
assert_type(table, fastpq.Table)
fastpq.write_table(table, path, compression="zstd", row_group_size=10, bloom_filter={"a": True}, sort_by=["a"])
fastpq.ParquetWriter(path, compression={"a": None}, use_dictionary=["a"], data_page_version="2.0")
fastpq.write_dataset(table, path, partition_by=["a"], key_value_metadata={"k": "v"}, progress=print)
fastpq.ParquetDataset(path, arrow_schema=False)

fastpq.read_table(path, thread=2)                           # call-arg
fastpq.read_table(path, strings="text")                     # arg-type
fastpq.read_metadata(path, memory_map="no")                 # arg-type
fastpq.read_dataset(path, on_error="ignore")                # arg-type
fastpq.write_table(table, path, compresion="zstd")          # call-arg
fastpq.write_table(table, path, row_group_size="10")        # arg-type
fastpq.write_dataset(table, path, data_page_version="3.0")  # arg-type
fastpq.ParquetWriter(path, write_page_index="yes")          # arg-type
fastpq.write_table(table, path, progress=lambda path, done, total: None)  # arg-type,misc
'''


def test_mypy_knows_the_options(tmp_path: Path) -> None:
    checked = tmp_path / "checked.py"
    checked.write_text(CHECKED)
    expected = {
        number: set(line.split("  # ")[1].split(","))
        for number, line in enumerate(CHECKED.splitlines(), 1)
        if "  # " in line
    }
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", "--follow-imports=silent",
         f"--cache-dir={tmp_path / 'cache'}", str(checked)],
        capture_output=True, text=True, check=False, env=os.environ | {"MYPYPATH": str(Path(__file__).parents[2])},
    )
    errors: dict[int, set[str]] = {}
    for line in found.stdout.splitlines():
        where = re.fullmatch(rf"{re.escape(str(checked))}:(\d+): error: .*\[([\w-]+)\]", line)
        if where is not None:
            errors.setdefault(int(where[1]), set()).add(where[2])
    assert not found.stderr
    assert errors == expected, found.stdout
