"""CommonMetadata: pandas metadata from a dataset's ``_common_metadata`` file, for data files that have none."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from fastpq.api.file import ParquetFile
from fastpq.api.pickling import place_elsewhere
from fastpq.convert.pandas_metadata import ATTRIBUTES_KEY, PANDAS_KEY
from fastpq.errors import ParquetError
from fastpq.io.location import RemotePath

_log = logging.getLogger("fastpq.datasets")


class CommonMetadata:
    """Pandas metadata in a directory's ``_common_metadata`` file, read on first use. A broken file is logged and ignored.

    Args:
        where: the file, or None if the directory has none.
        options: reader options.
    """

    def __init__(self, where: str | RemotePath | None, options: Mapping[str, Any]) -> None:
        self._where = where
        self._options = options

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_where": None if self._where is None else place_elsewhere(self._where)}

    @cached_property
    def _texts(self) -> dict[str, str]:
        try:
            with ParquetFile(self._where, **self._options) as file:
                texts = {key: file.metadata.key_value(key) for key in (PANDAS_KEY, ATTRIBUTES_KEY)}
        except (ParquetError, OSError) as error:
            _log.info("_common_metadata of a dataset is ignored: %s", error)
            return {}
        return {key: text for key, text in texts.items() if text is not None}

    def added_to(self, metadata: Mapping[str, str]) -> Mapping[str, str]:
        """Return a data file's metadata. If it has no pandas metadata, that of the directory is added.

        Args:
            metadata: the data file's texts, by key.
        """
        if self._where is None or PANDAS_KEY in metadata or not self._texts:
            return metadata
        return {**metadata, **self._texts}
