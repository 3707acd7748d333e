"""DuckDB's own extension for DuckLake, in a pinned environment: it makes lakes, and answers queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.pinned import pinned_python, run_pinned

PACKAGES = ("duckdb==1.5.5", "duckdb-extension-ducklake==1.5.5", "duckdb-extension-httpfs==1.5.5", "pytz==2025.2")
# Runs statements in an attached lake, and prints the rows of the last one as JSON.
SCRIPT = """
import glob, json, sys, sysconfig
import duckdb

folder, statements, options = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
for name in ("httpfs", "ducklake"):
    pattern = f"{sysconfig.get_paths()['purelib']}/duckdb_extension_{name}/**/*.duckdb_extension"
    (path,) = glob.glob(pattern, recursive=True)
    connection.execute(f"LOAD '{path}'")
connection.execute(f"ATTACH 'ducklake:{folder}/lake.ducklake' AS lake (DATA_PATH '{folder}/data/'{options})")
connection.execute("USE lake")
for statement in statements:
    rows = connection.execute(statement).fetchall()
print(json.dumps(rows, default=str))
"""


def in_lake(folder: Path, *statements: str, options: str = "") -> list[Any]:
    """Run statements in the lake of a folder, and return the rows of the last one. Times and decimals are text.

    Args:
        folder: the lake's folder. The lake is made if there is none.
        statements: SQL.
        options: options of ATTACH, each with a comma in front.
    """
    output = run_pinned(pinned_python("ducklake", *PACKAGES), SCRIPT, str(folder), json.dumps(statements), options)
    rows: list[Any] = json.loads(output)
    return rows
