"""The transit secrets engine of HashiCorp Vault and OpenBao, through hvac (extra ``vault``).

Tests cover the transit HTTP API as documented by both products, against a local server in the tests, not the products
themselves.
"""

from __future__ import annotations

import base64
import importlib
from typing import Any

from fastpq.encryption.keys.kms import DEFAULT_KEY_ACCESS_TOKEN, DEFAULT_KMS_INSTANCE_URL, KmsConnectionConfig, client_options
from fastpq.encryption.keys.material import decode_base64
from fastpq.errors import KeyAccessError, UnsupportedError

DEFAULT_MOUNT_POINT = "transit"
TIMEOUT_SECONDS = 30


class VaultKmsClient:
    """A KmsClient of a transit secrets engine; master key identifiers are names of transit keys.

    Wrapped keys are the engine's ciphertexts (``vault:v1:...``), as in parquet-java's VaultClient. Rotating a key in the engine
    keeps its name, and older versions still decrypt down to ``min_decryption_version``.

    Args:
        config: ``kms_instance_url`` is the server's address, else the environment's ``VAULT_ADDR``. ``key_access_token`` is the
            token, or for ``"DEFAULT"`` the environment's ``VAULT_TOKEN``; the client reads the token at each call, and so
            follows a refresh. ``custom_kms_conf`` may have ``mount_point`` (``transit``), ``namespace`` and ``ca_cert``, the
            path of a certificate to verify the server by.

    Raises:
        UnsupportedError: hvac is not installed.
        SchemaError: an unknown option, or an option without a value.
    """

    def __init__(self, config: KmsConnectionConfig) -> None:
        try:
            hvac = importlib.import_module("hvac")
            self._errors: tuple[type[Exception], ...] = (
                hvac.exceptions.VaultError,
                importlib.import_module("requests").RequestException,
            )
        except ImportError as error:
            raise UnsupportedError("Vault and OpenBao need the package hvac (pip install hvac)") from error
        custom, url = client_options(config, "mount_point", "namespace", "ca_cert"), config.kms_instance_url
        self._config = config
        self._mount_point = custom.get("mount_point", DEFAULT_MOUNT_POINT)
        self._client: Any = hvac.Client(
            url=None if url in ("", DEFAULT_KMS_INSTANCE_URL) else url,
            namespace=custom.get("namespace"),
            verify=custom.get("ca_cert", True),
            timeout=TIMEOUT_SECONDS,
        )

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Wrap a key (see KmsClient).

        Args:
            key_bytes: 16, 24 or 32 bytes.
            master_key_identifier: the master key; its newest version wraps.
        """
        answer = self._ask("encrypt_data", master_key_identifier, plaintext=base64.b64encode(key_bytes).decode())
        return self._text(answer, "ciphertext")

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Unwrap a key (see KmsClient).

        Args:
            wrapped_key: text returned by ``wrap_key``.
            master_key_identifier: the master key of the wrapping.
        """
        answer = self._ask("decrypt_data", master_key_identifier, ciphertext=wrapped_key)
        return decode_base64(self._text(answer, "plaintext"), "what Vault decrypted")

    def _ask(self, operation: str, master_key_identifier: str, **arguments: str) -> Any:
        if "/" in master_key_identifier or master_key_identifier in (".", ".."):    # part of a URL path
            raise KeyAccessError(f"{master_key_identifier!r} is no name of a transit key")
        token = self._config.key_access_token
        if token != DEFAULT_KEY_ACCESS_TOKEN:
            self._client.token = token
        try:
            return getattr(self._client.secrets.transit, operation)(
                name=master_key_identifier, mount_point=self._mount_point, **arguments
            )
        except self._errors as error:
            reason = type(error).__name__
            raise KeyAccessError(f"Vault did not {operation} with the key {master_key_identifier!r}: {reason}") from error

    def _text(self, answer: Any, name: str) -> str:
        data = answer.get("data") if isinstance(answer, dict) else None
        text = data.get(name) if isinstance(data, dict) else None
        if not isinstance(text, str):
            raise KeyAccessError(f"Vault's answer has no {name}")
        return text

    def __repr__(self) -> str:
        return f"<VaultKmsClient at {self._client.url}>"
