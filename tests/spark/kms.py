"""The key service of the tests, as executors find it: master keys from their environment or a file, never from an option."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.encryption.keys.peers import InMemoryKms

FILE_VARIABLE = "FASTPQ_TEST_MASTER_KEYS_FILE"


def client(config: Any) -> InMemoryKms:
    file = os.environ.get(FILE_VARIABLE)        # not in the environment, which a heap dump holds
    text = os.environ["FASTPQ_TEST_MASTER_KEYS"] if file is None else Path(file).read_text()
    entries = (entry.split(":") for entry in text.split(","))
    keys = {name: bytes.fromhex(key) for name, key in entries}
    denied = config.custom_kms_conf.get("denied", "").split(",")
    return InMemoryKms({name: key for name, key in keys.items() if name not in denied})


class DownClient:
    """A client whose service never answers. Each call leaves a line in the file that the option ``calls`` names."""

    def __init__(self, config: Any) -> None:
        self._calls = Path(config.custom_kms_conf["calls"])

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        with self._calls.open("a") as file:
            file.write("call\n")
        raise ConnectionError

    unwrap_key: Any = wrap_key


def audit(record: Any) -> None:
    """Append a record to a file beside the folder of the file that it is about."""
    if record.operation != "wrap":
        with (Path(record.file).parent.parent / "audit.jsonl").open("a") as file:
            file.write(record.to_json() + "\n")


KEPT_RECORDS: list[Any] = []


def keep(record: Any) -> None:
    KEPT_RECORDS.append(record)


def failing_audit(record: Any) -> None:
    raise OSError("disk full")


def hash_key() -> bytes:
    """The secret for the chain of records."""
    return b"the secret of an audit log in tests"


def failing_hash_key() -> bytes:
    raise RuntimeError("a secret stands here")


def missing_hash_key() -> str | None:
    return os.environ.get("FASTPQ_TEST_NO_SUCH_SECRET")


def hash_key_of_text() -> str:
    return "secret text of more than 16 bytes"
