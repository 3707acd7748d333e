from typing import Any

from fastpq.codecs.streams import Buffer, Compress, DecompressInto

class Codec:
    number: int
    name: str
    most_expansion: tuple[int, int]
    def __init__(self, number: int, name: str, most_expansion: tuple[int, int], *options: Any) -> None: ...
    def compress(self, data: Buffer) -> Buffer: ...
    def decompress_into(self, source: Buffer, target: Buffer) -> None: ...

class LibraryCodec(Codec):
    def __init__(self, number: int, name: str, most_expansion: tuple[int, int], level: int) -> None: ...

class PackageCodec(Codec):
    def __init__(
        self, number: int, name: str, most_expansion: tuple[int, int], compress: Compress, decompress_into: DecompressInto
    ) -> None: ...
