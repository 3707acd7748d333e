"""Compare the descriptions of a driver and its executors, and say what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastpq.spark.check.probe import Description

LEAST_FREE_BYTES = 256 << 20        # two segments of a worker with wide rows, if segments are files
SUPPORTED_SPARK = ("4.0", "4.1", "4.2", "4.3")


def problems_of_driver(driver: Description) -> Iterator[str]:
    """Yield what is wrong with the driver."""
    yield from _problems_of_process("the driver", driver)
    spark, python_side = driver.get("spark"), driver["packages"]["pyspark"]
    if spark is not None and spark != python_side:
        yield f"the driver has PySpark {python_side}, and its JVM has Spark {spark}: use the same version for both"
    if python_side is not None and not python_side.startswith(SUPPORTED_SPARK):
        yield f"fastpq runs with PySpark {SUPPORTED_SPARK[0]} to {SUPPORTED_SPARK[-1]}, and the driver has {python_side}"
    if driver.get("java") is None:
        yield "the driver has no Java: install a JDK or JRE of version 17 or later, or set JAVA_HOME"
    elif int(driver["java"].split(".")[0]) < 17:
        yield f"the driver has Java {driver['java']}, and Spark 4 needs Java 17 or later"
    if driver["jar"] is None:
        yield (
            "this fastpq has no jar (it was built with FASTPQ_NO_JAR=1). Spark reads and writes through Python alone, which is "
            "slower and supports less"
        )
    elif driver.get("loaded_jar") not in (None, driver["jar"]):
        yield "the jar in spark.jars is that of another version of fastpq: use the one that fastpq.spark.jar_path() names"


def problems_of_executors(driver: Description, executors: Sequence[Description], count: int) -> Iterator[str]:
    """Yield what is wrong with the executors.

    Args:
        driver: the driver's description.
        executors: one description for each executor that answered.
        count: number of executors that the session has.
    """
    if len(executors) < count:
        yield f"{len(executors)} of {count} executors ran a task: the others are busy, lost, or too many for the check"
    for number, executor in enumerate(executors, 1):
        name = f"executor {number} on {executor['host']}"
        yield from _problems_of_process(name, executor)
        yield from _differences(name, driver, executor)


def _problems_of_process(name: str, process: Description) -> Iterator[str]:
    versions = process["packages"]
    for package in ("fastpq", "pyspark", "pyarrow", "numpy"):
        version = versions[package]
        if version is None:
            yield (
                f"{name} has no {package}: install {package} where {process['executable']} finds it, or name another interpreter "
                "in spark.pyspark.python"
            )
        elif version.startswith("broken"):
            yield f"{name} cannot import {package}: {version}"
    free = process["free_temporary"]
    if process["memory"].startswith("files") and free is not None and free < LEAST_FREE_BYTES:
        yield (
            f"{name} shares memory with the JVM in {process['memory']}, where {free >> 20} MiB are free. Free some space, or "
            "name another folder in FASTPQ_SEGMENT_FOLDER (spark.executorEnv.FASTPQ_SEGMENT_FOLDER)"
        )
    if process["key_service"] not in (None, "ok", "fastpq is missing (fastpq)"):
        yield f"{name} cannot use the key service: {process['key_service']}"


def _differences(name: str, driver: Description, executor: Description) -> Iterator[str]:
    theirs, ours = executor["python"].rpartition(".")[0], driver["python"].rpartition(".")[0]
    if theirs != ours:
        yield f"{name} has Python {theirs}, and the driver has Python {ours}: PySpark needs the same version on all machines"
    for package in ("fastpq", "pyspark"):
        version, driver_version = executor["packages"][package], driver["packages"][package]
        if None not in (version, driver_version) and version != driver_version:
            yield f"{name} has {package} {version}, and the driver has {package} {driver_version}: install the same version"
