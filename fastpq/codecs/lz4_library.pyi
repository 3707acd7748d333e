from fastpq.codecs.codec import Codec

class Lz4RawLibrary(Codec):
    def __init__(self, number: int, name: str, most_expansion: tuple[int, int], level: int) -> None: ...

class Lz4HadoopLibrary(Codec):
    def __init__(self, number: int, name: str, most_expansion: tuple[int, int], level: int) -> None: ...
