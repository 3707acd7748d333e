"""Runs a foreign suite and prints its figures."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUITES = {
    "pyarrow": ("pyarrow_suite", ["--pyargs", "pyarrow.tests.parquet"]),
    "pandas": ("pandas_suite", ["--pyargs", "pandas.tests.io.test_parquet"]),
    "fastparquet": ("fastparquet_suite", ["fastparquet/test"]),
}


def main() -> int:
    """Run the suite and print its summary. The exit code is 0 if the suite ran, whatever passed."""
    parser = argparse.ArgumentParser(prog="tools.foreign_suites", description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--source", type=Path, help="clone of fastparquet's repository")
    parser.add_argument("--plain", action="store_true", help="run the suite without fastpq, for comparison")
    arguments, rest = parser.parse_known_args()     # the others are arguments of pytest
    plugin, tests = SUITES[arguments.suite]
    if (arguments.suite == "fastparquet") != (arguments.source is not None):
        parser.error("--source belongs to fastparquet, whose tests are not in the installed package")
    with tempfile.TemporaryDirectory() as folder:
        # the suites must not find the settings of our own tests
        place = arguments.source or Path(folder)
        plugins = [] if arguments.plain else ["-p", f"tools.foreign_suites.{plugin}"]
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir",
            str(place), "-W", "ignore", *plugins, *(rest or ["--tb=no"]), *tests]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(place)])}
        if data := os.environ.get("FASTPQ_TEST_DATA"):
            environment["PARQUET_TEST_DATA"] = str(Path(data) / "parquet-testing" / "data")
        run = subprocess.run(command, cwd=place, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    print(run.stdout)
    summary = run.stdout.rstrip().rpartition("\n")[2]
    counts = {name: int(number) for number, name in re.findall(r"(\d+) (\w+)", summary.partition(" in ")[0])}
    counts.pop("deselected", None)
    passed = counts.get("passed", 0) + counts.get("xpassed", 0)
    print(f"{arguments.suite}: {passed} of {sum(counts.values())} pass")
    return 0 if counts else 1


if __name__ == "__main__":
    sys.exit(main())
