from typing import Self

from typing_extensions import Buffer

from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.evp import AesKey

class GcmModuleCipher(ModuleCipher):
    def __new__(
        cls,
        key: AesKey,
        file_aad: bytes,
        row_group: int = 0,
        column: int = 0,
        column_name: str | None = None,
        levels_in_clear: bool = False,
    ) -> Self: ...
    def sign(self, footer: Buffer) -> bytes: ...
    def verify_signature(self, footer: Buffer, signature: Buffer) -> None: ...
    def seal(self, module: int, page: int, plain: Buffer) -> bytes: ...
    def seal_body(self, module: int, page: int, plain: Buffer, levels_size: int) -> bytes: ...
