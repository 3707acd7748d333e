"""Runs the examples of the page on DuckLake: ``python -m tests.catalogs.lake_page_driver PAGE FOLDER``.

DuckDB's extensions are loaded from packages, because tests have no other network.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from tests.test_docs import blocks, run

CONNECT, UNSIGNED = "duckdb.connect()", 'duckdb.connect(config={"allow_unsigned_extensions": "true"})'
INSTALL = "INSTALL ducklake; LOAD ducklake"

if __name__ == "__main__":
    os.chdir(sys.argv[2])
    packages = Path(sysconfig.get_paths()["purelib"])
    extensions = [next(packages.glob(f"duckdb_extension_{name}/**/*.duckdb_extension")) for name in ("httpfs", "ducklake")]
    load = "; ".join(f"LOAD '{path}'" for path in extensions)
    namespace: dict[str, Any] = {}
    number = 0
    for block in blocks(Path(sys.argv[1])):
        if block.words == {"python", "ducklake"}:
            body = block.body.replace(CONNECT, UNSIGNED).replace(INSTALL, load)
            run(Path(sys.argv[1]), block._replace(body=body), namespace)
            number += 1
    print(f"{number} examples")
