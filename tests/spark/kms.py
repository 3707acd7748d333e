"""The key service of the tests, as executors find it: master keys from their environment, never from an option."""

from __future__ import annotations

import os
from typing import Any

from tests.encryption.keys.peers import InMemoryKms


def client(config: Any) -> InMemoryKms:
    entries = (entry.split(":") for entry in os.environ["FASTPQ_TEST_MASTER_KEYS"].split(","))
    keys = {name: bytes.fromhex(key) for name, key in entries}
    denied = config.custom_kms_conf.get("denied", "").split(",")
    return InMemoryKms({name: key for name, key in keys.items() if name not in denied})
