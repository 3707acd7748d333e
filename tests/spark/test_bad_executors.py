"""Executors without fastpq, with another version or another Python, and without room for shared memory: a clear error at once, or
the same rows as ever."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastpq.spark.jvm.jar import build
from tests.requirements import java_jars
from tests.spark.jvms import quick_jvm

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 900       # seconds: a last guard
MOST_SECONDS = 60   # for four attempts of two tasks on a busy machine, with a start of Python; alone they take about a second
# what the shell does before the driver: /dev/shm is full, and a folder has room for less than a segment
FULL = """
mount -t tmpfs -o size=64k tmpfs /dev/shm
head -c 65536 /dev/zero > /dev/shm/full
mount -t tmpfs -o size=64k tmpfs "$0"
exec "$@"
"""
OTHER = {
    "version": "import fastpq.version\nfastpq.version.VERSION = fastpq.__version__ = '0.0.9'\n",
    "python": "import fastpq.spark.sent\nfastpq.spark.sent.PYTHON = '3.99'\n",
    "unmapped": """
from fastpq.spark.jvm.segments import Segment
begin = Segment.__init__
def begin_elsewhere(segment):
    begin(segment)
    segment.path = "/nowhere/memory"
Segment.__init__ = begin_elsewhere
""",
    "no_memfd": "import os\ndel os.memfd_create\n",
}
PROBLEMS = ("without", "missing", *OTHER, "files", "full_disk")


def write_script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


def write_interpreters(folder: Path) -> None:
    """Write an interpreter for each of PROBLEMS, but for "missing"."""
    python = sys.executable
    without = f'export PYTHONPATH=$(printf %s "$PYTHONPATH" | tr : "\\n" | grep -Fvx {ROOT} | paste -sd:)'
    write_script(folder / "without", f'{without}\nexec {python} -S "$@"\n')
    for name, text in OTHER.items():
        site = folder / f"site_{name}"
        site.mkdir()
        (site / "sitecustomize.py").write_text(text)
        write_script(folder / name, f'export PYTHONPATH={site}:"$PYTHONPATH"\nexec {python} "$@"\n')
    for name in ("files", "full_disk"):
        (folder / f"{name}_folder").mkdir()
        write_script(folder / name, f'export FASTPQ_SEGMENT_FOLDER={folder}/{name}_folder\nexec {python} "$@"\n')


Answers = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory, class_archive: None) -> Answers:
    """What a driver tells about each problem, by the problem's name and by what the driver tried."""
    java_jars()
    assert build()
    folder = tmp_path_factory.mktemp("bad")
    write_interpreters(folder)
    own_mounts = shutil.which("unshare") is not None and not subprocess.run(["unshare", "-m", "true"], check=False).returncode
    problems = PROBLEMS if own_mounts else PROBLEMS[:-1]
    before = ("unshare", "-m", "sh", "-c", FULL, str(folder / "full_disk_folder")) if own_mounts else ()
    command = (*before, sys.executable, "-m", "tests.spark.bad_executors", str(folder), *problems)
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "JDK_JAVA_OPTIONS": quick_jvm(),
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"problem"')]
    return {(answer["problem"], answer["work"]): answer for answer in found}


@pytest.mark.parametrize("work", ["read", "write", "verify"])
@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ("without", "needs the package|No module named|cannot import"),
        ("missing", "No such file or directory"),
        ("version", "runs fastpq 0.0.9 with Python"),
        ("python", r"with Python 3\.99"),
    ],
)
def test_an_interpreter_that_does_not_fit(answers: Answers, problem: str, words: str, work: str) -> None:
    answer = answers[problem, work]
    assert re.search(words, answer["error"]), answer["error"][:2000]
    assert answer["seconds"] < MOST_SECONDS
    if problem in ("without", "missing") and work != "verify":
        assert f"{problem} does not run fastpq's Python worker (" in answer["error"]
        assert "python -m fastpq.spark.check MASTER says" in answer["error"]


@pytest.mark.parametrize("problem", ["no_memfd", "files"])
def test_memory_in_files_has_the_same_rows(answers: Answers, problem: str) -> None:
    """The driver also has a full /dev/shm, which anonymous memory does not use."""
    for work in ("read", "write", "verify"):
        assert answers["healthy", work]["error"] == answers[problem, work]["error"] == ""
        assert answers[problem, work]["answer"] == answers["healthy", work]["answer"]
    assert answers["healthy", "read"]["answer"][1] == 1000


def test_memory_that_the_jvm_cannot_map_is_an_error_of_no_file(answers: Answers) -> None:
    """Files that are not corrupt must not be passed over."""
    for work in ("read", "lenient_read", "write"):
        assert "the JVM cannot map the memory" in answers["unmapped", work]["error"], work
    assert answers["healthy", "lenient_read"]["answer"] == answers["healthy", "read"]["answer"]


def test_no_room_for_the_files_is_an_error(answers: Answers) -> None:
    if ("full_disk", "read") not in answers:
        pytest.skip("needs a user who may mount file systems")
    for work in ("read", "write"):
        answer = answers["full_disk", work]
        assert "No space left on device: a Python worker shares 1,048,576 bytes with the JVM in a file below" in answer["error"]
        assert "FASTPQ_SEGMENT_FOLDER" in answer["error"]
        assert answer["seconds"] < MOST_SECONDS
    assert answers["full_disk", "verify"]["answer"] == answers["healthy", "verify"]["answer"]
