"""A standalone cluster on which executors, tasks, disks and drivers fail: the table is as before or as after, and nothing of the
keys is left anywhere."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets as randomness
import subprocess
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import fastpq.spark
from fastpq.datasets.records import find
from fastpq.spark import keyservice
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.scan.file_scan import open_file
from fastpq.spark.tables import journal
from fastpq.spark.tables.listing import list_files, store_of
from tests.encryption.keys.peers import MASTER_KEYS, key_list, unwrap
from tests.interop.parquet_java import class_path
from tests.io.object_stores import unfinished
from tests.io.test_multipart import filesystem_of
from tests.narrowing import present
from tests.requirements import java_jars
from tests.spark.cluster import DRIVERS, Cluster, cluster
from tests.spark.cluster_driver import AFTER, BEFORE, BUCKET, CLIENT, COMMITTER, place_of
from tests.spark.conftest import store_environment
from tests.spark.kms import FILE_VARIABLE
from tests.spark.traces import PLAINTEXT, PLANTED

KEYS = {name: randomness.token_bytes(len(key)) for name, key in MASTER_KEYS.items()}     # in no table of digits by chance
# drivers and their scenarios; each driver is killed in the last one
PYTHON = (
    "killed_executor", "killed_reader", "failing_task", "speculation", "disk_full", "cancelled", "two_writers", "jobs",
    "driver_killed_before_commit",
)
JAR = (
    "killed_executor@jar", "killed_reader@jar", "failing_task@jar", "speculation@jar", "cancelled@jar", "two_writers@jar",
    "lost_after_output@jar", "jobs@jar", "driver_lost_before_job_commit@jar",
)
STORE = "killed_executor@s3", "failing_task@s3", "driver_killed_in_commit"
NATIVE = (
    "killed_executor@native", "killed_reader@native", "failing_task@native", "speculation@native", "cancelled@native",
    "lost_after_output@native", "driver_lost_before_job_commit@native",
)
DRIVERS_OF_TEST = (("python", PYTHON), ("jar", JAR), ("python", STORE), ("native", NATIVE))
SURVIVED = tuple(name for _, names in DRIVERS_OF_TEST for name in names[:-1])
UNCHANGED = "disk_full", "cancelled", "cancelled@jar", "cancelled@native"      # scenarios whose write has no effect
TRACES = "jobs.traces", "jobs@jar.traces"
TIMEOUT = 1800      # seconds for a driver's scenarios: a last guard against one that hangs


@pytest.fixture(scope="module")
def on_cluster(tmp_path_factory: pytest.TempPathFactory, moto_url: str, class_archive: None) -> Iterator[Cluster]:
    java_jars()
    bucket = f"bucket-{uuid.uuid4().hex}"
    filesystem_of(moto_url).mkdir(bucket)
    folder = tmp_path_factory.mktemp("cluster")
    small = folder / "disk_full"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", small], capture_output=True, check=False)
    try:
        (folder / "master-keys").write_text(key_list(KEYS))
        (folder / "token").write_text(randomness.token_urlsafe(24))
        class_path(folder, "FaultyCommitter.java")
        variables = {
            COMMITTER: str(folder),
            FILE_VARIABLE: str(folder / "master-keys"), PLANTED: randomness.token_hex(16), BUCKET: bucket,
            **store_environment(moto_url),
        }
        with pytest.MonkeyPatch.context() as environment, cluster(folder, variables) as running:
            for name, value in variables.items():
                environment.setenv(name, value)     # for rows_in, which reads without Spark
            environment.setattr(keyservice, "_factories", {})       # clients of other tests have other keys
            yield running
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", small], check=True)


@pytest.fixture(scope="module")
def told(on_cluster: Cluster) -> dict[str, Any]:
    """What drivers told before they were killed, and all that they printed. Two run at the same time: both wait a lot."""
    found: dict[str, Any] = {"printed": ""}

    def drive(driver: tuple[str, tuple[str, ...]]) -> tuple[int, str, str]:
        way, scenarios = driver
        process = on_cluster.start(on_cluster.folder, way, *scenarios)
        out, errors = process.communicate(timeout=TIMEOUT)
        return process.returncode, out, errors

    with ThreadPoolExecutor(DRIVERS) as pool:
        runs = list(pool.map(drive, DRIVERS_OF_TEST))
    for (code, out, errors), (_, scenarios) in zip(runs, DRIVERS_OF_TEST, strict=True):
        assert code, "the driver should have been killed"
        for line in out.splitlines():
            if line.startswith('{"scenario"'):
                answer = json.loads(line)
                found[answer["scenario"]] = answer["rows"]
        assert set(scenarios[:-1]) <= found.keys(), errors[-4000:]
        found["printed"] += out + errors
    return found


def rows_in(table: str) -> list[int]:
    """Read without Spark, as its tasks read."""
    rows = []
    for found in list_files([table]):
        with open_file(found.path, ServiceOptions(CLIENT, allow_plaintext_files=table.endswith("@native"))) as file:
            rows += file.read(["id"])["id"].to_pylist()
    return sorted(rows)


@pytest.mark.parametrize("scenario", SURVIVED)
def test_what_the_driver_survives(on_cluster: Cluster, told: dict[str, Any], scenario: str) -> None:
    table = place_of(on_cluster.folder, scenario).table
    expected = list(range(BEFORE if scenario in UNCHANGED else AFTER))
    assert told[scenario] == rows_in(table) == expected
    fastpq.spark.clean(table)
    assert rows_in(table) == expected
    if (store := store_of(table)) is None:
        assert not (Path(table) / journal.TEMPORARY).exists()
        assert {path.name for path in Path(table).iterdir() if not path.name.endswith((".parquet", ".crc"))} <= {"_SUCCESS"}
    else:
        assert not unfinished(store)
        assert len([path for path in find(store.filesystem, store.path) if path.endswith(".parquet")]) == len(list_files([table]))


@pytest.mark.parametrize("scenario", ["driver_killed_before_commit", "driver_killed_in_commit"])
def test_a_driver_that_is_killed(on_cluster: Cluster, told: dict[str, Any], scenario: str) -> None:
    """In its commit it renamed one of several files."""
    table = on_cluster.folder / scenario
    assert scenario not in told
    assert (table / journal.TEMPORARY).exists()
    expected = list(range(AFTER if scenario == "driver_killed_in_commit" else BEFORE))
    moved = len(list(table.glob("*.parquet"))) - 2
    assert moved == (1 if scenario == "driver_killed_in_commit" else 0)
    assert rows_in(str(table)) == expected
    fastpq.spark.clean(str(table))
    assert rows_in(str(table)) == expected
    assert not (table / journal.TEMPORARY).exists()
    assert len(list(table.glob("*"))) == (6 if scenario == "driver_killed_in_commit" else 2)


@pytest.mark.parametrize("way", ["jar", "native"])
def test_a_driver_that_is_lost_before_the_jobs_commit(on_cluster: Cluster, told: dict[str, Any], way: str) -> None:
    """All tasks were committed. Their files are where no reader looks, and ``clean`` removes them."""
    table = on_cluster.folder / f"driver_lost_before_job_commit@{way}"
    assert table.name not in told
    assert len(list(table.glob("_temporary/*/task_*/*.parquet"))) == 4
    assert rows_in(str(table)) == list(range(BEFORE))
    fastpq.spark.clean(str(table))
    assert rows_in(str(table)) == list(range(BEFORE))
    assert {path.name for path in table.iterdir() if not path.name.endswith((".parquet", ".crc"))} == {"_SUCCESS"}


def test_no_key_is_left_anywhere(on_cluster: Cluster, told: dict[str, Any]) -> None:
    """Event logs, printed plans, logs of processes, web pages, heaps, shuffles, spills, checkpoints. The search finds a planted
    key, and the plaintext of shuffles, spills and checkpoints."""
    (on_cluster.folder / "printed.txt").write_text(told["printed"])
    events = b"".join(path.read_bytes() for path in (on_cluster.folder / "events").rglob("*") if path.is_file())
    for expected in (b'"Speculative":true', b"SparkListenerSQLExecutionStart", b"fastpq: compact"):
        assert expected in events
    assert "Physical Plan" in told["printed"]
    parts = "events", "work", *TRACES
    places = [path for part in parts for path in (on_cluster.folder / part).rglob("*") if path.is_file()]
    places += [*on_cluster.folder.glob("*.log"), on_cluster.folder / "printed.txt"]
    planted = os.environ[PLANTED].encode()
    search = Search({form for key in secrets_of(on_cluster) for form in forms_of(key)} | {planted, PLAINTEXT.encode()})
    found: dict[bytes, set[str]] = {planted: set(), PLAINTEXT.encode(): set()}
    for path in places:
        contained = search.found_in(path)
        leaked = contained - found.keys()
        assert not leaked, f"{path} has {len(leaked)} forms of keys"
        for text in contained:
            found[text].add(str(path.relative_to(on_cluster.folder)))
    for traces in TRACES:
        for place in ("events/", f"{traces}/web/", f"{traces}/heaps/driver", f"{traces}/heaps/executor"):
            assert any(name.startswith(place) for name in found[planted]), (place, found[planted])
        for place in (rf"{traces}/files/.*shuffle_\d", rf"{traces}/files/.*temp_local_", f"{traces}/checkpoint/"):
            assert any(re.match(place, name) for name in found[PLAINTEXT.encode()]), (place, found[PLAINTEXT.encode()])


class Search:
    """Looks for many byte strings in one pass over a file: in heap dumps, a pass for each would take minutes."""

    def __init__(self, wanted: set[bytes]) -> None:
        self._by_start: dict[int, list[bytes]] = {}
        self._is_start = np.zeros(1 << 16, bool)        # by a value of two bytes
        for text in wanted:
            start = int.from_bytes(text[:2], "little")
            self._by_start.setdefault(start, []).append(text)
            self._is_start[start] = True

    def found_in(self, path: Path) -> set[bytes]:
        """Those that a file contains."""
        content = path.read_bytes()
        found: set[bytes] = set()
        for shift in range(min(2, len(content))):
            pairs = np.frombuffer(content, "<u2", (len(content) - shift) // 2, shift)
            places = np.flatnonzero(self._is_start[pairs])
            for place, start in zip((places * 2 + shift).tolist(), pairs[places].tolist(), strict=True):
                found.update(text for text in self._by_start[start] if content.startswith(text, place))
        return found


def secrets_of(on_cluster: Cluster) -> list[bytes]:
    """Master keys, the token of the key service, and the keys of files of both applications."""
    keys = [*KEYS.values(), (on_cluster.folder / "token").read_bytes()]
    tables = "jobs", "killed_executor", "jobs@jar", "killed_executor@jar", "driver_killed_in_commit"
    for table in tables:
        keys += keys_of(next((on_cluster.folder / table).glob("*.parquet")))
    assert len(keys) == len(KEYS) + 1 + len(tables) * 4
    return keys


def forms_of(key: bytes) -> set[bytes]:
    """A key as bytes, in hex and in base64."""
    return {key, key.hex().encode(), key.hex().upper().encode(), base64.b64encode(key), base64.urlsafe_b64encode(key)}


def keys_of(path: Path) -> list[bytes]:
    """The keys that a file is encrypted with, footer and column, and those that these are wrapped by."""
    data, found = path.read_bytes(), []
    start = data.index(b'{"keyMaterialType"')      # before an encrypted footer
    materials = [json.JSONDecoder().raw_decode(data[start : start + 2000].decode("latin-1"))[0]]
    with open_file(str(path), ServiceOptions(CLIENT)) as file:
        crypto = present(file.metadata.row_group(0).column(0).chunk.crypto_metadata)
        column_key = present(crypto.ENCRYPTION_WITH_COLUMN_KEY)
        materials.append(json.loads(present(column_key.key_metadata)))
    for material in materials:
        kek = unwrap(KEYS, material["wrappedKEK"], material["masterKeyID"])
        sealed = base64.b64decode(material["wrappedDEK"])
        found += [kek, AESGCM(kek).decrypt(sealed[:12], sealed[12:], base64.b64decode(material["keyEncryptionKeyID"]))]
    return found
