"""Google Cloud Key Management Service, through google-cloud-kms (extra ``google``).

The tests run against a local gRPC server that speaks the service's protocol, not against the service itself.
"""

from __future__ import annotations

import importlib
import re
from typing import Any
from urllib.parse import urlsplit

from fastpq.common.lazy import package
from fastpq.encryption.keys.kms import (
    DEFAULT_KEY_ACCESS_TOKEN,
    DEFAULT_KMS_INSTANCE_ID,
    DEFAULT_KMS_INSTANCE_URL,
    KmsConnectionConfig,
    answer_text,
    client_options,
)
from fastpq.encryption.keys.material import decode_base64, encode_base64
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.errors import KeyAccessError, SchemaError

TIMEOUT_SECONDS = 10
LONGEST_CONTEXT = 1 << 16       # in bytes. The service allows no more
CRC32C_POLYNOMIAL = 0x82F63B78  # Castagnoli's, with reversed bits
LOOPBACK = ("127.0.0.1", "localhost", "::1")

_PART = "[A-Za-z0-9_.:-]{1,63}"
_KEY_RING = re.compile(f"projects/{_PART}/locations/{_PART}/keyRings/{_PART}")
_KEY = re.compile(f"{_KEY_RING.pattern}/cryptoKeys/{_PART}")
_SHORT_NAME = re.compile("[A-Za-z0-9_-]{1,63}")


class GoogleKmsClient:
    """A KmsClient for Google Cloud KMS. Master key identifiers are resource names (``projects/.../cryptoKeys/NAME``).

    The key's primary version wraps, and each version that is enabled unwraps what it wrapped. Requests and answers have
    checksums, which the service and this client compare. Credentials come from the places where Google's library looks for them
    (Application Default Credentials), unless there is an access token. gRPC cannot be used in both processes after a fork: start
    worker processes by spawn.

    Args:
        config: ``kms_instance_id`` may be a key ring (``projects/.../keyRings/NAME``). Identifiers may then also be the names of
            its keys. ``kms_instance_url`` is the endpoint, and ``"DEFAULT"`` is Google's own. An ``http://`` endpoint must be
            on this machine, and gets no credentials. ``key_access_token`` is an OAuth 2.0 access token, if not ``"DEFAULT"``.
            ``custom_kms_conf`` may have ``additional_authenticated_data``, a text that each unwrapping needs again, and
            ``quota_project_id``.

    Raises:
        UnsupportedError: google-cloud-kms is not installed.
        SchemaError: an option is unknown, or an argument has another form.
    """

    def __init__(self, config: KmsConnectionConfig) -> None:
        kms = package("google.cloud.kms_v1", "Google Cloud KMS", "google-cloud-kms")
        self._errors: Any = importlib.import_module("google.api_core.exceptions")
        self._auth_errors: Any = importlib.import_module("google.auth.exceptions")
        custom = client_options(config, "additional_authenticated_data", "quota_project_id")
        self._context = custom.get("additional_authenticated_data", "").encode()
        if len(self._context) > LONGEST_CONTEXT:
            raise SchemaError(f"additional_authenticated_data can have {LONGEST_CONTEXT} bytes")
        self._key_ring = None if config.kms_instance_id in ("", DEFAULT_KMS_INSTANCE_ID) else config.kms_instance_id
        if self._key_ring is not None and not _KEY_RING.fullmatch(self._key_ring):
            raise SchemaError("kms_instance_id of Google Cloud KMS is a key ring: projects/.../locations/.../keyRings/...")
        self._client: Any = _make_client(kms, config, custom.get("quota_project_id"))
        self._endpoint: str = self._client.transport.host

    @hides_arguments
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Wrap a key (see KmsClient). The result is the service's ciphertext in base64.

        Args:
            key_bytes: 16, 24 or 32 bytes.
            master_key_identifier: the master key. Its primary version wraps.
        """
        name = self._name(master_key_identifier)
        request = {"name": name, "plaintext": key_bytes, "plaintext_crc32c": crc32c(key_bytes), **self._bound_context()}
        answer = self._call("encrypt", master_key_identifier, request)
        is_verified = answer.verified_plaintext_crc32c and (
            not self._context or answer.verified_additional_authenticated_data_crc32c
        )
        if not is_verified or answer.ciphertext_crc32c != crc32c(answer.ciphertext) or not answer.name.startswith(f"{name}/"):
            raise _corrupt("encrypt", master_key_identifier)
        return encode_base64(answer.ciphertext)

    @hides_arguments
    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Unwrap a key (see KmsClient). The service refuses ciphertexts from other master keys.

        Args:
            wrapped_key: text that ``wrap_key`` returned.
            master_key_identifier: the master key that wrapped it.
        """
        ciphertext = decode_base64(wrapped_key, "a wrapped key")
        request = {
            "name": self._name(master_key_identifier),
            "ciphertext": ciphertext,
            "ciphertext_crc32c": crc32c(ciphertext),
            **self._bound_context(),
        }
        answer = self._call("decrypt", master_key_identifier, request)
        if answer.plaintext_crc32c != crc32c(answer.plaintext):
            raise _corrupt("decrypt", master_key_identifier)
        plain: bytes = answer.plaintext
        return plain

    def _name(self, master_key_identifier: str) -> str:
        """Return a key's resource name. The identifier comes from a file, and becomes a part of the request's address."""
        if _KEY.fullmatch(master_key_identifier):
            return master_key_identifier
        if self._key_ring is not None and _SHORT_NAME.fullmatch(master_key_identifier):
            return f"{self._key_ring}/cryptoKeys/{master_key_identifier}"
        advice = "" if self._key_ring is not None else " (the name of a key alone needs its key ring as kms_instance_id)"
        raise KeyAccessError(f"{master_key_identifier!r} cannot be the name of a key in Google Cloud KMS{advice}")

    def _bound_context(self) -> dict[str, Any]:
        if not self._context:
            return {}
        return {
            "additional_authenticated_data": self._context,
            "additional_authenticated_data_crc32c": crc32c(self._context),
        }

    def _call(self, operation: str, master_key_identifier: str, request: dict[str, Any]) -> Any:
        errors = self._errors
        try:
            # the CryptoFactory tries again, within its own time limit
            return getattr(self._client, operation)(request=request, retry=None, timeout=TIMEOUT_SECONDS)
        except errors.GoogleAPICallError as error:
            words = answer_text(error.message, *(value for value in request.values() if isinstance(value, bytes)))
            is_unavailable = isinstance(error, errors.ServerError | errors.TooManyRequests | errors.Aborted)
            what = "did not answer a request" if is_unavailable else "refused"
            refusal = KeyAccessError(
                f"Google Cloud KMS {what} to {operation} with the key {master_key_identifier!r}: {type(error).__name__}{words}"
            )
            denials = (errors.Forbidden, errors.Unauthorized, errors.NotFound, errors.FailedPrecondition)
            refusal.is_denied = isinstance(error, denials)
            refusal.is_unavailable = is_unavailable
            raise refusal from error
        except (errors.RetryError, self._auth_errors.GoogleAuthError) as error:
            refusal = KeyAccessError(f"Google Cloud KMS could not be asked to {operation}: {type(error).__name__}")
            refusal.is_unavailable = not isinstance(error, self._auth_errors.DefaultCredentialsError)
            raise refusal from error

    def __repr__(self) -> str:
        return f"<GoogleKmsClient at {self._endpoint}>"


def _make_client(kms: Any, config: KmsConnectionConfig, quota_project_id: str | None) -> Any:
    """Return Google's own client for the endpoint and the credentials in a configuration."""
    credentials = None
    if config.key_access_token != DEFAULT_KEY_ACCESS_TOKEN:
        oauth = importlib.import_module("google.oauth2.credentials")
        credentials = oauth.Credentials(str(config.key_access_token))
    url = config.kms_instance_url
    if url in ("", DEFAULT_KMS_INSTANCE_URL):
        return kms.KeyManagementServiceClient(credentials=credentials, client_options={"quota_project_id": quota_project_id})
    parts = urlsplit(url if "://" in url else f"https://{url}")
    if parts.scheme == "http" and parts.hostname in LOOPBACK:
        if credentials is not None:
            raise SchemaError("an endpoint of Google Cloud KMS with http:// gets no credentials: leave key_access_token out")
        transports = importlib.import_module("google.cloud.kms_v1.services.key_management_service.transports")
        channel = importlib.import_module("grpc").insecure_channel(parts.netloc)
        return kms.KeyManagementServiceClient(
            transport=transports.KeyManagementServiceGrpcTransport(host=parts.netloc, channel=channel)
        )
    if parts.scheme != "https" or not parts.netloc or parts.username is not None:
        raise SchemaError("kms_instance_url of Google Cloud KMS must begin with https://")
    return kms.KeyManagementServiceClient(
        credentials=credentials, client_options={"api_endpoint": parts.netloc, "quota_project_id": quota_project_id}
    )


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of a few bytes, by which the service finds damaged requests (RFC 3720, B.4)."""
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = (remainder >> 1) ^ (CRC32C_POLYNOMIAL if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def _corrupt(operation: str, master_key_identifier: str) -> KeyAccessError:
    error = KeyAccessError(
        f"the request of Google Cloud KMS to {operation} with the key {master_key_identifier!r}, or its answer, was damaged on "
        "the way: the checksums differ"
    )
    error.is_unavailable = True     # the same call may succeed later
    return error
