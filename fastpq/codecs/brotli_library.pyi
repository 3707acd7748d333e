from fastpq.codecs.codec import Codec

class BrotliLibrary(Codec):
    def __init__(self, number: int, name: str, most_expansion: tuple[int, int], level: int) -> None: ...
