"""Cost of starting: ``python -m benchmarks.startup`` prints seconds of whole processes, beside NumPy, pyarrow and Polars.

Each process imports a package, or imports a package and reads or writes a small flat file. Packages take turns. Printed are
medians of wall time and of processor time, and the ratio of the wall time to ``import numpy``. Bytecode is kept in a folder.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path

import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq

import fastpq
from benchmarks.equality import require_equal
from benchmarks.processes import process

ROWS = 1000

IMPORTS = {
    "python": "pass",
    "numpy": "import numpy",
    "fastpq": "import fastpq",
    "fastpq, read_table": "import fastpq; fastpq.read_table",
    "pyarrow": "import pyarrow.parquet",
    "polars": "import polars",
}
READS = {
    "fastpq": "import fastpq; table = fastpq.read_table({path!r})",
    "pyarrow": "import pyarrow.parquet; table = pyarrow.parquet.read_table({path!r})",
    "polars": "import polars; table = polars.read_parquet({path!r})",
}
COLUMNS = f"columns = dict(id=numpy.arange({ROWS}), price=numpy.arange({ROWS}) / 4)"
WRITES = {
    "fastpq": f"import numpy, fastpq; {COLUMNS}; fastpq.write_table(columns, {{path!r}})",
    "pyarrow": f"import numpy, pyarrow.parquet; {COLUMNS}; pyarrow.parquet.write_table(pyarrow.table(columns), {{path!r}})",
    "polars": f"import numpy, polars; {COLUMNS}; polars.DataFrame(columns).write_parquet({{path!r}}, compression='snappy')",
}


def check(path: Path) -> None:
    """Compare the tables of all readers, and those that all writers write.

    Raises:
        DifferenceError: the tables differ.
    """
    truth = pq.read_table(path)
    require_equal(pa.table(fastpq.read_table(path)), truth)
    require_equal(polars.read_parquet(path).to_arrow(), truth)
    written = path.with_name("written.parquet")
    for program in WRITES.values():
        process(program.format(path=str(written)), os.environ)
        require_equal(pq.read_table(written), truth.select(["id", "price"]))


def measure(programs: dict[str, str], rounds: int, environment: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Medians of wall and processor seconds by program, without the first round."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for _ in range(rounds + 1):
        for name, program in programs.items():
            run = process(program, environment)
            found[name].append((run.wall, run.processor))
    return {
        name: (statistics.median(wall for wall, _ in runs[1:]), statistics.median(used for _, used in runs[1:]))
        for name, runs in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.parquet"
        numbers = np.arange(ROWS)
        words = [f"item {number % 100}" for number in numbers]
        pq.write_table(pa.table({"id": numbers, "price": numbers / 4, "name": words}), path, store_schema=False)
        check(path)
        programs = {f"import {name}": program for name, program in IMPORTS.items()}
        programs |= {f"first read, {name}": program.format(path=str(path)) for name, program in READS.items()}
        target = str(path.with_name("written.parquet"))
        programs |= {f"first write, {name}": program.format(path=target) for name, program in WRITES.items()}
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        medians = measure(programs, rounds, environment)
    numpy_wall = medians["import numpy"][0]
    print(f"{'seconds, medians of ' + str(rounds):32} {'wall':>8} {'cpu':>8} {'ratio':>8} {'- numpy':>8}")
    for name, (wall, used) in medians.items():
        print(f"{name:32} {wall:8.3f} {used:8.3f} {wall / numpy_wall:8.2f} {wall - numpy_wall:+8.3f}")


if __name__ == "__main__":
    main()
