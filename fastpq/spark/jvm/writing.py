"""Both sides of a write by the JVM: the writer of the Python source checks, names the job, writes tasks and commits."""

from __future__ import annotations

import base64
import os
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import types as st

from fastpq.errors import SchemaError
from fastpq.spark.jvm.gathered import gathered_schema
from fastpq.spark.listing import local_path, store_of
from fastpq.spark.options import plain_name, write_options
from fastpq.spark.stores import StoreWriter
from fastpq.spark.types import reader_schema
from fastpq.spark.writer import Writer

MODE = "partitionOverwriteMode"
MODE_SETTING = "spark.sql.sources.partitionOverwriteMode"


def begun(question: Mapping[str, Any], schema: st.StructType) -> dict[str, Any]:
    """Check a write, and name its job: the answer has the pickled writer.

    Args:
        question: ``options``, ``session``, ``folders`` (columns of partitionBy), ``overwrite`` and ``dynamic``.
        schema: columns of the rows.

    Raises:
        ParquetError: as the Python source does.
    """
    given, folders = dict(question["options"]), tuple(question["folders"])
    if question.get("dynamic"):
        given = {name: value for name, value in given.items() if plain_name(name) != MODE.lower()} | {MODE: "dynamic"}
    elif MODE.lower() not in map(plain_name, given):
        given[MODE] = (question["session"].get(MODE_SETTING) or "static").lower()
    options = write_options(given)
    if folders and options.partition_by and options.partition_by != folders:
        raise SchemaError(f"the option partitionBy, and partitionBy({', '.join(folders)}) of the writer: give one")
    if folders:
        options = replace(options, partition_by=folders)
    kind = Writer if store_of(options.path) is None else StoreWriter
    return {"writer": base64.b64encode(pickle.dumps(kind(schema, options, bool(question["overwrite"])))).decode()}


def target(question: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the path of a write exists, a folder without files too; ``options`` as of the write."""
    path = write_options(question["options"]).path
    place = store_of(path)
    if place is None:
        return {"exists": os.path.lexists(local_path(path)), "path": path}
    place.filesystem.invalidate_cache()
    return {"exists": bool(place.filesystem.exists(place.path)), "path": path}


def ended(question: Mapping[str, Any]) -> dict[str, Any]:
    """Commit or abort a job: ``ask`` says which; ``writer`` and ``messages`` are pickled."""
    writer: Writer | StoreWriter = pickle.loads(base64.b64decode(question["writer"]))
    messages = [pickle.loads(base64.b64decode(message)) for message in question["messages"]]
    if question["ask"] == "commit":
        writer.commit(messages)
    else:
        writer.abort(messages)
    return {}


@lru_cache(4)       # writers of the jobs at work, each for many tasks
def _writer_of(pickled: bytes) -> Writer | StoreWriter:
    writer: Writer | StoreWriter = pickle.loads(pickled)
    return writer


class TaskOfRows:
    """A task on an executor.

    Args:
        pickled: the writer of ``begun``.
        number: number of the task.
        attempt: number of the attempt.

    Attributes:
        schema: Arrow schema of the batches.
    """

    def __init__(self, pickled: bytes, number: int, attempt: int) -> None:
        self._writer, self._number, self._attempt = _writer_of(pickled), number, attempt
        self.schema: pa.Schema = gathered_schema(reader_schema(self._writer.schema))

    def write(self, batches: Iterator[pa.RecordBatch]) -> dict[str, Any]:
        """Write all batches; the answer has the pickled commit message."""
        written = self._writer.write_rows(batches, self._number, self._attempt)
        return {"message": base64.b64encode(pickle.dumps(written)).decode()}
