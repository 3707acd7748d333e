"""The transit secrets engine of HashiCorp Vault and OpenBao, through hvac (extra ``vault``).

The tests run against an OpenBao server, and against a local server that speaks the transit HTTP API and can fail in other ways.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from fastpq.common.lazy import package
from fastpq.encryption.keys.kms import (
    DEFAULT_KMS_INSTANCE_URL,
    KmsConnectionConfig,
    answer_text,
    client_options,
)
from fastpq.encryption.keys.material import decode_base64, encode_base64
from fastpq.encryption.keys.vault_login import OPTIONS, VaultTokens
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.errors import KeyAccessError, SchemaError

DEFAULT_MOUNT_POINT = "transit"
TIMEOUT_SECONDS = 10
# Parts of answers by which the engine says that a key, or this version of it, cannot be used any more.
DENIALS = ("encryption key not found", "disallowed by policy")


class VaultKmsClient:
    """A KmsClient for a transit secrets engine. Master key identifiers are transit key names.

    Wrapped keys are the engine's ciphertexts (``vault:v1:...``), as in parquet-java's VaultClient. A key that is rotated in the
    engine keeps its name, and its older versions still decrypt, down to ``min_decryption_version``.

    Args:
        config: ``kms_instance_url`` is the server's address. If it is empty or ``"DEFAULT"``, the environment variable
            ``VAULT_ADDR`` has the address. ``kms_instance_id`` is not used. ``key_access_token`` is the token. If it is
            ``"DEFAULT"``, the environment variable ``VAULT_TOKEN`` has the token. The client reads the token at each call, so it
            notices a refresh. ``custom_kms_conf`` may have ``mount_point`` (default ``transit``), ``namespace`` and ``ca_cert``,
            the path of a certificate that verifies the server. ``auth`` asks for a login: ``approle``, where ``role`` is the
            RoleID and ``key_access_token`` is the SecretID (``"DEFAULT"`` sends none, for a role whose ``bind_secret_id`` is
            false), or ``kubernetes``, where ``role`` is the name of the role and ``jwt_file`` the service account's token
            (default: that of the pod). ``auth_mount_point`` is the place of the method, if it is not its name. A token from a
            login is renewed before it ends, or there is a new login. ``renew="true"`` also renews a token that was given.

    Raises:
        UnsupportedError: hvac is not installed.
        SchemaError: an option is unknown, is missing, or has no value. Or there is no address.
    """

    def __init__(self, config: KmsConnectionConfig) -> None:
        hvac, requests = (package(name, "a client for Vault and OpenBao") for name in ("hvac", "requests"))
        errors = hvac.exceptions
        self._errors: tuple[type[Exception], ...] = (errors.VaultError, requests.RequestException)
        self._denials = (errors.Forbidden, errors.Unauthorized, errors.InvalidPath)
        self._answers = (*self._denials, errors.InvalidRequest, errors.ParamValidationError, errors.UnsupportedOperation)
        self._token_errors = (errors.Forbidden, errors.Unauthorized)
        custom, url = client_options(config, "mount_point", "namespace", "ca_cert", *OPTIONS), config.kms_instance_url
        _check_address(config)
        self._mount_point = custom.get("mount_point", DEFAULT_MOUNT_POINT)
        self._client: Any = hvac.Client(
            url=None if url in ("", DEFAULT_KMS_INSTANCE_URL) else url,
            namespace=custom.get("namespace"),
            verify=custom.get("ca_cert", True),
            timeout=TIMEOUT_SECONDS,
        )
        self._tokens = VaultTokens(self._client, config, custom, self._errors, self._refusal)

    @hides_arguments
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Wrap a key (see KmsClient).

        Args:
            key_bytes: 16, 24 or 32 bytes.
            master_key_identifier: the master key. Its newest version wraps.
        """
        answer = self._call("encrypt_data", master_key_identifier, plaintext=encode_base64(key_bytes))
        return self._text(answer, "ciphertext")

    @hides_arguments
    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Unwrap a key (see KmsClient).

        Args:
            wrapped_key: text that ``wrap_key`` returned.
            master_key_identifier: the master key that wrapped it.
        """
        answer = self._call("decrypt_data", master_key_identifier, ciphertext=wrapped_key)
        return decode_base64(self._text(answer, "plaintext"), "Vault's plaintext")

    @hides_arguments
    def unwrap_keys(self, wrapped_keys: Sequence[str], master_key_identifier: str) -> list[bytes]:
        """Unwrap several keys by one request (see KmsClient).

        Args:
            wrapped_keys: texts that ``wrap_key`` returned.
            master_key_identifier: the master key that wrapped them.
        """
        batch = [{"ciphertext": wrapped_key} for wrapped_key in wrapped_keys]
        answer = self._call("decrypt_data", master_key_identifier, batch_input=batch)
        data = answer.get("data") if isinstance(answer, dict) else None
        results = data.get("batch_results") if isinstance(data, dict) else None
        if not isinstance(results, list) or len(results) != len(batch):
            raise KeyAccessError("Vault's answer has no batch_results, or too few")
        texts = [result.get("plaintext") if isinstance(result, dict) else None for result in results]
        if not all(isinstance(text, str) and text for text in texts):
            raise KeyAccessError(f"Vault did not decrypt all keys of a batch with the key {master_key_identifier!r}")
        return [decode_base64(str(text), "Vault's plaintext") for text in texts]

    def _call(self, operation: str, master_key_identifier: str, **arguments: Any) -> Any:
        if "/" in master_key_identifier or master_key_identifier in (".", ".."):    # the identifier becomes a part of a URL path
            raise KeyAccessError(f"{master_key_identifier!r} cannot be the name of a transit key")
        call = getattr(self._client.secrets.transit, operation)
        what = f"{operation.removesuffix('_data')} with the key {master_key_identifier!r}"
        token = self._tokens.prepare()
        try:
            return call(name=master_key_identifier, mount_point=self._mount_point, **arguments)
        except self._errors as error:
            refusal = self._refusal(what, error, *self._tokens.secrets(), *_texts(arguments))
            if not isinstance(error, self._token_errors) or not self._tokens.log_in_again(token):
                raise refusal from error
        try:
            return call(name=master_key_identifier, mount_point=self._mount_point, **arguments)
        except self._errors as error:
            refusal = self._refusal(what, error, *self._tokens.secrets(), *_texts(arguments))
            raise refusal from error

    def _refusal(self, what: str, error: Exception, *secrets: str) -> KeyAccessError:
        for name in {"request", "response"} & set(vars(error)):     # errors of the package requests have them, and a key in them
            setattr(error, name, None)
        answers = getattr(error, "errors", None)
        text = "; ".join(map(str, answers)) if isinstance(answers, list) else ""
        reason = f"{type(error).__name__}{answer_text(text, *secrets)}"
        refusal = KeyAccessError(f"Vault did not {what}: {reason}")
        refusal.is_denied = isinstance(error, self._denials) or any(text in str(error) for text in DENIALS)
        refusal.is_unavailable = not isinstance(error, self._answers)
        return refusal

    def _text(self, answer: Any, name: str) -> str:
        data = answer.get("data") if isinstance(answer, dict) else None
        text = data.get(name) if isinstance(data, dict) else None
        if not isinstance(text, str):
            raise KeyAccessError(f"Vault's answer has no {name}")
        return text

    def __repr__(self) -> str:
        return f"<VaultKmsClient at {self._client.url}>"


def _check_address(config: KmsConnectionConfig) -> None:
    """Refuse a connection without an address. hvac would send the token to port 8200 of this machine."""
    if "://" in config.kms_instance_id:
        raise SchemaError("kms_instance_id is a name: the address of Vault is kms_instance_url")
    if config.kms_instance_url in ("", DEFAULT_KMS_INSTANCE_URL) and not os.environ.get("VAULT_ADDR"):
        raise SchemaError("Vault needs kms_instance_url, or the environment variable VAULT_ADDR")


def _texts(arguments: Mapping[str, Any]) -> list[str]:
    """Return the texts in a request, which no message may show."""
    batch = arguments.get("batch_input", ())
    return [*(value for value in arguments.values() if isinstance(value, str)), *(each["ciphertext"] for each in batch)]
