"""Hardware security modules and other PKCS#11 tokens, through python-pkcs11 (extra ``pkcs11``)."""

from __future__ import annotations

import base64
import importlib
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastpq.encryption.keys.kms import KmsConnectionConfig, client_options
from fastpq.encryption.keys.material import decode_base64
from fastpq.errors import FormatError, KeyAccessError, SchemaError, UnsupportedError

WRAPPED_PREFIX = "pkcs11:"
NONCE_SIZE = 12     # bytes
TAG_SIZE = 16       # bytes
WRAPPED_SIZES = tuple(NONCE_SIZE + size + TAG_SIZE for size in (16, 24, 32))    # bytes of nonce, wrapped key and tag

# A login holds for all sessions of a process with a token: one session at a time.
_using_tokens = threading.Lock()


class Pkcs11KmsClient:
    """A KmsClient of a PKCS#11 token; master key identifiers are labels of AES keys with permission to encrypt and decrypt.

    The token wraps with AES-GCM, the identifier as AAD. Several keys of one label are versions of a master key: the key with
    the largest CKA_ID wraps, and each key unwraps its own results. Every call opens and closes a session. After a fork, the
    standard has the child initialize the token's library anew, but python-pkcs11 does not: start workers by spawn.

    Args:
        config: ``custom_kms_conf`` has ``library``, the path of the token's library, and ``token_label``;
            ``key_access_token`` is the user's PIN.

    Raises:
        UnsupportedError: python-pkcs11 is not installed.
        SchemaError: a missing or unknown option.
        KeyAccessError: library or token were not found.
    """

    def __init__(self, config: KmsConnectionConfig) -> None:
        try:
            self._pkcs11: Any = importlib.import_module("pkcs11")
        except ImportError as error:
            raise UnsupportedError("PKCS#11 needs the package python-pkcs11 (pip install python-pkcs11)") from error
        custom = client_options(config, "library", "token_label")
        if "library" not in custom or "token_label" not in custom:
            raise SchemaError("custom_kms_conf needs library and token_label for PKCS#11")
        self._config = config
        self._label = custom["token_label"]
        try:
            self._token = self._pkcs11.lib(custom["library"]).get_token(token_label=self._label)
        except (self._pkcs11.PKCS11Error, RuntimeError) as error:
            raise KeyAccessError(f"no PKCS#11 token {self._label!r}: {type(error).__name__}") from error

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Wrap a key (see KmsClient); the result is ``pkcs11:``, CKA_ID, ``:`` and base64 of nonce, ciphertext and tag.

        Args:
            key_bytes: 16, 24 or 32 bytes.
            master_key_identifier: the master key; its newest version wraps.
        """
        nonce = secrets.token_bytes(NONCE_SIZE)
        with self._keys(master_key_identifier) as keys:
            identifier = max(keys)
            sealed = keys[identifier].encrypt(key_bytes, **self._gcm(nonce, master_key_identifier))
        return f"{WRAPPED_PREFIX}{identifier.hex()}:{base64.b64encode(nonce + sealed).decode()}"

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Unwrap a key (see KmsClient).

        Args:
            wrapped_key: text returned by ``wrap_key``.
            master_key_identifier: the master key of the wrapping.
        """
        identifier, colon, text = wrapped_key.removeprefix(WRAPPED_PREFIX).partition(":")
        if not wrapped_key.startswith(WRAPPED_PREFIX) or not colon:
            raise FormatError("a wrapped key that is not a PKCS#11 token's")
        sealed = decode_base64(text, "a wrapped key")
        if len(sealed) not in WRAPPED_SIZES:
            raise FormatError(f"a wrapped key of {len(sealed)} bytes")
        with self._keys(master_key_identifier) as keys:
            named = [key for own, key in keys.items() if own.hex() == identifier]
            if not named:
                raise KeyAccessError(f"the token has no version {identifier[:32]!r} of the key {master_key_identifier!r}")
            plain: bytes = named[0].decrypt(sealed[NONCE_SIZE:], **self._gcm(sealed[:NONCE_SIZE], master_key_identifier))
        return plain

    @contextmanager
    def _keys(self, label: str) -> Iterator[dict[bytes, Any]]:
        """The versions of a master key by CKA_ID, for the time of one session."""
        pkcs11 = self._pkcs11
        try:
            with _using_tokens, self._open() as session:
                found = session.get_objects(
                    {
                        pkcs11.Attribute.CLASS: pkcs11.ObjectClass.SECRET_KEY,
                        pkcs11.Attribute.KEY_TYPE: pkcs11.KeyType.AES,
                        pkcs11.Attribute.LABEL: label,
                    }
                )
                keys = {bytes(key.id): key for key in found}
                if not keys:
                    raise KeyAccessError(f"the token {self._label!r} has no AES key {label!r}")
                yield keys
        except pkcs11.PKCS11Error as error:
            raise KeyAccessError(f"the token {self._label!r} failed with the key {label!r}: {type(error).__name__}") from error

    def _open(self) -> Any:
        try:
            return self._token.open(user_pin=self._config.key_access_token)
        except self._pkcs11.UserAlreadyLoggedIn:    # the application's own login holds for this session too
            return self._token.open()

    def _gcm(self, nonce: bytes, label: str) -> dict[str, Any]:
        return {
            "mechanism": self._pkcs11.Mechanism.AES_GCM,
            "mechanism_param": self._pkcs11.GCMParams(nonce, label.encode(), TAG_SIZE * 8),
        }

    def __repr__(self) -> str:
        return f"<Pkcs11KmsClient of the token {self._label!r}>"
