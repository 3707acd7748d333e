"""Keys of an engine's processes: what is pickled, and what is refused."""

from __future__ import annotations

import os
import pickle
import shutil
import traceback
from pathlib import Path
from typing import Any

import pytest

import fastpq
from fastpq.adapters.dataset_tasks import dataset_task
from fastpq.adapters.task_keys import TaskKeys
from fastpq.encryption import DatasetEncryptionProperties
from tests.adapters import counted as module
from tests.adapters.counted import KEY, KEY_FUNCTION, CountedDataset, has_no_key, keys_of
from tests.own_code import is_own_code


class Keys:
    """Makes keys in several ways."""

    @staticmethod
    def of_class(path: str) -> Any:
        return keys_of(path)

    def of_object(self, path: str) -> Any:
        return keys_of(path)


def test_a_function_is_pickled_by_its_name() -> None:
    for keys in (TaskKeys(KEY_FUNCTION), TaskKeys(keys_of)):
        content = pickle.dumps(keys)
        assert has_no_key(content)
        copy = pickle.loads(content)
        assert copy.decryption is keys_of
        assert repr(copy) == f"<TaskKeys: {KEY_FUNCTION}>"
    copy = pickle.loads(pickle.dumps(TaskKeys(Keys.of_class)))
    assert copy.decryption is Keys.of_class
    assert pickle.loads(pickle.dumps(TaskKeys())).decryption is None


def test_the_name_of_keys_that_are_bound_to_a_table(tmp_path: Path) -> None:
    """Two files that were exchanged are refused, and so are two files with one name."""
    writing = DatasetEncryptionProperties(fastpq.FileEncryptionProperties(KEY), table_id="counted")
    files = fastpq.write_dataset({"a": [1, 2]}, tmp_path, max_rows_per_file=1, encryption_properties=writing)
    keys = pickle.loads(pickle.dumps(TaskKeys("tests.adapters.counted:bound_keys"))).decryption
    assert sorted(fastpq.read_dataset(tmp_path, decryption_properties=keys)["a"]) == [1, 2]
    os.replace(files[0], files[1])
    with pytest.raises(fastpq.CryptoError):
        fastpq.read_dataset(tmp_path, decryption_properties=keys)
    (tmp_path / "part").mkdir()
    shutil.copy(files[1], tmp_path / "part")
    with pytest.raises(fastpq.SchemaError, match="has the same name"):
        fastpq.read_dataset(tmp_path, decryption_properties=keys)


def test_other_keys_are_not_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = keys_of("")
    of_main = eval("lambda path: None", {"__name__": "__main__"})
    functions: list[Any] = [properties, lambda path: properties, Keys().of_object, of_main]
    for keys in functions:
        with pytest.raises(fastpq.UnsupportedError, match="keys never enter a task"):
            pickle.dumps(TaskKeys(keys))
        assert has_no_key(repr(TaskKeys(keys)))
    monkeypatch.setattr(module, "keys_of", lambda path: properties)     # another function has the name now
    with pytest.raises(fastpq.UnsupportedError, match="keys never enter a task"):
        pickle.dumps(TaskKeys(keys_of))


@pytest.mark.parametrize("text", [KEY.decode(), KEY.hex(), "module", "module:", ":function", "a.b:c d", "a/b:c", "os:", ""])
def test_a_text_that_is_no_name_is_not_shown(text: str) -> None:
    with pytest.raises(fastpq.SchemaError, match="must be the name of a function") as raised:
        TaskKeys(text)
    assert not text or len(text) < 10 or text not in str(raised.value)
    frames = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
    assert has_no_key("".join(str(frame.locals) for frame in frames.stack if is_own_code(frame.filename)))


@pytest.mark.parametrize("keys", [b"0123456789abcdef", 5, {"footer": KEY}])
def test_other_types_are_refused(keys: Any) -> None:
    with pytest.raises(TypeError, match="decryption_properties must be FileDecryptionProperties") as raised:
        TaskKeys(keys)
    assert has_no_key(str(raised.value))
    assert "0123" not in str(raised.value)


@pytest.mark.parametrize("name", ["no_such_module:keys", "tests.adapters.counted:none", "tests.adapters.counted:KEY"])
def test_a_process_without_the_function(name: str) -> None:
    keys = pickle.loads(pickle.dumps(TaskKeys(name)))
    with pytest.raises(fastpq.KeyAccessError, match=name) as raised:
        keys.decryption     # noqa: B018 - imports the function
    assert has_no_key(str(raised.value))


def test_a_task_without_its_keys(encrypted: CountedDataset) -> None:
    """A pickle of a task opens nothing by itself, and the columns of a task have no values."""
    task = dataset_task(encrypted.folder, KEY_FUNCTION, {})
    content = pickle.dumps(task.split())
    assert has_no_key(content)
    assert b"row 7" not in content
    copy = pickle.loads(content.replace(b"counted:keys_of", b"counted:keys_if"))[0]
    with pytest.raises(fastpq.KeyAccessError):
        copy.dataset()


def test_a_plaintext_file_in_the_place_of_an_encrypted_one(encrypted: CountedDataset) -> None:
    """It is refused by the process that reads it, even if it was put there after the plan was made."""
    tasks = dataset_task(encrypted.folder, KEY_FUNCTION, {}).split()
    copies = pickle.loads(pickle.dumps(tasks))
    rows = fastpq.read_table(encrypted.folder / "1.parquet", decryption_properties=keys_of(""))
    fastpq.write_table(rows, encrypted.folder / "1.parquet")
    with pytest.raises(fastpq.CryptoError, match=r"not encrypted|plaintext"):
        copies[1].dataset().read()
    assert copies[2].dataset().read().num_rows == rows.num_rows
