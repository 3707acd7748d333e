"""Which versions of other libraries read each encoding that ``encoding="auto"`` may choose: ``python -m tools.old_readers``.

Each version is installed by pip into a folder of its own. A process with this version reads one small file for each column type
and encoding. The values must be equal to those that it reads from the PLAIN file for the same type. A type whose PLAIN file the
version does not read counts for nothing. The table in docs/pages/performance.md has the results.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NUMPY_1 = "numpy<2"
# What pip installs, by the name in the table. The first package is the one under test.
VERSIONS: dict[str, tuple[str, ...]] = {
    **{f"pyarrow {version}": (f"pyarrow=={version}.*", NUMPY_1) for version in ("11.0", "12.0", "16.1", "20.0")},
    "pyarrow 26.0": ("pyarrow==26.0.*", "numpy"),
    **{
        f"polars {version}": (f"polars=={version}.*", "pyarrow==14.0.2", NUMPY_1)
        for version in ("0.19", "0.20", "1.0", "1.20")
    },
    "polars 2.1": ("polars==2.1.*", "pyarrow", "numpy"),
    **{f"duckdb {version}": (f"duckdb=={version}.*", NUMPY_1) for version in ("0.9", "0.10", "1.0", "1.3")},
    "duckdb 2.0": ("duckdb==2.0.*", "numpy"),
    **{
        f"fastparquet {version}": (f"fastparquet=={version}.*", "pandas==2.2.3", NUMPY_1)
        for version in ("2023.10", "2024.11")
    },
    "fastparquet 2026.9": ("fastparquet==2026.9.*", "pandas==3.1.1"),
}
FLOATS = ("float", "double")
# Reads each file in a folder, and prints the encodings by what came of them. It runs with the installed version alone.
READER = """
import json, sys
from pathlib import Path

library, folder = sys.argv[1], Path(sys.argv[2])

def read(path):
    if library == "pyarrow":
        import pyarrow.parquet as pq
        return pq.read_table(path)["x"].to_pylist()
    if library == "polars":
        import polars as pl
        return pl.read_parquet(path)["x"].to_list()
    if library == "duckdb":
        import duckdb
        return [row[0] for row in duckdb.sql(f"SELECT x FROM read_parquet('{path}')").fetchall()]
    import fastparquet
    return fastparquet.ParquetFile(str(path)).to_pandas()["x"].astype(object).where(lambda values: values.notna(), None).tolist()

results = {}
for path in sorted(folder.glob("*.parquet")):
    try:
        results[path.name] = repr(read(path))
    except BaseException as error:
        results[path.name] = None
print(json.dumps(results))
"""


def write_files(folder: Path) -> dict[str, tuple[str, str, str]]:
    """Write the files, and return type, encoding and page version by the name of the file."""
    sys.path.insert(0, str(ROOT))
    from tests.interop.automatic_encodings import files

    written: dict[str, tuple[str, str, str]] = {}
    for name, path, _ in files(folder, ["1.0"]):
        kind, encoding, version = name.rsplit(" ", 2)
        written[path.name] = kind, encoding, version
    return written


def installed(name: str, cache: Path) -> Path | None:
    """Install a version into its own folder, once. Returns None if pip has no such version for this Python."""
    target = cache / name.replace(" ", "-")
    if not target.exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--only-binary=:all:", "--no-compile", "--target", str(target)]
        done = subprocess.run([*command, *VERSIONS[name]], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            return None
    return target


def results_of(name: str, target: Path, folder: Path, written: dict[str, tuple[str, str, str]]) -> dict[str, list[str]]:
    """Return what a version reads: for each column of the table, ``"yes"``, ``"no"`` or ``"wrong values"`` by type."""
    command = [sys.executable, "-S", "-c", READER, name.partition(" ")[0], str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(target)})
    values: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    plain = {written[file][0]: values[file] for file in written if written[file][1] == "PLAIN"}
    verdicts: defaultdict[str, list[str]] = defaultdict(list)
    for file, (kind, encoding, _) in written.items():
        if encoding != "PLAIN" and plain[kind] is not None:
            verdict = "yes" if values[file] == plain[kind] else "no" if values[file] is None else "wrong values"
            verdicts[feature(kind, encoding)].append(verdict)
            if verdict != "yes":
                print(f"{name}: {kind} {encoding}: {verdict}", file=sys.stderr)
    return verdicts


def feature(kind: str, encoding: str) -> str:
    """Return a column of the table: an encoding, with the kind of type if libraries differ by it."""
    if encoding == "BYTE_STREAM_SPLIT":
        return f"{encoding} of {'floats' if kind in FLOATS else 'integers'}"
    return encoding


def cell_of(verdicts: list[str]) -> str:
    """Return the cell for the verdicts on all types."""
    if "wrong values" in verdicts:
        return "wrong values"
    return verdicts[0] if len({*verdicts}) == 1 else "some types"


def lines(cache: Path) -> Iterator[str]:
    """Yield the table as Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        written = write_files(Path(folder))
        features = sorted({feature(kind, encoding) for kind, encoding, _ in written.values() if encoding != "PLAIN"})
        yield f"| Reader | {' | '.join(features)} |"
        yield f"| --- |{' :-: |' * len(features)}"
        for name in VERSIONS:
            target = installed(name, cache)
            if target is None:
                continue
            verdicts = results_of(name, target, Path(folder), written)
            yield f"| {name} | {' | '.join(cell_of(verdicts[each]) for each in features)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.old_readers", description=__doc__)
    cache = Path(tempfile.gettempdir()) / "fastpq-old-readers"
    parser.add_argument("--cache", type=Path, default=cache, help="folder for the installed versions (default: %(default)s)")
    for line in lines(parser.parse_args().cache):
        print(line, flush=True)


if __name__ == "__main__":
    main()
