"""Say what the driver and the executors have, and what is wrong: ``python -m fastpq.spark.check [MASTER]``.

Without a master, the check looks at this machine alone. With a master, or under spark-submit, it starts a session with fastpq's
jar and asks each executor. It ends with 1 if something is wrong, and with 0 otherwise.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from fastpq.spark.check import probe
from fastpq.spark.check.executors import describe_executors
from fastpq.spark.check.probe import Description
from fastpq.spark.check.problems import problems_of_driver, problems_of_executors
from fastpq.spark.core import SchemaError, UnsupportedError
from fastpq.spark.jvm.jar import JAR
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.options import encryption_of, service_of

NAME_WIDTH = 14     # characters
ERROR_LINE = re.compile(r"[\w./]*(Error|Exception|Warning)\b|.*No module named|.*error=2")
JAVA_VERSION = re.compile(r'version "([^"]+)"')


def run_check(arguments: Sequence[str] | None = None) -> int:
    """Run the check, and return the exit code."""
    values = parser().parse_args(arguments)
    try:
        options = dict(map(pair, values.option))
        service, encryption = service_of(options), encryption_of(options)
        settings = dict(map(pair, values.conf))
    except SchemaError as error:
        print(f"check: {error}", file=sys.stderr)
        return 2
    master_key = None if encryption is None else encryption.footer_key
    driver = describe_driver(service, master_key)
    problems: list[str] = []
    if values.master is not None or "PYSPARK_GATEWAY_PORT" in os.environ:        # the variable is set by spark-submit
        executors, problems = ask_session(values.master, settings, driver, service, master_key)
    else:
        executors = []
    show("the driver" if executors or problems else "this machine", driver)
    for number, executor in enumerate(executors, 1):
        show(f"executor {number}", executor)
    problems = [*problems_of_driver(driver), *problems]
    print("\n".join(["What is wrong:", *(f"- {problem}" for problem in problems)]) if problems else "Nothing is wrong.")
    return 1 if problems else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser for the command's arguments."""
    arguments_parser = argparse.ArgumentParser(
        prog="python -m fastpq.spark.check",
        description="Show the versions, the shared memory and the way to the key service, for this machine or for a cluster's "
        "executors. Say what is wrong. The exit code is 0 if nothing is wrong, 1 if something is, and 2 for a wrong argument.",
    )
    arguments_parser.add_argument(
        "master", nargs="?",
        help="Spark's master, such as local[2], spark://host:7077 or yarn. Without it, the check looks at this machine alone and "
        "starts no session. Under spark-submit, it takes the master of the submission",
    )
    arguments_parser.add_argument(
        "--conf", action="append", default=[], metavar="NAME=VALUE",
        help="a setting for the session, for example spark.executorEnv.FASTPQ_KEYRING=/secrets/keyring",
    )
    arguments_parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE",
        help="an option for the data source. kms.client=module:Class makes the client in each process. "
        "parquet.encryption.uniform.key=NAME also wraps and unwraps a random key with this master key",
    )
    return arguments_parser


def pair(text: str) -> tuple[str, str]:
    """Return the name and the value in ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not equals:
        raise SchemaError(f"{text!r} is not NAME=VALUE")
    return name, value


def describe_driver(service: ServiceOptions | None, master_key: str | None) -> Description:
    """Describe this process as a driver, with the version of the Java that ``JAVA_HOME`` or ``PATH`` names."""
    fields = None if service is None else dataclasses.asdict(service)
    return {**probe.describe(fields, master_key), "java": java_version(), "spark": None, "loaded_jar": None}


def java_version() -> str | None:
    """Return the version of Java that PySpark would start. Return None without Java."""
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if program is None:
        return None
    try:
        process = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    match = JAVA_VERSION.search(process.stderr)
    return None if match is None else match.group(1)


def ask_session(
    master: str | None, settings: dict[str, str], driver: Description, service: ServiceOptions | None, master_key: str | None
) -> tuple[list[Description], list[str]]:
    """Start a session, add what only it knows to the driver's description, and ask the executors.

    Returns:
        The executors' descriptions, and what is wrong with the executors.
    """
    builder = SparkSession.builder.appName("fastpq.spark.check").config("spark.ui.enabled", "false")
    if master is not None:
        builder = builder.master(master)
    if JAR.exists():
        builder = builder.config("spark.jars", str(JAR))
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:      # of PySpark, or of the JVM
        return [], [f"no session starts: {reason_of(error)}"]
    try:
        add_session(spark, driver)
        executors, count = describe_executors(spark, service, master_key)
    except UnsupportedError as error:
        return [], [str(error)]
    except Exception as error:      # of PySpark, or of the JVM
        return [], [f"the executors cannot run {spark.sparkContext.pythonExec}: {reason_of(error)}"]
    finally:
        spark.stop()
    return executors, list(problems_of_executors(driver, executors, count))


def add_session(spark: SparkSession, driver: Description) -> None:
    """Add the JVM's versions and the session's jar to the driver's description."""
    machine: Any = spark._jvm
    driver["java"], driver["spark"] = str(machine.System.getProperty("java.version")), spark.version
    jars = [path for path in spark.sparkContext.getConf().get("spark.jars", "").split(",") if path.endswith(JAR.name)]
    path = jars[0].removeprefix("file://") if jars else ""
    driver["loaded_jar"] = probe.file_digest(path) if os.path.exists(path) else None


def reason_of(error: Exception) -> str:
    """Return the lines of an error of a task that say what happened, without the frames of Java and Python."""
    cause = getattr(error, "java_exception", None)
    lines = str(error if cause is None else cause.getMessage()).splitlines()
    text_lines = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith(("at ", "File ", "..."))]
    error_lines = [line for line in text_lines if ERROR_LINE.match(line)]
    return " ".join((error_lines or text_lines)[:3])


def show(title: str, description: Description) -> None:
    """Print a description."""
    versions, jar = description["packages"], description["jar"]
    lines = {
        "Python": f"{description['python']} ({description['executable']})",
        "fastpq": f"{versions['fastpq']}, {'without the jar' if jar is None else f'jar {jar}'}",
        "PySpark": versions["pyspark"],
        "pyarrow": versions["pyarrow"],
        "NumPy": versions["numpy"],
        "Java": description.get("java"),
        "Spark": description.get("spark"),
        "shared memory": f"{description['memory']}; free: /dev/shm {size(description['free_shared_memory'])}, "
        f"{description['temporary_folder']} {size(description['free_temporary'])}",
        "key service": description["key_service"],
    }
    print(f"{title} on {description['host']}")
    for name, value in lines.items():
        if value is not None or name in ("PySpark", "pyarrow", "NumPy"):
            print(f"  {name:{NAME_WIDTH}} {'missing' if value is None else value}")


def size(count: int | None) -> str:
    """Return a byte count as text."""
    return "none" if count is None else f"{count / (1 << 30):.1f} GiB"


if __name__ == "__main__":
    sys.exit(run_check())
