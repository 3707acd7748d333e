"""Access to parquet-java from tests: runs the programs in java/, in one JVM for a whole session."""

from __future__ import annotations

import os
import struct
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.requirements import java_jars

SOURCES = Path(__file__).parent / "java"
TIMEOUT = 600.0     # seconds for one call; after these the JVM counts as hanging and is killed
SHOWN = 4000        # characters of the JVM's log in the error after the JVM ended


def class_path(folder: Path, programs: str = "*.java") -> str:
    """Compile programs of java/ into a folder; returns the class path for running the programs."""
    path = f"{folder}:{java_jars()}/*"
    options = ("-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1")       # half of the processor time
    command: list[str | Path] = ["javac", *options, "-cp", path, "-d", folder, *SOURCES.glob(programs)]
    subprocess.run(command, check=True, capture_output=True, text=True, env=environment())
    return path


def environment() -> dict[str, str]:
    """The environment of a JVM: the environment of this process without LD_PRELOAD, by which sanitizers are loaded."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


class ParquetJava:
    """A JVM for running the programs of java/, one call after another; a context manager.

    Args:
        folder: an empty folder for classes and logs.
    """

    def __init__(self, folder: Path) -> None:
        self._log = folder / "jvm.log"
        options = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx1g")     # a fast start, and few threads
        with self._log.open("wb") as log:
            self._jvm = subprocess.Popen(
                ["java", *options, "-cp", class_path(folder), "Server"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment(),
            )

    def run(self, program: str, *arguments: object) -> str:
        """Run a program; returns its printed text.

        Raises:
            RuntimeError: the program failed (the message is its exception), or the JVM ended or hung (the message has the end of
                the JVM's log).
        """
        words = [str(word).encode() for word in (program, *arguments)]
        request = struct.pack(">i", len(words)) + b"".join(struct.pack(">i", len(word)) + word for word in words)
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        guard = threading.Timer(TIMEOUT, self._jvm.kill)
        guard.start()
        try:
            self._jvm.stdin.write(request)
            self._jvm.stdin.flush()
            head = self._jvm.stdout.read(5)
            failed, length = struct.unpack(">?i", head) if len(head) == 5 else (True, 0)
            printed = self._jvm.stdout.read(length).decode()
        finally:
            guard.cancel()
        if len(head) < 5:
            raise RuntimeError(f"the JVM ended or was killed after {TIMEOUT} s: {self._log.read_text()[-SHOWN:]}")
        if failed:
            raise RuntimeError(printed)
        return printed

    def __enter__(self) -> ParquetJava:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.close()     # the server ends at the end of its input
        try:
            self._jvm.wait(60)
        finally:
            self._jvm.kill()
            self._jvm.wait()
            self._jvm.stdout.close()


def explicit_keys(
    java: ParquetJava, command: str, file: Path, footer_key: bytes | None, column_keys: Mapping[str, bytes], *more: object
) -> str:
    """Run the program ExplicitKeys; returns its printed text."""
    columns = ",".join(f"{name}={key.hex()}" for name, key in column_keys.items()) or "-"
    return java.run("ExplicitKeys", command, file, footer_key.hex() if footer_key else "-", columns, *more)
