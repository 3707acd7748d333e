"""Build the jar with fastpq's Java classes. It is compiled against one PySpark's jars, and runs with Spark 4.0 to 4.3."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from argparse import ArgumentParser
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
JAR = FOLDER.parent / "fastpq-spark.jar"
FORMAT = "io.fastpq.spark.FastpqFileFormat"
SERVICES = {        # classes that Spark finds in the jar
    "org.apache.spark.sql.sources.DataSourceRegister": FORMAT,
    "org.apache.spark.sql.SparkSessionExtensionsProvider": "io.fastpq.spark.FastpqExtensions",
}
VERSION_FILE = FOLDER.parents[1] / "version.py"
RELEASE = "17"      # oldest Java that Spark 4 supports


def build(target: Path = JAR) -> bool:
    """Compile the classes in ``java`` into a jar, if the jar is missing or older than its sources.

    Args:
        target: the jar's path.

    Returns:
        False if PySpark or javac is missing, so that no jar can be made.
    """
    sources = sorted((FOLDER / "java").glob("*.java"))
    newest = max(file.stat().st_mtime for file in (*sources, VERSION_FILE, Path(__file__)))
    if target.exists() and target.stat().st_mtime >= newest:
        return True
    jars = spark_jars()
    if jars is None or shutil.which("javac") is None:
        return False
    with tempfile.TemporaryDirectory() as scratch:
        command = ["javac", "-Xlint:none", "-proc:none", "--release", RELEASE, "-cp", f"{jars}/*", "-d", scratch]
        compilation = subprocess.run([*command, *map(str, sources)], stderr=subprocess.PIPE, text=True)
        if compilation.returncode:     # warnings about sun.misc.Unsafe cannot be turned off, and are not shown
            sys.exit(f"fastpq: the classes for Spark do not compile\n{compilation.stderr}")
        pack(Path(scratch), target)
    return True


def spark_jars() -> Path | None:
    """Return the folder with Spark's jars: in $SPARK_HOME, else in the installed PySpark. Return None if there is neither.

    An isolated build cannot import the installed packages, so their folder is searched too.
    """
    spec = find_spec("pyspark")
    homes = [os.environ.get("SPARK_HOME"), *(spec.submodule_search_locations or () if spec is not None else ())]
    homes.append(os.path.join(sysconfig.get_path("purelib"), "pyspark"))
    folders = [Path(home) / "jars" for home in homes if home]
    return next((folder for folder in folders if any(folder.glob("spark-sql_*.jar"))), None)     # pyspark-client has no jars


def missing_tools() -> str:
    """Return text that names the tools that are missing to build the jar."""
    missing = []
    if shutil.which("javac") is None:
        missing.append(f"javac (a JDK of version {RELEASE} or later)")
    if spark_jars() is None:
        missing.append("PySpark (pip install 'pyspark>=4.0,<5' before the build, or its folder in SPARK_HOME)")
    return " and ".join(missing)


def pack(classes: Path, target: Path) -> None:
    """Pack compiled classes and fastpq's version into a jar. The jar replaces the old one only once it is complete."""
    version = runpy.run_path(str(VERSION_FILE))["VERSION"]      # setup.py cannot import fastpq yet
    whole = target.with_suffix(".new")
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as jar:
        jar.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\r\nImplementation-Version: {version}\r\n\r\n")
        for service, name in SERVICES.items():
            jar.writestr(f"META-INF/services/{service}", name + "\n")
        for file in sorted(classes.rglob("*.class")):
            jar.write(file, file.relative_to(classes).as_posix())
    whole.replace(target)


def build_from_command_line() -> None:
    """Build the jar from the command line, or end with text that names what is missing."""
    ArgumentParser(prog="python -m fastpq.spark.jvm", description=__doc__).parse_args()
    if not build():
        sys.exit(f"fastpq: the jar for Spark cannot be built. Missing: {missing_tools()}")


if __name__ == "__main__":      # setup.py runs this file before fastpq can be imported
    build_from_command_line()
