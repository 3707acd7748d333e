"""Azure Key Vault and Azure Managed HSM, through azure-keyvault-keys (extra ``azure``).

The tests run against a local HTTPS server that speaks the service's REST API, not against the service itself.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import re
import time
from typing import Any
from urllib.parse import urlsplit

from fastpq.common.lazy import package
from fastpq.encryption.keys.kms import (
    DEFAULT_KEY_ACCESS_TOKEN,
    DEFAULT_KMS_INSTANCE_URL,
    KmsConnectionConfig,
    answer_text,
    client_options,
)
from fastpq.encryption.keys.material import decode_base64, encode_base64
from fastpq.encryption.tracebacks import KeyHolder, hides_arguments
from fastpq.errors import FormatError, KeyAccessError, SchemaError

CONNECT_SECONDS, READ_SECONDS = 5, 10      # longest time for a connection, and for an answer
TOKEN_SECONDS = 3600        # how long Azure's library may use a token before it asks for it again
WRAPPED_PREFIX = "azure:"
DEFAULT_ALGORITHM = "RSA-OAEP-256"
ALGORITHMS = (DEFAULT_ALGORITHM, "A128KW", "A192KW", "A256KW")
DENIALS = frozenset({401, 403, 404})    # HTTP statuses
TOO_MANY_REQUESTS, SERVER_ERROR = 429, 500

_NAME = re.compile("[0-9A-Za-z-]{1,127}")
_VERSION = re.compile("[0-9A-Za-z]{1,64}")


class AzureKmsClient:
    """A KmsClient for Azure Key Vault and Managed HSM. Master key identifiers are the names of keys in the vault.

    The newest version wraps. The result has its name: ``azure:``, the algorithm, ``:``, the version, ``:``, and the ciphertext in
    base64. The client needs the permissions wrapKey and unwrapKey. Each call goes to the service, whose log has it. Keys in a
    vault are RSA keys: **whoever knows the public key can wrap a key without the service, and write a file that readers believe
    to be genuine.** AES keys in a Managed HSM (``algorithm``) do not have this weakness.

    Args:
        config: ``kms_instance_url`` is the vault's URL (``https://NAME.vault.azure.net``). Credentials come from the places where
            azure-identity looks for them (DefaultAzureCredential), unless ``key_access_token`` is an access token for the vault.
            ``custom_kms_conf`` may have ``algorithm`` for new keys: ``RSA-OAEP-256`` (the default), or ``A128KW``, ``A192KW``
            or ``A256KW`` for AES keys of this length, and ``ca_cert``, the path of a certificate that verifies the server.

    Raises:
        UnsupportedError: azure-keyvault-keys is not installed, or azure-identity, if there is no access token.
        SchemaError: an option is unknown, or an argument has another form.
    """

    def __init__(self, config: KmsConnectionConfig) -> None:
        keys = package("azure.keyvault.keys", "Azure Key Vault", "azure-keyvault-keys")
        self._errors: Any = importlib.import_module("azure.core.exceptions")
        self._request_class: Any = importlib.import_module("azure.core.rest").HttpRequest
        custom, url = client_options(config, "algorithm", "ca_cert"), config.kms_instance_url
        self._algorithm = custom.get("algorithm", DEFAULT_ALGORITHM)
        if self._algorithm not in ALGORITHMS:
            raise SchemaError(f"custom_kms_conf['algorithm'] can be {', '.join(ALGORITHMS)}")
        if url in ("", DEFAULT_KMS_INSTANCE_URL):
            raise SchemaError("Azure Key Vault needs kms_instance_url: https://NAME.vault.azure.net")
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.netloc or parts.username is not None or parts.path not in ("", "/"):
            raise SchemaError("kms_instance_url of Azure Key Vault has the form https://NAME.vault.azure.net")
        self._url = f"https://{parts.netloc}"
        self._client: Any = keys.KeyClient(
            self._url,
            _credential(config),
            retry_total=0,      # the CryptoFactory tries again, within its own time limit
            connection_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            connection_verify=custom.get("ca_cert", True),
        )

    @hides_arguments
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Wrap a key (see KmsClient).

        Args:
            key_bytes: 16, 24 or 32 bytes.
            master_key_identifier: the master key. Its newest version wraps.
        """
        name = _check_name(master_key_identifier)
        answer = self._call("wrap", name, "", self._algorithm, key_bytes)       # without a version, the newest one wraps
        *place, version = str(answer.get("kid")).split("/")
        if place[-2:] != ["keys", name] or not _VERSION.fullmatch(version):
            raise KeyAccessError(f"Azure Key Vault did not say which version of the key {name!r} has wrapped")
        return f"{WRAPPED_PREFIX}{self._algorithm}:{version}:{encode_base64(_value(answer))}"

    @hides_arguments
    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Unwrap a key (see KmsClient).

        Args:
            wrapped_key: text that ``wrap_key`` returned.
            master_key_identifier: the master key that wrapped it.
        """
        name = _check_name(master_key_identifier)
        algorithm, _, rest = wrapped_key.removeprefix(WRAPPED_PREFIX).partition(":")
        version, _, text = rest.partition(":")
        if not wrapped_key.startswith(WRAPPED_PREFIX) or algorithm not in ALGORITHMS or not _VERSION.fullmatch(version):
            raise FormatError("this key was not wrapped by Azure Key Vault")
        # whoever knows a public key can wrap, so that a reader who uses AES keys must not accept RSA
        if algorithm[0] != self._algorithm[0]:
            raise KeyAccessError(
                f"the key {name!r} wrapped by {algorithm}, and this client accepts {self._algorithm}: "
                "custom_kms_conf['algorithm'] says what the reader accepts"
            )
        return _value(self._call("unwrap", name, version, algorithm, decode_base64(text, "a wrapped key")))

    def _call(self, operation: str, name: str, version: str, algorithm: str, value: bytes) -> dict[str, Any]:
        """Send a request through Azure's client, which authenticates it.

        Azure's CryptographyClient is not used: version 4.11 wraps with a random key in the place of an AES key that stays in an
        HSM, if it may look the key up.
        """
        errors, text = self._errors, base64.urlsafe_b64encode(value).decode().rstrip("=")
        url = f"{self._url}/keys/{name}/{version}/{operation}key"
        try:
            answer = self._client.send_request(self._request_class("POST", url, json={"alg": algorithm, "value": text}))
            answer.raise_for_status()
            members = answer.json()
        except errors.HttpResponseError as error:
            status = error.status_code
            # an error without a status was raised before a request, by the credentials
            words = answer_text(error.message or "", value, text) if status is not None else ""
            refusal = KeyAccessError(
                f"Azure Key Vault refused to {operation} with the key {name!r}: {status or type(error).__name__}{words}"
            )
            refusal.is_denied = status in DENIALS or isinstance(error, errors.ClientAuthenticationError)
            refusal.is_unavailable = status is not None and (status == TOO_MANY_REQUESTS or status >= SERVER_ERROR)
            error.response = None       # its request has the key
            raise refusal from error
        except errors.AzureError as error:
            refusal = KeyAccessError(f"Azure Key Vault could not be asked to {operation}: {type(error).__name__}")
            refusal.is_unavailable = True
            raise refusal from error
        if not isinstance(members, dict):
            raise KeyAccessError("Azure Key Vault's answer is not a JSON object")
        return members

    def __repr__(self) -> str:
        return f"<AzureKmsClient at {self._url}>"


class _TokenCredential(KeyHolder):
    """Gives Azure's library the access token in a configuration."""

    def __init__(self, config: KmsConnectionConfig) -> None:
        self._config = config
        self._token_class: Any = importlib.import_module("azure.core.credentials").AccessToken

    def get_token(self, *scopes: str, **options: Any) -> Any:
        return self._token_class(str(self._config.key_access_token), int(time.time()) + TOKEN_SECONDS)


def _credential(config: KmsConnectionConfig) -> Any:
    if config.key_access_token != DEFAULT_KEY_ACCESS_TOKEN:
        return _TokenCredential(config)
    identity = package("azure.identity", "Azure Key Vault without an access token", "azure-identity")
    return identity.DefaultAzureCredential()


def _check_name(identifier: str) -> str:
    """Return a key's name. It comes from a file, and becomes a part of a URL path."""
    if not _NAME.fullmatch(identifier):
        raise KeyAccessError(f"{identifier!r} cannot be the name of a key in Azure Key Vault")
    return identifier


@hides_arguments
def _value(answer: dict[str, Any]) -> bytes:
    """Return the bytes in an answer, which has them in base64 for URLs without padding."""
    text = answer.get("value")
    value = None
    if isinstance(text, str):
        with contextlib.suppress(ValueError):
            value = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if not value:
        raise KeyAccessError("Azure Key Vault's answer has no value")
    return value
