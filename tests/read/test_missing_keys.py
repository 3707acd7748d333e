"""on_missing_key and readable_columns: a reader with some of the keys."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastpq
from fastpq.encryption import (
    CryptoFactory,
    DecryptionConfiguration,
    EncryptionConfiguration,
    Keyring,
    KmsClient,
    KmsConnectionConfig,
)
from fastpq.read.missing_keys import MISSING_KEYS
from tests.encryption.keys.peers import MASTER_KEYS, InMemoryKms

FOOTER_KEY, PRICE_KEY, POINT_KEY = b"key of the foot.", b"key of one col. ", b"key of another.."
ROWS = 300
DATA = pa.table({
    "id": range(ROWS),
    "price": [row / 4 for row in range(ROWS)],
    "point": [{"x": row, "y": [row]} for row in range(ROWS)],
    "text": pa.array([f"text {row % 5}" for row in range(ROWS)]).dictionary_encode(),
    "when": pa.array(range(ROWS), pa.timestamp("ms", "UTC")),
})
COLUMN_KEYS: dict[str, bytes] = {"price": PRICE_KEY, "point.y": POINT_KEY, "text": PRICE_KEY}
FEW_KEYS = fastpq.FileDecryptionProperties(FOOTER_KEY)
NULLS: dict[str, Any] = {"decryption_properties": FEW_KEYS, "on_missing_key": "null"}
LOCKED = ["price", "point", "text"]


def sealed(**options: Any) -> bytes:
    out = io.BytesIO()
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, COLUMN_KEYS, **options)
    fastpq.write_table(DATA, out, encryption_properties=keys, row_group_size=100)
    return out.getvalue()


def report_of(table: fastpq.Table) -> list[str]:
    names: list[str] = json.loads(table.metadata[MISSING_KEYS])
    return names


@pytest.fixture(scope="module", params=[{}, {"plaintext_footer": True, "unlisted": "plaintext"}], ids=["encrypted", "signed"])
def data(request: pytest.FixtureRequest) -> bytes:
    return sealed(**request.param)


def test_null_columns_and_the_report(data: bytes) -> None:
    table = fastpq.read_table(data, **NULLS)
    assert table.names == DATA.column_names
    assert report_of(table) == LOCKED
    arrow = pa.table(table)
    assert arrow.schema.types == DATA.schema.types
    assert arrow.select(["id", "when"]).equals(DATA.select(["id", "when"]))
    for name in LOCKED:
        assert arrow[name].null_count == ROWS
        arrow[name].validate(full=True)


def test_other_ways_of_reading(data: bytes) -> None:
    with fastpq.ParquetFile(data, **NULLS) as file:
        assert file.read(["price"]).num_rows == ROWS
        assert report_of(file.read(["price"])) == ["price"]
        assert file.read(["point.x"])["point"].to_pylist()[7] == {"x": 7}
        assert MISSING_KEYS not in file.read(["id"]).metadata
        assert pa.table(file.take([5, 2], ["price", "id"])).to_pydict() == {"price": [None, None], "id": [5, 2]}
        assert file.head(2).num_rows == file.tail(2).num_rows == 2
        assert file.read(["price"], row_ranges=[(10, 20), (150, 151)])["price"].to_pylist() == [None] * 11
        batches = list(file.iter_batches(70))
        assert [batch.num_rows for batch in batches] == [70, 70, 70, 70, 20]
        assert all(report_of(batch) == LOCKED for batch in batches)
        assert file.read(filters=[("id", "<", 3)])["price"].to_pylist() == [None] * 3
        assert len(pa.RecordBatchReader.from_stream(file).read_all()) == ROWS
    for strings in ("views", "offsets", "dictionary"):
        table = fastpq.read_table(data, strings=strings, **NULLS)
        assert table["text"].to_pylist() == [None] * ROWS
    assert fastpq.read_table(data, arrow_schema=False, **NULLS)["price"].to_pylist() == [None] * ROWS
    assert fastpq.read_table(data, on_error="null", **NULLS)["price"].to_pylist() == [None] * ROWS


def test_the_types_without_rows(data: bytes) -> None:
    """A consumer who asks for the types first gets those of the rows. A required column without its key is nullable."""
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, {"number": PRICE_KEY})
    out = io.BytesIO()
    required = pa.field("number", pa.int64(), nullable=False)
    fastpq.write_table(pa.table([pa.array(range(5))], schema=pa.schema([required])), out, encryption_properties=keys)
    with fastpq.ParquetFile(out.getvalue(), **NULLS) as file:
        assert pa.schema(file) == pa.RecordBatchReader.from_stream(file).schema == pa.table(file.read()).schema
        assert report_of(file.read(row_groups=[])) == ["number"]


def test_nulls_of_a_required_column_are_not_counted() -> None:
    """The schema says that there are none, and the rows that are read have nothing else."""
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, {"number": PRICE_KEY}, plaintext_footer=True)
    out = io.BytesIO()
    required = pa.field("number", pa.int64(), nullable=False)
    fastpq.write_table(pa.table([pa.array(range(5))], schema=pa.schema([required])), out, encryption_properties=keys)
    with fastpq.ParquetFile(out.getvalue(), on_missing_key="null") as file:
        assert file.read()["number"].null_count == 5
        with pytest.raises(fastpq.KeyAccessError, match=r"on whose values the answer depends.*column number"):
            file.null_count("number")


def test_dataframes(data: bytes) -> None:
    frame = fastpq.read_pandas(data, **NULLS)
    assert frame.attrs == {MISSING_KEYS: LOCKED}
    assert frame["price"].isna().all()
    assert frame["id"].tolist() == list(range(ROWS))


FILTERED: dict[str, Callable[[fastpq.ParquetFile], Any]] = {
    "read": lambda file: file.read(["id"], filters=[("price", "<", 3)]),
    "is null": lambda file: file.read(["id"], filters=[("price", "is null")]),
    "batches": lambda file: list(file.iter_batches(10, filters=[("text", "==", "text 1")])),
    "count": lambda file: file.count([("price", "<", 3)]),
    "and": lambda file: file.read(filters=[("id", "<", 3), ("price", "<", 3)]),
    "excluded rows": lambda file: file.read(filters=[("id", "<", -3), ("price", "<", 3)]),
    "explain": lambda file: file.explain([("price", "<", 3)]),
    "extremes": lambda file: file.min_max("price"),
    "null count": lambda file: file.null_count("price"),
    "arrays": lambda file: file.read(["price"], out={"price": np.zeros(ROWS)}),
}


@pytest.mark.parametrize("way", FILTERED)
def test_what_would_lie_is_refused(data: bytes, way: str) -> None:
    with fastpq.ParquetFile(data, **NULLS) as file, pytest.raises(fastpq.KeyAccessError, match=r"column (price|text)"):
        FILTERED[way](file)


def test_readable_columns(data: bytes) -> None:
    all_keys = fastpq.FileDecryptionProperties(FOOTER_KEY, COLUMN_KEYS)
    with fastpq.ParquetFile(data, decryption_properties=all_keys) as file:
        assert file.readable_columns() == DATA.column_names
    with fastpq.ParquetFile(data, decryption_properties=FEW_KEYS) as file:
        assert file.readable_columns() == ["id", "point.x", "when"]
        assert file.read(file.readable_columns()).num_rows == ROWS
    plain = io.BytesIO()
    fastpq.write_table(DATA, plain)
    with fastpq.ParquetFile(plain.getvalue()) as file:
        assert file.readable_columns() == DATA.column_names


def test_a_signed_file_without_any_key() -> None:
    data = sealed(plaintext_footer=True, unlisted="plaintext")
    with fastpq.ParquetFile(data, on_missing_key="null") as file:
        assert file.readable_columns() == ["id", "point.x", "when"]
        assert report_of(file.read()) == LOCKED
    with pytest.raises(fastpq.KeyAccessError):
        fastpq.read_table(sealed(), on_missing_key="null")      # nothing says which columns there are


def test_the_default_is_an_error(data: bytes) -> None:
    with pytest.raises(fastpq.KeyAccessError, match="column price") as caught:
        fastpq.read_table(data, decryption_properties=FEW_KEYS)
    assert caught.value.is_denied
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.is_denied, again.is_unavailable, str(again)) == (True, False, str(caught.value))
    wrong: Any = "skip"
    with pytest.raises(ValueError, match="on_missing_key"):
        fastpq.read_table(data, on_missing_key=wrong)


def test_alterations_are_no_missing_keys(data: bytes) -> None:
    wrong = fastpq.FileDecryptionProperties(FOOTER_KEY, {"price": POINT_KEY})
    with pytest.raises(fastpq.TagVerificationError):
        fastpq.read_table(data, ["price"], decryption_properties=wrong, on_missing_key="null")


def test_datasets(tmp_path: Path) -> None:
    """A column may be locked in some files only, and have another type there."""
    for year, keys in (("2024", {"price": PRICE_KEY}), ("2025", {"id": PRICE_KEY})):
        properties = fastpq.FileEncryptionProperties(FOOTER_KEY, keys)
        table = DATA.select(["id", "price"])
        if year == "2025":
            table = table.set_column(1, "price", table["price"].cast(pa.float32()))
        fastpq.write_dataset(
            table.append_column("year", pa.array([year] * ROWS)), tmp_path, partition_by=["year"],
            encryption_properties=properties, existing_data_behavior="append" if year == "2025" else "error")
    dataset = fastpq.ParquetDataset(tmp_path, decryption_properties=FEW_KEYS, on_missing_key="null")
    table = dataset.read()
    assert sorted(report_of(table)) == ["id", "price"]
    assert table["price"].to_pylist() == [None] * ROWS + DATA["price"].to_pylist()
    assert table["id"].to_pylist() == DATA["id"].to_pylist() + [None] * ROWS
    assert dataset.readable_columns() == ["year"]
    assert sum(batch.num_rows for batch in dataset.iter_batches(250)) == 2 * ROWS
    assert [report_of(batch) for batch in dataset.iter_batches(ROWS)] == [["price"], ["id"]]
    assert pa.table(dataset.take([1, ROWS + 1], ["id", "price"])).to_pydict() == {"id": [1, None], "price": [None, 0.25]}
    assert report_of(fastpq.read_table(tmp_path, decryption_properties=FEW_KEYS, on_missing_key="null")) == ["price", "id"]
    assert dataset.count([("year", "==", 2024), ("id", "<", 5)]) == 5
    for filters in ([("price", "<", 3)], [("id", "<", 3)]):
        with pytest.raises(fastpq.KeyAccessError, match="on whose values the answer depends"):
            dataset.read(["year"], filters=filters)
    assert fastpq.read_pandas(tmp_path, **NULLS).attrs == {MISSING_KEYS: ["price", "id"]}


def test_filters_on_the_open_part_of_a_struct(tmp_path: Path) -> None:
    """Only the part that is locked may not be filtered by, as in a single file, unless the whole column has to be converted."""
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, {"point.y": POINT_KEY})
    data = pa.table({"id": range(ROWS), "point": [{"x": row, "y": row} for row in range(ROWS)]})
    fastpq.write_dataset(data, tmp_path, encryption_properties=keys)
    dataset = fastpq.ParquetDataset(tmp_path, **NULLS)
    for source in (dataset, fastpq.ParquetFile(dataset.files[0], **NULLS)):
        assert source.read(["id"], filters=[("point.x", "<", 3)])["id"].to_pylist() == [0, 1, 2]
        assert source.count([("point.x", "<", 3)]) == 3
        with pytest.raises(fastpq.KeyAccessError):
            source.count([("point.y", "<", 3)])
    wide = {"id": "int64", "point": pa.struct([("x", pa.float64()), ("y", pa.int64())])}
    with pytest.raises(fastpq.KeyAccessError):
        fastpq.ParquetDataset(tmp_path, schema=wide, **NULLS).read(["id"], filters=[("point.x", "<", 3.0)])


class Failing(InMemoryKms):
    """A key service that fails for one master key."""

    def __init__(self, error: BaseException | Any) -> None:
        super().__init__()
        self.error = error

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        if master_key_identifier == "kc1":
            if isinstance(self.error, BaseException):
                raise self.error
            return self.error       # type: ignore[no-any-return]
        return super().unwrap_key(wrapped_key, master_key_identifier)


def managed(client: KmsClient, **options: Any) -> fastpq.FileDecryptionProperties:
    factory = CryptoFactory(lambda connection: client)
    return factory.file_decryption_properties(KmsConnectionConfig(), DecryptionConfiguration(**options))


@pytest.fixture(scope="module", params=[True, False], ids=["double", "single"])
def wrapped(request: pytest.FixtureRequest) -> bytes:
    configuration = EncryptionConfiguration("kf", column_keys={"kc1": ["price"], "kc2": ["text"]}, double_wrapping=request.param)
    out = io.BytesIO()
    keys = CryptoFactory(lambda connection: InMemoryKms()).file_encryption_properties(KmsConnectionConfig(), configuration)
    fastpq.write_table(DATA, out, encryption_properties=keys, row_group_size=100)
    return out.getvalue()


@pytest.mark.parametrize("error", [PermissionError("no"), KeyError("kc1"), fastpq.KeyAccessError.denied("no")])
def test_a_key_service_denies_a_key(wrapped: bytes, error: Exception) -> None:
    client = Failing(error)
    table = fastpq.read_table(wrapped, decryption_properties=managed(client), on_missing_key="null")
    assert report_of(table) == ["price"]
    assert table["text"].to_pylist() == DATA["text"].to_pylist()
    with fastpq.ParquetFile(wrapped, decryption_properties=managed(client)) as file:
        assert file.readable_columns() == ["id", "point", "text", "when"]


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError("no answer"), ConnectionResetError("reset"), OSError("network"), RuntimeError("a bug"), TypeError("a bug"),
        ValueError("nonsense"), fastpq.KeyAccessError("who knows"), MemoryError(), KeyboardInterrupt(), None, "text", b"short", 7,
    ],
    ids=repr,
)
def test_failures_are_no_denials(wrapped: bytes, error: Any) -> None:
    """A service that is down, a client with a mistake, and nonsense make no column null."""
    with pytest.raises((fastpq.CryptoError, KeyboardInterrupt)) as caught:
        fastpq.read_table(wrapped, decryption_properties=managed(Failing(error)), on_missing_key="null")
    if isinstance(caught.value, fastpq.KeyAccessError):
        assert not caught.value.is_denied
        assert caught.value.is_unavailable is isinstance(error, OSError)


def test_an_untrusted_master_key_is_no_missing_key(wrapped: bytes) -> None:
    keys = managed(InMemoryKms(), trusted_master_keys=["kf", "kc2"])
    with pytest.raises(fastpq.KeyAccessError, match="trusted_master_keys"):
        fastpq.read_table(wrapped, decryption_properties=keys, on_missing_key="null")


def test_a_keyring_without_one_key(tmp_path: Path) -> None:
    ring = Keyring.create(tmp_path / "ring", "passphrase", scrypt_log_n=10)
    partly = Keyring.create(tmp_path / "partly", "passphrase", scrypt_log_n=10)
    ring.create_key("kf")
    partly.create_key("other")
    (out, configuration) = io.BytesIO(), EncryptionConfiguration("kf", column_keys={"kf": ["price"]}, double_wrapping=False)
    keys = CryptoFactory(lambda connection: ring).file_encryption_properties(KmsConnectionConfig(), configuration)
    fastpq.write_table(DATA, out, encryption_properties=keys)
    footer_key = ring.unwrap_key(_wrapped_footer(out.getvalue()), "kf")
    reading = CryptoFactory(lambda connection: partly).file_decryption_properties(KmsConnectionConfig(), footer_key=footer_key)
    assert report_of(fastpq.read_table(out.getvalue(), decryption_properties=reading, on_missing_key="null")) == ["price"]


def _wrapped_footer(data: bytes) -> str:
    (file,) = fastpq.inspect_encryption(data).files
    assert file.footer_key is not None
    assert file.footer_key.key_metadata is not None
    text: str = json.loads(file.footer_key.key_metadata)["wrappedDEK"]
    return text


def test_what_is_written_again_keeps_the_report(data: bytes) -> None:
    out = io.BytesIO()
    fastpq.write_table(fastpq.read_table(data, **NULLS), out)
    assert report_of(fastpq.read_table(out.getvalue())) == LOCKED
    forged = fastpq.read_table(data, ["id"], decryption_properties=FEW_KEYS).with_metadata({MISSING_KEYS: "{broken"})
    out = io.BytesIO()
    fastpq.write_table(forged, out)
    assert fastpq.read_table(out.getvalue(), on_missing_key="null").num_rows == ROWS


def test_keys_are_asked_once(wrapped: bytes) -> None:
    client = Failing(PermissionError("no"))
    with fastpq.ParquetFile(wrapped, decryption_properties=managed(client), on_missing_key="null") as file:
        file.read()
        asked = len(client.unwrapped)
        list(file.iter_batches(10))
        assert len(client.unwrapped) == asked
    assert sorted(client.unwrapped) == ["kc2", "kf"]
    assert set(client.unwrapped) <= MASTER_KEYS.keys()
