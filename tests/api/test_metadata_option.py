"""The option ``metadata``: a file is read with a footer that the caller has, if the footer is the file's."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import fastpq

DATA = {"a": np.arange(10), "b": [f"text {i}" for i in range(10)]}
KEY = bytes(range(16))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.parquet"
    fastpq.write_table(DATA, path, row_group_size=4)
    return path


def test_reads_are_the_same_as_without_it(path: Path) -> None:
    metadata = fastpq.read_metadata(path)
    with fastpq.ParquetFile(path, metadata=metadata) as file:
        assert file.metadata is metadata
        assert file.read().to_pylist() == pq.read_table(path).to_pylist()
        assert file.read(["b"], row_groups=[1], filters=[("a", ">", 5)]).to_pylist() == [{"b": "text 6"}, {"b": "text 7"}]
    assert fastpq.read_table(path, metadata=metadata, on_error="null").equals(fastpq.read_table(path))
    assert fastpq.read_schema(path, metadata=metadata) is metadata.schema


@pytest.mark.parametrize("check", [True, False])
def test_the_footer_is_not_read_again(path: Path, check: bool) -> None:
    columns = {f"c{i}": np.arange(2) for i in range(2000)}
    fastpq.write_table(columns, path)
    metadata = fastpq.read_metadata(path)
    with fastpq.ParquetFile(path, metadata=metadata, check_metadata=check) as file:
        assert file.io.bytes_read <= (5000 if check else 0)
        assert file.read(["c7"]).to_pylist() == [{"c7": 0}, {"c7": 1}]


def test_pickled_metadata(path: Path) -> None:
    metadata = pickle.loads(pickle.dumps(fastpq.read_metadata(path)))
    with fastpq.ParquetFile(path, metadata=metadata) as file:
        assert pickle.loads(pickle.dumps(file)).read().equals(file.read())


@pytest.mark.parametrize("other", [{"a": np.arange(11), "b": ["x"] * 11}, {"a": DATA["a"], "c": DATA["b"]}])
def test_a_file_that_changed_is_refused(other: dict[str, Any], path: Path) -> None:
    metadata = fastpq.read_metadata(path)
    fastpq.write_table(other, path, row_group_size=4)
    with pytest.raises(fastpq.SchemaError, match=r"belongs to another file, or the file changed.*\[path "):
        fastpq.ParquetFile(path, metadata=metadata)


def test_shorter_files_are_refused(path: Path) -> None:
    metadata = fastpq.read_metadata(path)
    for data in (b"", b"PAR1", path.read_bytes()[:-1], bytes(len(path.read_bytes()))):
        with pytest.raises(fastpq.SchemaError, match="another file"):
            fastpq.ParquetFile(data, metadata=metadata)


def test_metadata_of_other_kinds_are_refused(path: Path) -> None:
    wrong: Any = pq.read_metadata(path)
    with pytest.raises(TypeError, match=r"metadata must be a fastpq\.FileMetaData"):
        fastpq.ParquetFile(path, metadata=wrong)


def test_unfinished_files_are_refused() -> None:
    target = io.BytesIO()
    writer = fastpq.ParquetWriter(target, checkpoint_every=1, row_group_size=4)
    writer.write_table(DATA)
    stored = target.getvalue()
    with fastpq.ParquetFile(stored, on_error="null") as file:
        metadata = file.metadata
    with pytest.raises(fastpq.FormatError, match="not finished"):
        fastpq.ParquetFile(stored, metadata=metadata, check_metadata=False)
    writer.close()


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_files_keep_their_keys(plaintext_footer: bool, path: Path) -> None:
    encryption = fastpq.FileEncryptionProperties(footer_key=KEY, plaintext_footer=plaintext_footer)
    fastpq.write_table(DATA, path, encryption_properties=encryption)
    keys = fastpq.FileDecryptionProperties(footer_key=KEY)
    metadata = fastpq.read_metadata(path, decryption_properties=keys)
    assert fastpq.read_table(path, metadata=metadata).equals(fastpq.read_table(path, decryption_properties=keys))
    with pytest.raises(ValueError, match="either metadata or decryption_properties"):
        fastpq.ParquetFile(path, metadata=metadata, decryption_properties=keys)
    with pytest.raises(fastpq.UnsupportedError, match="cannot be pickled"):
        pickle.dumps(fastpq.ParquetFile(path, metadata=metadata))
    fastpq.write_table(DATA, path, encryption_properties=encryption)        # equal size, another nonce
    with pytest.raises(fastpq.SchemaError, match="another file"):
        fastpq.ParquetFile(path, metadata=metadata)


def test_datasets(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.parquet" for number in range(3)]
    for number, path in enumerate(paths):
        fastpq.write_table({"a": np.arange(3) + number}, path)
    expected = fastpq.read_dataset(tmp_path)
    metadata = {name: fastpq.read_metadata(name) for name in fastpq.ParquetDataset(tmp_path).files[:2]}
    for footers in (metadata, metadata.get):
        assert fastpq.read_dataset(tmp_path, metadata=footers).equals(expected)
        dataset = fastpq.ParquetDataset(tmp_path, metadata=footers, schema="first")
        assert pickle.loads(pickle.dumps(dataset)).read().equals(expected)
    fastpq.write_table({"a": np.arange(4)}, paths[1])
    with pytest.raises(fastpq.SchemaError, match=r"another file.*1\.parquet"):
        fastpq.read_dataset(tmp_path, metadata=metadata)
    wrong: Any = metadata[dataset.files[0]]
    with pytest.raises(TypeError, match="must map paths to FileMetaData"):
        fastpq.read_dataset(tmp_path, metadata=wrong)
