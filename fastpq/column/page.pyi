from typing import Any

from fastpq.compression import Codec
from fastpq.encryption.cipher import ModuleCipher
from fastpq.properties import ReaderProperties

class PageReader:
    def __init__(
        self,
        chunk: Any,
        cipher: ModuleCipher,
        codec: Codec,
        max_definition_level: int,
        max_repetition_level: int,
        retain_values: bool,
        expect_dictionary: bool,
        properties: ReaderProperties,
        directory: Any = None,
    ) -> None: ...
    def require_values(self, count: int) -> None: ...
    def count_values(self) -> int: ...
