"""AWS Key Management Service, through boto3 (extra ``aws``)."""

from __future__ import annotations

import base64
import importlib
from typing import Any

from fastpq.encryption.keys.kms import DEFAULT_KMS_INSTANCE_ID, DEFAULT_KMS_INSTANCE_URL, KmsConnectionConfig, client_options
from fastpq.encryption.keys.material import decode_base64
from fastpq.errors import KeyAccessError, UnsupportedError


class AwsKmsClient:
    """A KmsClient of AWS KMS; master key identifiers are key ids, ARNs or aliases (``alias/...``).

    Credentials come from boto3's usual places (environment, profile, role), not from the access token. Rotating a key in AWS
    KMS keeps its identifier, and older ciphertexts still decrypt. Loggers of botocore at level DEBUG write whole requests and
    answers, with the keys inside: leave the level at INFO.

    Args:
        config: ``kms_instance_id`` is the region and ``kms_instance_url`` the endpoint; for ``"DEFAULT"`` boto3 decides.
            ``custom_kms_conf`` may have ``profile_name``.

    Raises:
        UnsupportedError: boto3 is not installed.
        SchemaError: an unknown option, or an option without a value.
    """

    def __init__(self, config: KmsConnectionConfig) -> None:
        try:
            boto3 = importlib.import_module("boto3")
            self._errors: Any = importlib.import_module("botocore.exceptions")
        except ImportError as error:
            raise UnsupportedError("AWS KMS needs the package boto3 (pip install boto3)") from error
        custom = client_options(config, "profile_name")
        region, url = config.kms_instance_id, config.kms_instance_url
        session = boto3.session.Session(profile_name=custom.get("profile_name"))
        self._client = session.client(
            "kms",
            region_name=None if region in ("", DEFAULT_KMS_INSTANCE_ID) else region,
            endpoint_url=None if url in ("", DEFAULT_KMS_INSTANCE_URL) else url,
        )

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Wrap a key (see KmsClient); the result is base64 of the service's ciphertext.

        Args:
            key_bytes: 16, 24 or 32 bytes.
            master_key_identifier: the master key; its newest version wraps.
        """
        answer = self._ask("encrypt", master_key_identifier, Plaintext=key_bytes)
        return base64.b64encode(answer["CiphertextBlob"]).decode()

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Unwrap a key (see KmsClient); the service refuses ciphertexts of other master keys.

        Args:
            wrapped_key: text returned by ``wrap_key``.
            master_key_identifier: the master key of the wrapping.
        """
        answer = self._ask("decrypt", master_key_identifier, CiphertextBlob=decode_base64(wrapped_key, "a wrapped key"))
        plain: bytes = answer["Plaintext"]
        return plain

    def _ask(self, operation: str, master_key_identifier: str, **arguments: bytes) -> Any:
        try:
            return getattr(self._client, operation)(KeyId=master_key_identifier, **arguments)
        except self._errors.ClientError as error:
            code = error.response.get("Error", {}).get("Code", "an error without a code")
            raise KeyAccessError(f"AWS KMS refused to {operation} with the key {master_key_identifier!r}: {code}") from error
        except self._errors.BotoCoreError as error:
            raise KeyAccessError(f"AWS KMS cannot be asked to {operation}: {type(error).__name__}") from error

    def __repr__(self) -> str:
        return f"<AwsKmsClient at {self._client.meta.endpoint_url}>"
