"""RetrievedKeys: the keys of one file from its key retriever, each asked for once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

from fastpq.encryption.evp import AesKey
from fastpq.encryption.properties import FileDecryptionProperties, KeyRetriever, as_key
from fastpq.errors import CryptoError

AT_ONCE = 16            # calls of a key service at the same time, for one file
FAR_SECONDS = 0.002     # least time of an answer of a distant key service; starting threads takes less


class RetrievedKeys:
    """The keys of one file by key metadata; safe to share between threads.

    Args:
        retriever: the key retriever.
        at_once: whether the retriever may be called by several threads at a time, as the retrievers of a CryptoFactory.
    """

    def __init__(self, retriever: KeyRetriever, *, at_once: bool) -> None:
        self._retriever = retriever
        self._keys: dict[bytes, AesKey | None] = {}
        self._asked: dict[bytes, Future[AesKey | None]] = {}
        self._guard = None if at_once else threading.RLock()
        self._guards: dict[bytes, threading.RLock] = {}
        self._slowest = 0.0     # seconds of the longest answer

    @classmethod
    def of(cls, properties: FileDecryptionProperties, footer_key_metadata: bytes | None) -> Self | None:
        """The keys of a file by its footer's key metadata; None without a key retriever."""
        retriever = properties.retriever_of(footer_key_metadata)
        return None if retriever is None else cls(retriever, at_once=retriever is not properties.key_retriever)

    def get(self, key_metadata: bytes) -> AesKey | None:
        """The key for key metadata, or None if the retriever has none.

        Raises:
            CryptoError: the retriever returned something else than a key.
            Exceptions of the retriever, which is asked again at the next call.
        """
        with self._guard or self._guards.setdefault(key_metadata, threading.RLock()):
            if key_metadata not in self._keys:
                asked = self._asked.pop(key_metadata, None)
                self._keys[key_metadata] = self._retrieve(key_metadata) if asked is None else asked.result()
            return self._keys[key_metadata]

    def ask(self, wanted: Iterable[bytes]) -> None:
        """Ask for several keys at once, if earlier answers took long; ``get`` then returns the keys, or raises the errors.

        Args:
            wanted: key metadata of the keys.
        """
        if self._guard is not None or self._slowest < FAR_SECONDS:
            return
        missing = {one for one in wanted if one not in self._keys and one not in self._asked}
        if len(missing) > 1:
            with ThreadPoolExecutor(min(len(missing), AT_ONCE), "fastpq-keys") as threads:
                self._asked.update({one: threads.submit(self._retrieve, one) for one in missing})

    def _retrieve(self, key_metadata: bytes) -> AesKey | None:
        began = time.monotonic()
        key = self._retriever(key_metadata)
        self._slowest = max(self._slowest, time.monotonic() - began)
        if key is None:
            return None
        if not isinstance(key, AesKey | bytes | bytearray | memoryview):
            raise CryptoError(f"the key retriever returned {type(key).__name__}, where a key is bytes")
        return as_key(key)
