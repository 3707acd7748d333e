"""The part of Google Cloud KMS's gRPC interface that wrapping keys needs, on a local port.

Requests and answers are the messages of Google's own package. A version's AES-GCM key seals, as the service documents it: the
ciphertext tells its version, and the additional authenticated data belong to it.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import google_crc32c
import grpc
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google.cloud.kms_v1.types import service

SERVICE = "google.cloud.kms.v1.KeyManagementService"
KEY_RING = "projects/team/locations/europe-west1/keyRings/parquet"


class GoogleServer:
    """A key ring.

    Attributes:
        keys: versions by resource name, from 1. None stands for a destroyed version.
        disabled_versions: resource names of versions.
        fault: changes an answer before it is sent, or None.
        refusal: status that each call gets, with a text, or None.
        requests: what each call asked for.
    """

    def __init__(self) -> None:
        self.keys: dict[str, list[bytes | None]] = {}
        self.disabled_versions: set[str] = set()
        self.fault: Any = None
        self.refusal: tuple[grpc.StatusCode, str] | None = None
        self.requests: list[Any] = []
        self._server = grpc.server(ThreadPoolExecutor(8))
        handlers = {
            "Encrypt": self._handler(self._encrypt, service.EncryptRequest, service.EncryptResponse),
            "Decrypt": self._handler(self._decrypt, service.DecryptRequest, service.DecryptResponse),
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def create_key(self, name: str) -> str:
        """Make a key, or another version, which is then the primary one. Return its resource name."""
        key = f"{KEY_RING}/cryptoKeys/{name}"
        self.keys.setdefault(key, []).append(os.urandom(32))
        return key

    def stop(self) -> None:
        self._server.stop(None).wait()

    def _handler(self, operate: Any, request: Any, response: Any) -> Any:
        def call(message: Any, context: Any) -> Any:
            self.requests.append(message)
            if self.refusal is not None:
                context.abort(*self.refusal)
            answer = operate(message, context)
            if self.fault is not None:
                self.fault(answer)
            return answer

        return grpc.unary_unary_rpc_method_handler(
            call, request_deserializer=request.deserialize, response_serializer=response.serialize
        )

    def _version(self, name: str, number: int, context: Any) -> bytes:
        if name not in self.keys or not 1 <= number <= len(self.keys[name]):
            context.abort(grpc.StatusCode.NOT_FOUND, f"CryptoKey {name} not found.")
        key = self.keys[name][number - 1]
        if key is None or f"{name}/cryptoKeyVersions/{number}" in self.disabled_versions:
            state = "DESTROYED" if key is None else "DISABLED"
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"{name}/cryptoKeyVersions/{number} is not enabled, {state}.")
        assert key is not None
        return key

    def _check(self, data: bytes, checksum: int | None, what: str, context: Any) -> None:
        if checksum is not None and google_crc32c.value(data) != checksum:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"The checksum of {what} is wrong.")

    def _encrypt(self, message: Any, context: Any) -> Any:
        number = len(self.keys.get(message.name, ()))
        key = self._version(message.name, number, context)
        self._check(message.plaintext, message.plaintext_crc32c, "plaintext", context)
        aad, nonce = message.additional_authenticated_data, os.urandom(12)
        if aad:
            self._check(aad, message.additional_authenticated_data_crc32c, "additional_authenticated_data", context)
        ciphertext = number.to_bytes(4, "big") + nonce + AESGCM(key).encrypt(nonce, message.plaintext, aad)
        return service.EncryptResponse(
            name=f"{message.name}/cryptoKeyVersions/{number}",
            ciphertext=ciphertext,
            ciphertext_crc32c=google_crc32c.value(ciphertext),
            verified_plaintext_crc32c=True,
            verified_additional_authenticated_data_crc32c=bool(aad),
        )

    def _decrypt(self, message: Any, context: Any) -> Any:
        ciphertext, aad = message.ciphertext, message.additional_authenticated_data
        self._check(ciphertext, message.ciphertext_crc32c, "ciphertext", context)
        key = self._version(message.name, int.from_bytes(ciphertext[:4], "big"), context)
        try:
            plain = AESGCM(key).decrypt(ciphertext[4:16], ciphertext[16:], aad)
        except InvalidTag:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Decryption failed: the ciphertext is invalid.")
        return service.DecryptResponse(plaintext=plain, plaintext_crc32c=google_crc32c.value(plain))
