"""AWS Key Management Service, through boto3 (extra ``aws``)."""

from __future__ import annotations

import importlib
from typing import Any

from fastpq.common.lazy import package
from fastpq.encryption.keys.kms import (
    DEFAULT_KMS_INSTANCE_ID,
    DEFAULT_KMS_INSTANCE_URL,
    KmsConnectionConfig,
    answer_text,
    client_options,
)
from fastpq.encryption.keys.material import decode_base64, encode_base64, parse_object
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.errors import FormatError, KeyAccessError, SchemaError

# Error codes by which AWS KMS says that the caller cannot have a key, and that it has no time for an answer.
DENIALS = frozenset({"AccessDeniedException", "DisabledException", "NotFoundException", "KMSInvalidStateException"})
OVERLOADS = frozenset({"ThrottlingException", "LimitExceededException", "RequestLimitExceeded"})
CONNECT_SECONDS, READ_SECONDS = 5, 10      # longest time for a connection, and for an answer
LARGEST_CONTEXT = 1 << 13    # in bytes. AWS allows no more
SERVER_ERROR = 500      # the first HTTP status that reports an error of the server


class AwsKmsClient:
    """A KmsClient for AWS KMS. Master key identifiers are key ids, ARNs or aliases (``alias/...``).

    Credentials come from the places where boto3 looks for them (environment, profile, role), not from the access token. A key
    that is rotated in AWS KMS keeps its identifier, and older ciphertexts can still be decrypted. At level DEBUG, botocore's
    loggers write whole requests and answers, which contain keys: leave the level at INFO.

    Args:
        config: ``kms_instance_id`` is the region, and ``kms_instance_url`` the endpoint. For ``"DEFAULT"``, boto3 decides.
            ``custom_kms_conf`` may have ``profile_name``, and ``encryption_context``, a JSON object whose values are texts. AWS
            binds wrapped keys to this context: only a client that has the same context unwraps them. It stands in AWS's logs.

    Raises:
        UnsupportedError: boto3 is not installed.
        SchemaError: an option is unknown, or has no value, or the encryption context has another form.
    """

    def __init__(self, config: KmsConnectionConfig) -> None:
        boto3 = package("boto3", "AWS KMS")
        self._errors: Any = importlib.import_module("botocore.exceptions")
        custom = client_options(config, "profile_name", "encryption_context")
        self._context = _encryption_context(custom.get("encryption_context"))
        region, url = config.kms_instance_id, config.kms_instance_url
        session = boto3.session.Session(profile_name=custom.get("profile_name"))
        self._client = session.client(
            "kms",
            region_name=None if region in ("", DEFAULT_KMS_INSTANCE_ID) else region,
            endpoint_url=None if url in ("", DEFAULT_KMS_INSTANCE_URL) else url,
            # the CryptoFactory tries again, within its own time limit
            config=importlib.import_module("botocore.config").Config(
                connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS, retries={"total_max_attempts": 1}
            ),
        )

    @hides_arguments
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Wrap a key (see KmsClient). The result is the service's ciphertext in base64.

        Args:
            key_bytes: 16, 24 or 32 bytes.
            master_key_identifier: the master key. Its newest version wraps.
        """
        answer = self._call("encrypt", master_key_identifier, Plaintext=key_bytes)
        return encode_base64(answer["CiphertextBlob"])

    @hides_arguments
    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Unwrap a key (see KmsClient). The service refuses ciphertexts from other master keys.

        Args:
            wrapped_key: text that ``wrap_key`` returned.
            master_key_identifier: the master key that wrapped it.
        """
        answer = self._call("decrypt", master_key_identifier, CiphertextBlob=decode_base64(wrapped_key, "a wrapped key"))
        plain: bytes = answer["Plaintext"]
        return plain

    def _call(self, operation: str, master_key_identifier: str, **arguments: bytes) -> Any:
        context = {"EncryptionContext": self._context} if self._context else {}
        try:
            return getattr(self._client, operation)(KeyId=master_key_identifier, **context, **arguments)
        except self._errors.ClientError as error:
            answer = error.response.get("Error", {})
            code = answer.get("Code", "an error without a code")
            words = answer_text(answer.get("Message", ""), *arguments.values())
            refusal = KeyAccessError(f"AWS KMS refused to {operation} with the key {master_key_identifier!r}: {code}{words}")
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            refusal.is_denied = code in DENIALS
            refusal.is_unavailable = code in OVERLOADS or status >= SERVER_ERROR
            raise refusal from error
        except self._errors.BotoCoreError as error:
            refusal = KeyAccessError(f"AWS KMS could not be asked to {operation}: {type(error).__name__}")
            refusal.is_unavailable = True
            raise refusal from error

    def __repr__(self) -> str:
        return f"<AwsKmsClient at {self._client.meta.endpoint_url}>"


def _encryption_context(text: str | None) -> dict[str, str]:
    if text is None:
        return {}
    try:
        context = parse_object(text.encode(), LARGEST_CONTEXT, "encryption_context")
    except FormatError:
        context = {}
    if not context or not all(isinstance(value, str) for value in context.values()):
        raise SchemaError("custom_kms_conf['encryption_context'] is a JSON object of one or more texts")
    return context
