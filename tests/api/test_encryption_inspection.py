"""inspect_encryption: what files tell about their keys, without any key and with keys for the footer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.encryption import (
    CryptoFactory,
    DatasetDecryptionProperties,
    DatasetEncryptionProperties,
    EncryptionConfiguration,
    KmsConnectionConfig,
)
from tests.encryption.keys.peers import InMemoryKms
from tests.requirements import DATA, needs_data

FOOTER_KEY, COLUMN_KEY = b"0123456789012345", b"1234567890123450"
FIXTURES = DATA / "encryption" / "fixtures"


@contextmanager
def served(data: bytes) -> Iterator[tuple[str, list[str | None]]]:
    """Serve bytes over HTTP. Yield the URL, and the list of ranges that are asked for."""
    ranges: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            ranges.append(asked)
            start = len(data) - min(len(data), int(asked.rpartition("-")[2])) if asked else 0
            self.send_response(206 if asked else 200)
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            self.wfile.write(data[start:])

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/x.parquet", ranges
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def manifest() -> list[dict[str, Any]]:
    path = FIXTURES / "manifest.json"
    files: list[dict[str, Any]] = json.loads(path.read_text())["files"] if path.exists() else []
    return files


@needs_data
@pytest.mark.parametrize("entry", manifest(), ids=lambda entry: entry["name"])
def test_fixtures_of_other_writers(entry: dict[str, Any]) -> None:
    """The fixture's manifest is the truth: algorithm, footer, prefix, and master keys."""
    if entry["algorithm"] is None or "DuckDB" in entry["producer"]:
        pytest.skip("not in the format's own encryption")
    (file,) = fastpq.inspect_encryption(FIXTURES / entry["file"]).files
    assert file.algorithm == entry["algorithm"]
    assert file.footer == ("encrypted" if entry["magic"] == "PARE" else "signed")
    assert file.size == (FIXTURES / entry["file"]).stat().st_size
    assert file.needs_aad_prefix == (entry["aad_prefix"] is not None and not entry["aad_prefix_stored"])
    if entry["kms"]:
        assert file.footer_key is not None
        assert file.footer_key.master_key_id in ("kf", "kf256")
        assert file.footer_key.wrapping == ("single" if "single" in entry["mode"] else "double")
    if file.columns and not file.hides_columns:
        own_keys = {each.column for each in file.columns if each.key == "column"}
        assert own_keys == {name for name in entry["keys"]["columns"] if name in {each.column for each in file.columns}}


@needs_data
def test_external_material_is_read_beside_the_file() -> None:
    (file,) = fastpq.inspect_encryption(FIXTURES / "pa_external.parquet").files
    assert file.material_file is not None
    assert file.material_file.endswith("_KEY_MATERIAL_FOR_pa_external.parquet.json")
    assert file.footer_key is not None
    assert file.footer_key.is_external
    assert {*file.master_key_ids} == {"kf", "kc1", "kc2"}


@needs_data
def test_a_folder_lists_its_files_and_what_is_no_parquet_file() -> None:
    inspection = fastpq.inspect_encryption(FIXTURES)
    assert len(inspection.files) == len(list(FIXTURES.glob("*.parquet")))
    assert {Path(path).name for path, _ in inspection.problems} == {"expected_base.json", "manifest.json"}
    table = inspection.table()
    assert table.num_rows == sum(1 + len(file.columns or ()) for file in inspection.files)


def test_a_plaintext_file(tmp_path: Path) -> None:
    fastpq.write_table({"a": np.arange(3)}, tmp_path / "x.parquet")
    (file,) = fastpq.inspect_encryption(tmp_path / "x.parquet").files
    assert (file.footer, file.algorithm, file.footer_key) == ("plaintext", None, None)
    assert [(each.column, each.key) for each in file.columns or ()] == [("a", "none")]


def test_columns_of_a_signed_footer_and_the_stored_prefix(tmp_path: Path) -> None:
    keys = fastpq.FileEncryptionProperties(
        FOOTER_KEY,
        {"a": COLUMN_KEY},
        plaintext_footer=True,
        unlisted="plaintext",
        aad_prefix=b"table",
        footer_key_metadata=b"who knows",
    )
    fastpq.write_table({"a": np.arange(3), "b": np.arange(3)}, tmp_path / "x.parquet", encryption_properties=keys)
    (file,) = fastpq.inspect_encryption(tmp_path / "x.parquet").files
    assert (file.footer, file.aad_prefix, file.needs_aad_prefix) == ("signed", b"table", False)
    assert [(each.column, each.key) for each in file.columns or ()] == [("a", "column"), ("b", "none")]
    assert file.footer_key is not None
    assert file.footer_key.problem is None      # an application may name its keys as it likes
    assert file.footer_key.key_metadata == b"who knows"


def test_broken_material_is_a_problem(tmp_path: Path) -> None:
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, footer_key_metadata=b'{"keyMaterialType":')
    fastpq.write_table({"a": np.arange(3)}, tmp_path / "x.parquet", encryption_properties=keys)
    (file,) = fastpq.inspect_encryption(tmp_path / "x.parquet").files
    assert file.footer_key is not None
    assert file.footer_key.problem == "key metadata is not JSON in UTF-8"


def test_a_missing_material_file_is_a_problem_and_not_an_error(tmp_path: Path) -> None:
    metadata = b'{"keyMaterialType":"PKMT1","internalStorage":false,"keyReference":"footerKey"}'
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, footer_key_metadata=metadata)
    fastpq.write_table({"a": np.arange(3)}, tmp_path / "x.parquet", encryption_properties=keys)
    (file,) = fastpq.inspect_encryption(tmp_path / "x.parquet").files
    assert file.footer_key is not None
    assert file.footer_key.problem == "the file's keys are in a key material file, which is missing"
    assert file.columns is None
    (same,) = fastpq.inspect_encryption((tmp_path / "x.parquet").read_bytes()).files
    assert same.footer == "encrypted"


def test_a_file_over_http_is_not_fetched_whole(tmp_path: Path) -> None:
    """Two requests at most, each with a range."""
    pytest.importorskip("fsspec")
    fastpq.write_table({"a": np.random.default_rng(0).random(100_000)}, tmp_path / "x.parquet")
    data = (tmp_path / "x.parquet").read_bytes()
    with served(data) as (url, ranges):
        (file,) = fastpq.inspect_encryption(url).files
    assert (file.footer, file.size) == ("plaintext", len(data))
    assert ranges == ["bytes=-65536"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n" * 10)
    with pytest.raises(fastpq.FormatError, match="not a Parquet file"):
        fastpq.inspect_encryption(tmp_path / "x.csv")
    with pytest.raises(FileNotFoundError):
        fastpq.inspect_encryption(tmp_path / "nothing")


def managed_file(path: Path, *, plaintext_footer: bool = False, external: bool = False) -> fastpq.FileDecryptionProperties:
    """Write a file with a column named footer, under the keys of a key service. Return keys for reading."""
    factory, connection = CryptoFactory(lambda connection: InMemoryKms()), KmsConnectionConfig()
    configuration = EncryptionConfiguration(
        "kf", column_keys={"kc1": ["pay"]}, plaintext_footer=plaintext_footer, unlisted="footer_key",
        internal_key_material=not external,
    )
    keys = factory.file_encryption_properties(connection, configuration, path)
    fastpq.write_table({"footer": [1, 2], "pay": [3, 4]}, path, encryption_properties=keys)
    return factory.file_decryption_properties(connection, None, path)


def parts_of(inspection: fastpq.EncryptionInspection) -> list[dict[str, Any]]:
    names = ("part", "column", "key", "master_key_id", "wrapping")
    return [{name: row[name] for name in names} for row in inspection.table().to_pylist()]


PARTS = [
    {"part": "footer", "column": None, "key": "footer", "master_key_id": "kf", "wrapping": "double"},
    {"part": "column", "column": "footer", "key": "footer", "master_key_id": "kf", "wrapping": "double"},
    {"part": "column", "column": "pay", "key": "column", "master_key_id": "kc1", "wrapping": "double"},
]


@pytest.mark.parametrize("external", [False, True])
def test_each_row_of_the_table_has_the_master_key_that_opens_it(tmp_path: Path, external: bool) -> None:
    path = tmp_path / "x.parquet"
    managed_file(path, plaintext_footer=True, external=external)
    assert parts_of(fastpq.inspect_encryption(path)) == PARTS


@pytest.mark.parametrize("external", [False, True])
def test_keys_list_the_columns_in_an_encrypted_footer(tmp_path: Path, external: bool) -> None:
    path = tmp_path / "x.parquet"
    keys = managed_file(path, external=external)
    sealed = fastpq.inspect_encryption(path)
    assert (sealed.files[0].hides_columns, len(parts_of(sealed))) == (True, 2 if external else 1)
    inspection = fastpq.inspect_encryption(path, decryption_properties=keys)
    assert parts_of(inspection) == PARTS
    (file,) = inspection.files
    assert (file.hides_columns, file.is_footer_open, file.master_key_ids) == (False, True, ("kf", "kc1"))
    if not external:
        assert parts_of(fastpq.inspect_encryption(path.read_bytes(), decryption_properties=keys)) == PARTS


def test_what_a_file_does_not_say_is_null(tmp_path: Path) -> None:
    fastpq.write_table({"a": np.arange(3)}, tmp_path / "x.parquet")
    table = fastpq.inspect_encryption(tmp_path / "x.parquet").table()
    assert [(row["part"], row["column"], row["key"]) for row in table.to_pylist()] == [
        ("footer", None, "none"), ("column", "a", "none"),
    ]
    for name in ("algorithm", "master_key_id", "wrapping", "kms_instance_url"):
        assert table[name].to_pylist() == [None, None]
    arrow = pytest.importorskip("pyarrow")
    assert {str(field.type) for field in arrow.table(table).schema} == {"string", "bool"}
    assert fastpq.inspect_encryption([]).table().num_rows == 0


def test_a_folder_and_a_list_with_keys_for_their_files(tmp_path: Path) -> None:
    """Plaintext files are inspected too. A file that the keys do not open is a problem of its folder."""
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY)
    writing = DatasetEncryptionProperties(keys, table_id="t")
    fastpq.write_dataset({"a": [1, 2]}, tmp_path / "bound", encryption_properties=writing)
    fastpq.write_table({"b": [1]}, tmp_path / "plain.parquet")
    reading = DatasetDecryptionProperties(fastpq.FileDecryptionProperties(FOOTER_KEY), table_id="t")
    inspection = fastpq.inspect_encryption([tmp_path / "bound", tmp_path / "plain.parquet"], decryption_properties=reading)
    assert [(file.footer, [each.column for each in file.columns or ()]) for file in inspection.files] == [
        ("encrypted", ["a"]), ("plaintext", ["b"]),
    ]
    with_glob = fastpq.inspect_encryption(str(tmp_path / "*" / "*.parquet"), decryption_properties=reading)
    assert with_glob.files == inspection.files[:1]
    with pytest.raises(FileNotFoundError):
        fastpq.inspect_encryption(str(tmp_path / "*.nothing"))
    by_path = fastpq.inspect_encryption(tmp_path, decryption_properties=lambda path: reading(path))
    assert by_path.problems == ()
    other_keys = fastpq.FileDecryptionProperties(b"x" * 16)
    ((path, problem),) = fastpq.inspect_encryption(tmp_path, decryption_properties=other_keys).problems
    assert "bound" in path
    assert problem
    with pytest.raises(fastpq.CryptoError):
        fastpq.inspect_encryption(path, decryption_properties=other_keys)
    data = Path(path).read_bytes()
    with pytest.raises(fastpq.SchemaError, match="function of the path"):
        fastpq.inspect_encryption(data, decryption_properties=reading)


def test_a_glob_on_a_remote_filesystem() -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    fastpq.write_table({"a": [1]}, "memory://inspected/_hidden.parquet")
    memory.pipe_file("/inspected/a[1].parquet", memory.cat_file("/inspected/_hidden.parquet"))
    try:
        (file,) = fastpq.inspect_encryption("memory://inspected/*.parquet").files
        assert file.path.endswith("a[1].parquet")
        assert fastpq.inspect_encryption("memory://inspected/a[1].parquet").files == (file,)
    finally:
        memory.rm("/inspected", recursive=True)


def test_columns_in_the_dialect_of_duckdb_are_under_the_footer_key(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, for_reader="duckdb")
    fastpq.write_table({"a": [1], "b": [2]}, path, encryption_properties=keys)
    reading = fastpq.FileDecryptionProperties(FOOTER_KEY, allow_duckdb_dialect=True)
    (file,) = fastpq.inspect_encryption(path, decryption_properties=reading).files
    assert [(each.column, each.key) for each in file.columns or ()] == [("a", "footer"), ("b", "footer")]


@pytest.mark.parametrize("signed", [False, True])
def test_a_file_without_row_groups_does_not_say_that_its_columns_are_plaintext(tmp_path: Path, signed: bool) -> None:
    path = tmp_path / "x.parquet"
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, plaintext_footer=signed)
    fastpq.write_table({"a": np.arange(0)}, path, encryption_properties=keys)
    reading = fastpq.FileDecryptionProperties(FOOTER_KEY)
    (file,) = fastpq.inspect_encryption(path, decryption_properties=reading).files
    assert (file.columns, file.hides_columns) == ((), False)
