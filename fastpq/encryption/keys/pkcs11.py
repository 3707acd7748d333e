"""Hardware security modules and other PKCS#11 tokens, through python-pkcs11 (extra ``pkcs11``)."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastpq.common.lazy import package
from fastpq.encryption.keys.kms import KmsConnectionConfig, client_options
from fastpq.encryption.keys.material import decode_base64, encode_base64
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.errors import FormatError, KeyAccessError, SchemaError

WRAPPED_PREFIX = "pkcs11:"
NONCE_SIZE = 12     # in bytes
TAG_SIZE = 16       # in bytes
WRAPPED_SIZES = tuple(NONCE_SIZE + size + TAG_SIZE for size in (16, 24, 32))    # size of nonce, encrypted key and tag

# A login to a token is valid for all sessions in the process, so only one session is open at a time.
_session_lock = threading.Lock()


class Pkcs11KmsClient:
    """A KmsClient for a PKCS#11 token. Master key identifiers are labels of AES keys that may encrypt and decrypt.

    The token wraps with AES-GCM, with the identifier as AAD. Several keys with the same label are versions of one master key: the
    key with the largest CKA_ID wraps, and each key unwraps what it wrapped. Every call opens and closes a session. After a fork,
    the standard requires that the child initializes the token's library again, but python-pkcs11 does not do so. Start worker
    processes by spawn.

    Args:
        config: ``custom_kms_conf`` has ``library``, the path of the token's library, and ``token_label``.
            ``key_access_token`` is the user's PIN.

    Raises:
        UnsupportedError: python-pkcs11 is not installed.
        SchemaError: an option is missing or unknown.
        KeyAccessError: the library or the token was not found.
    """

    def __init__(self, config: KmsConnectionConfig) -> None:
        self._pkcs11: Any = package("pkcs11", "PKCS#11", "python-pkcs11")
        custom = client_options(config, "library", "token_label")
        if "library" not in custom or "token_label" not in custom:
            raise SchemaError("custom_kms_conf needs library and token_label for PKCS#11")
        self._config = config
        self._label = custom["token_label"]
        try:
            self._token = self._pkcs11.lib(custom["library"]).get_token(token_label=self._label)
        except (self._pkcs11.PKCS11Error, RuntimeError) as error:
            raise KeyAccessError(f"no PKCS#11 token {self._label!r}: {type(error).__name__}") from error

    @hides_arguments
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Wrap a key (see KmsClient). The result is ``pkcs11:``, CKA_ID, ``:``, and nonce, ciphertext and tag in base64.

        Args:
            key_bytes: 16, 24 or 32 bytes.
            master_key_identifier: the master key. Its newest version wraps.
        """
        nonce = secrets.token_bytes(NONCE_SIZE)
        with self._keys(master_key_identifier) as keys:
            identifier = max(keys)
            sealed_key = keys[identifier].encrypt(key_bytes, **self._gcm(nonce, master_key_identifier))
        return f"{WRAPPED_PREFIX}{identifier.hex()}:{encode_base64(nonce + sealed_key)}"

    @hides_arguments
    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Unwrap a key (see KmsClient).

        Args:
            wrapped_key: text that ``wrap_key`` returned.
            master_key_identifier: the master key that wrapped it.
        """
        identifier, colon, text = wrapped_key.removeprefix(WRAPPED_PREFIX).partition(":")
        if not wrapped_key.startswith(WRAPPED_PREFIX) or not colon:
            raise FormatError("this key was not wrapped by a PKCS#11 token")
        sealed_key = decode_base64(text, "a wrapped key")
        if len(sealed_key) not in WRAPPED_SIZES:
            raise FormatError(f"a key wrapped by a PKCS#11 token does not have {len(sealed_key)} bytes")
        with self._keys(master_key_identifier) as keys:
            versions = [key for key_id, key in keys.items() if key_id.hex() == identifier]
            if not versions:
                raise KeyAccessError.denied(f"the token has no version {identifier[:32]!r} of the key {master_key_identifier!r}")
            gcm = self._gcm(sealed_key[:NONCE_SIZE], master_key_identifier)
            plain: bytes = versions[0].decrypt(sealed_key[NONCE_SIZE:], **gcm)
        return plain

    @contextmanager
    def _keys(self, label: str) -> Iterator[dict[bytes, Any]]:
        """Open a session, and yield a master key's versions by CKA_ID."""
        pkcs11 = self._pkcs11
        try:
            with _session_lock, self._open() as session:
                objects = session.get_objects(
                    {
                        pkcs11.Attribute.CLASS: pkcs11.ObjectClass.SECRET_KEY,
                        pkcs11.Attribute.KEY_TYPE: pkcs11.KeyType.AES,
                        pkcs11.Attribute.LABEL: label,
                    }
                )
                keys = {bytes(key.id): key for key in objects}
                if not keys:
                    raise KeyAccessError.denied(f"the token {self._label!r} has no AES key {label!r}")
                yield keys
        except pkcs11.PKCS11Error as error:
            raise KeyAccessError(f"the token {self._label!r} failed with the key {label!r}: {type(error).__name__}") from error

    def _open(self) -> Any:
        try:
            return self._token.open(user_pin=self._config.key_access_token)
        except self._pkcs11.UserAlreadyLoggedIn:    # the application's login is valid for this session too
            return self._token.open()

    def _gcm(self, nonce: bytes, label: str) -> dict[str, Any]:
        return {
            "mechanism": self._pkcs11.Mechanism.AES_GCM,
            "mechanism_param": self._pkcs11.GCMParams(nonce, label.encode(), TAG_SIZE * 8),
        }

    def __repr__(self) -> str:
        return f"<Pkcs11KmsClient of the token {self._label!r}>"
