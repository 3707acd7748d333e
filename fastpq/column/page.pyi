from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.allowance import Allowance
from fastpq.codecs.codec import Codec
from fastpq.column.page_walker import PageWalker
from fastpq.encryption.cipher import ModuleCipher
from fastpq.options import ReaderProperties

class PageReader(PageWalker):
    @property
    def retained(self) -> NDArray[np.uint8] | None: ...
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
        allowance: Allowance,
        counts_chunk: bool,
        directory: Any = None,
        v2_is_compressed: bool = False,
    ) -> None: ...
