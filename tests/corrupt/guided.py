"""Fuzzing guided by coverage: Atheris (libFuzzer) over extensions compiled by clang with coverage counters.

Atheris comes from the extra ``fuzz``; its run-time library is preloaded, since extensions name its functions. libFuzzer chooses
the inputs, keeps those that reach new code, and mutates them by this project's mutations of structures, or by its own of bytes.
"""

from __future__ import annotations

import datetime
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.corrupt import ledger
from tests.corrupt.mutate import MUTATIONS, Sample
from tools import builds

# clang's -fsanitize=fuzzer-no-link also counts the depth of the stack, by a variable that Atheris' library lacks
COUNTERS = "-fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp"
COMPILERS = ("clang", "clang-19", "clang-16", "clang-14")
TARGETS = ("paths", "kernel", "codecs", "variant", "wkb", "arrow_schema")
LARGEST_INPUT = 8192
TURN = 60.0     # seconds
TOLD_EVERY = 500    # inputs
OWN_MUTATIONS = 0.7     # share of mutations by tests/corrupt/mutate.py and structured.py
STATUS = re.compile(r"#(\d+)\s.*cov: (\d+) ft: (\d+) corp: (\d+)")


def build_guided() -> Path:
    """Compile a copy of the tree with coverage counters.

    Raises:
        BuildError: there is no clang, or it failed.
    """
    compiler = next(filter(shutil.which, COMPILERS), None)
    if compiler is None:
        raise builds.BuildError("--build guided needs clang (Debian: apt-get install clang libclang-rt-14-dev)")
    options = {"FASTPQ_NO_CLONES": "1", "CC": compiler, "LDSHARED": f"{compiler} -shared", "CFLAGS": COUNTERS}
    return builds.build("guided", options)


def preloaded() -> str:
    """libFuzzer and UBSan's run-time library, as Atheris brings them.

    Raises:
        BuildError: Atheris is not installed.
    """
    found = importlib.util.find_spec("atheris")
    if found is None or found.origin is None:
        raise builds.BuildError("--build guided needs Atheris: pip install 'fastpq[fuzz]'")
    return str(Path(found.origin).parent.parent / "ubsan_with_fuzzer.so")


def run_guided(folder: Path, targets: Sequence[str], seconds: float, save: Path, commit: str) -> int:
    """Take the targets in turns; each turn is a process of libFuzzer and a line of the ledger."""
    deadline, findings = time.monotonic() + seconds, 0
    chosen = [target for target in targets if target in TARGETS]
    while True:
        for target in chosen:
            left = deadline - time.monotonic()
            if left < 1:
                return 1 if findings else 0
            findings += turn(folder, target, min(left, TURN), save, commit)


def turn(folder: Path, target: str, seconds: float, save: Path, commit: str) -> int:
    """One process of libFuzzer; returns the number of findings."""
    from tests.corrupt.targets import bytes_of, samples_for

    corpus = folder / "guided" / target
    if not corpus.is_dir():
        corpus.mkdir(parents=True)
        stored = folder / "seeds" if target == "paths" else None
        for number, sample in enumerate(samples_for(target, stored)):
            data = bytes_of(sample.seed if target == "paths" else sample)
            (corpus / f"seed{number:04}").write_bytes(data)
    save.mkdir(parents=True, exist_ok=True)
    before = set(save.iterdir())
    counts = folder / "guided" / f"{target}.json"
    counts.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.corrupt.guided", target, str(save), str(counts), str(corpus)]
    command += [f"-max_total_time={int(seconds) or 1}", f"-max_len={LARGEST_INPUT}", f"-artifact_prefix={save}/guided-{target}-"]
    command += ["-timeout=20", "-rss_limit_mb=4096"]
    when, started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    status = STATUS.findall(done.stderr)
    runs, edges, features, kept = map(int, status[-1]) if status else (0, 0, 0, 0)
    if not status:
        print(done.stderr[-2000:], flush=True)
    new = (path for path in sorted(set(save.iterdir()) - before) if path.suffix != ".txt")
    found = [(0, "finding", str(path)) for path in new]
    coverage = {"edges": edges, "features": features, "inputs": kept}
    outcomes = json.loads(counts.read_text()) if counts.exists() else {}
    took = round(time.monotonic() - started, 1)
    ledger.append(folder, ledger.Entry(when, "guided", commit, target, 0, 0, runs, took, outcomes, {}, found, coverage))
    print(f"fuzz: guided {target}, {runs} inputs, {took} s, {coverage}, {len(found)} findings", flush=True)
    return len(found)


def mutator(target: str) -> Callable[[bytes, int, int], bytes]:
    """What makes an input from another."""
    import atheris

    from tests.corrupt.seeds import Seed
    from tests.corrupt.structured import Subject, mutate_file

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() > OWN_MUTATIONS or len(data) < 12:
            return bytes(atheris.Mutate(data, most))
        if target == "paths":
            return mutate_file([Subject(Seed("", data, mode_of(data), checked=False))], seed, 0).data[:most]
        return random.choice(MUTATIONS)(Sample("", data, ()), random)[:most]

    return mutated


def mode_of(data: bytes) -> str | None:
    """The encryption mode of an input, as far as its last bytes tell."""
    return "column" if data[-4:] == b"PARE" else None


def runner(target: str) -> Callable[[bytes], None]:
    """What reads an input."""
    from tests.corrupt.paths import Case, Reference, paths
    from tests.corrupt.seeds import Seed
    from tests.corrupt.structured import Mutant, Subject
    from tests.corrupt.targets import TARGETS as ALL

    if target != "paths":
        return lambda data: ALL[target](data, zlib.crc32(data))
    references = {mode: Reference(Subject(Seed("", b"", mode))) for mode in (None, "column")}
    return lambda data: paths(Case(Mutant("", data, 0), references[mode_of(data)]), zlib.crc32(data))


def main() -> None:
    import atheris

    import fastpq

    target, save, counts, *arguments = sys.argv[1:]
    read, outcomes = runner(target), Counter[str]()

    def one(data: bytes) -> None:
        name = "ok"
        try:
            read(data)
        except fastpq.ParquetError as error:
            name = type(error).__name__
        except BaseException:       # whatever it is, it is a finding; the fuzzer goes on
            name = "unexpected"
            path = Path(save) / f"guided-{target}-{zlib.crc32(data)}"
            path.write_bytes(data)
            path.with_suffix(".txt").write_text(traceback.format_exc())
        outcomes[name] += 1
        if outcomes.total() % TOLD_EVERY == 0:      # libFuzzer ends the process without a last word
            Path(counts).write_text(json.dumps(outcomes))

    options: dict[str, Any] = {"custom_mutator": mutator(target)}
    atheris.Setup([sys.argv[0], *arguments], one, **options)

    atheris.Fuzz()


if __name__ == "__main__":
    main()
