"""A SoftHSM2 token with two keys."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from fastpq.encryption import KmsConnectionConfig
from tests.requirements import peer

pkcs11 = peer("pkcs11", "python-pkcs11")
PIN = "9876"


@contextmanager
def softhsm_token(folder: Path, library: str) -> Iterator[KmsConnectionConfig]:
    """Make a token with the keys ``footer`` and ``prices``. A process loads the library, with its configuration, once."""
    configuration = folder / "softhsm2.conf"
    configuration.write_text(f"directories.tokendir = {folder}\nobjectstore.backend = file\nlog.level = ERROR\n")
    with mock.patch.dict("os.environ", SOFTHSM2_CONF=str(configuration)):
        command = ["softhsm2-util", "--init-token", "--free", "--label", "fastpq", "--pin", PIN, "--so-pin", "1234"]
        subprocess.run(command, check=True, capture_output=True)
        with pkcs11.lib(library).get_token(token_label="fastpq").open(user_pin=PIN, rw=True) as session:
            for label in ("footer", "prices"):
                session.generate_key(pkcs11.KeyType.AES, 256, label=label, id=b"\x01", store=True)
        yield KmsConnectionConfig(key_access_token=PIN, custom_kms_conf={"library": library, "token_label": "fastpq"})
