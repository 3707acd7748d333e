"""Plugin of pytest: fastparquet writes with fastpq, and reads rows with it. Footers are still fastparquet's objects."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import fastparquet
import pandas as pd
from fastparquet import api, writer

import fastpq

CODECS = {"UNCOMPRESSED": None, "LZ4_RAW": "lz4"}


def codec(name: Any) -> Any:
    if isinstance(name, Mapping):
        return {column: codec(each) for column, each in name.items() if column != "_default"}
    return CODECS.get(name, name.lower()) if isinstance(name, str) else name


def refuse(options: Mapping[str, Any]) -> None:
    unknown = {name: value for name, value in options.items() if value not in (None, False, "infer", "int64", "utf8", True)}
    if unknown:
        raise NotImplementedError(f"the shim has no options {unknown}")


def write(filename: Any, data: pd.DataFrame, row_group_offsets: Any = None, compression: Any = None, file_scheme: str = "simple",
          open_with: Any = None, mkdirs: Any = None, has_nulls: Any = True, write_index: Any = None, partition_on: Any = (),
          append: Any = False, object_encoding: Any = "infer", times: str = "int64", fixed_text: Any = None,
          custom_metadata: Any = None, stats: Any = "auto", **options: Any) -> None:
    if file_scheme not in ("simple", "hive", "drill"):
        raise ValueError("File scheme should be simple|hive, not", file_scheme)
    if object_encoding not in ("infer", "utf8") or fixed_text or times != "int64" or open_with or file_scheme == "drill":
        raise NotImplementedError("the shim has no object_encoding, fixed_text, times and open_with")
    refuse(options)
    for name in data.columns if file_scheme == "simple" else ():
        if not isinstance(name, str):
            raise ValueError("Column names must be str")
    more: dict[str, Any] = {"compression": codec(compression), "index": None if write_index is None else bool(write_index)}
    if custom_metadata:
        more["key_value_metadata"] = custom_metadata
    if isinstance(stats, list) or stats in (True, False):
        more["write_statistics"] = stats
    if isinstance(row_group_offsets, int):
        more["row_group_size"] = row_group_offsets
    elif row_group_offsets is not None:
        more["row_group_size"] = max(len(data), 1)
    where = os.fspath(filename)
    if file_scheme == "simple":
        if append:
            raise NotImplementedError("a written file does not change")
        if isinstance(row_group_offsets, list | tuple):
            stops = [*row_group_offsets[1:], len(data)]
            with fastpq.ParquetWriter(where, **more) as out:
                for start, stop in zip(row_group_offsets, stops, strict=True):
                    out.write_table(data.iloc[start:stop])
            return
        fastpq.write_table(data, where, **more)
        return
    names = [partition_on] if isinstance(partition_on, str) else list(partition_on)
    behavior = {"overwrite": "delete_matching"}.get(append, "append" if append else "overwrite")
    fastpq.write_dataset(data, where, partition_by=names, write_metadata_file=True, max_rows_per_file=more.get("row_group_size"),
                         existing_data_behavior=behavior, **more)     # type: ignore[arg-type]


class ParquetFile(api.ParquetFile):     # type: ignore[misc]
    """fastparquet's file, whose rows fastpq reads."""

    _place: Any = None

    def __init__(self, fn: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(fn, *arguments, **options)
        self._place = fn

    def _where(self) -> Any:
        place = os.fspath(self._place) if isinstance(self._place, os.PathLike) else self._place
        if isinstance(place, str) and place.endswith("_metadata"):
            return os.path.dirname(place) or "."
        return place

    def to_pandas(self, columns: Any = None, categories: Any = None, filters: Any = (), index: Any = None,
                  row_filter: Any = False, dtypes: Any = None) -> pd.DataFrame:
        if row_filter is not False and not isinstance(row_filter, bool):
            raise NotImplementedError("the shim has no row_filter of booleans")
        frame = fastpq.read_pandas(self._where(), columns, filters=[*filters] or None)
        if index is False:
            frame = frame.reset_index() if frame.index.name or not isinstance(frame.index, pd.RangeIndex) else frame
        elif index is not None:
            frame = frame.set_index(index)
        for name in categories or ():
            frame[name] = frame[name].astype("category")
        return frame.astype(dtypes) if dtypes else frame

    def head(self, nrows: int, **options: Any) -> pd.DataFrame:
        return self.to_pandas(**options).head(nrows)

    def iter_row_groups(self, filters: Any = None, **options: Any) -> Iterator[pd.DataFrame]:
        place = self._where()
        if not isinstance(place, str) or not os.path.isfile(place):
            raise NotImplementedError("the shim iterates over the row groups of one file")
        for number in range(fastpq.read_metadata(place).num_row_groups):
            frame = fastpq.read_pandas(place, options.get("columns"), row_groups=[number], filters=filters or None)
            if len(frame):
                yield frame

    def count(self, filters: Any = None, row_filter: Any = False) -> int:
        place = self._where()
        is_dataset = not isinstance(place, str) or os.path.isdir(place)
        source = fastpq.ParquetDataset(place) if is_dataset else fastpq.ParquetFile(place)
        return source.count(filters or None)


fastparquet.write = writer.write = write
fastparquet.ParquetFile = api.ParquetFile = ParquetFile
