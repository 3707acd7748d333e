"""The jar of fastpq's classes for Spark: compiled against the jars of the installed PySpark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
JAR = FOLDER.parent / "fastpq-spark.jar"
SERVICE = "org.apache.spark.sql.sources.DataSourceRegister"
PROVIDER = "io.fastpq.spark.FastpqProvider"
RELEASE = "17"      # of Java, the oldest that Spark 4 runs on


def build(target: Path = JAR) -> bool:
    """Compile the classes in ``java`` into a jar, if it is missing or older than they are.

    Args:
        target: the jar.

    Returns:
        False where PySpark or javac are missing, so that no jar can be made.
    """
    sources = sorted((FOLDER / "java").glob("*.java"))
    newest = max(file.stat().st_mtime for file in (*sources, Path(__file__)))
    if target.exists() and target.stat().st_mtime >= newest:
        return True
    jars = spark_jars()
    if jars is None or shutil.which("javac") is None:
        return False
    with tempfile.TemporaryDirectory() as scratch:
        command = ["javac", "-Xlint:none", "-proc:none", "--release", RELEASE, "-cp", f"{jars}/*", "-d", scratch]
        done = subprocess.run([*command, *map(str, sources)], stderr=subprocess.PIPE, text=True)
        if done.returncode:     # warnings about sun.misc.Unsafe cannot be turned off, and are not shown
            sys.exit(f"fastpq: the classes for Spark do not compile\n{done.stderr}")
        pack(Path(scratch), target)
    return True


def spark_jars() -> Path | None:
    """The folder of Spark's jars: of $SPARK_HOME, or of the installed PySpark; None without."""
    found = find_spec("pyspark")
    homes = [os.environ.get("SPARK_HOME"), *(found.submodule_search_locations or () if found is not None else ())]
    folders = [Path(home) / "jars" for home in homes if home]
    return next((folder for folder in folders if any(folder.glob("spark-sql_*.jar"))), None)     # pyspark-client has none


def pack(classes: Path, target: Path) -> None:
    """Pack compiled classes into a jar that appears whole."""
    whole = target.with_suffix(".new")
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n\r\n")
        jar.writestr(f"META-INF/services/{SERVICE}", PROVIDER + "\n")
        for file in sorted(classes.rglob("*.class")):
            jar.write(file, file.relative_to(classes).as_posix())
    whole.replace(target)


if __name__ == "__main__":
    sys.exit(0 if build() else "fastpq: no jar for Spark: PySpark or javac are missing")
