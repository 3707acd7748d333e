"""Executor side of a write from the JVM: write the rows of one file at the path that Spark's commit protocol chose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from fastpq.spark.jvm.gathered import gathered_schema
from fastpq.spark.jvm.hadoop import HadoopOutput, Store, is_local
from fastpq.spark.jvm.memory_types import memory_schema
from fastpq.spark.jvm.settings import struct_of, write_options_of
from fastpq.spark.scan.calendars import VERSION
from fastpq.spark.sent import require_versions
from fastpq.spark.tables.spark_types import stored_schema
from fastpq.spark.write.part_files import NewFiles, stored_table


@lru_cache(8)       # of the running jobs, each used by many tasks
def _files_of(text: bytes) -> NewFiles:
    question = json.loads(text)
    require_versions(**question["versions"])
    schema, options = struct_of(question["schema"]), write_options_of(question)
    version = {VERSION: question["version"]}      # Spark takes the calendar of old dates from it
    metadata = {**version, **options.properties.get("key_value_metadata", {})}
    properties = {**options.properties, "key_value_metadata": metadata, "durable": False}       # Spark's committer moves the file
    options = replace(options, properties=properties)
    return NewFiles(schema, options, stored_schema(memory_schema(schema)))


class FileTask:
    """Writes one file.

    Args:
        plan: the job's plan, as JSON (FastpqFileFormat.java).
        path: the file's path or URL.
        store: function that sends bytes to the JVM, for a file that is not local.

    Attributes:
        schema: Arrow schema of the batches.
    """

    def __init__(self, plan: bytes, path: bytes, store: Store) -> None:
        self._files = _files_of(plan)
        self._path = path.decode()
        self._store = store
        self.schema: pa.Schema = gathered_schema(memory_schema(self._files.schema))

    def write(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Write all batches, and complete the file. A file without rows has a schema too."""
        where: Any = self._path if is_local(self._path) else HadoopOutput(self._store, self._path)
        file = self._files.open(where, self._path if is_local(self._path) else None, self._path)
        try:
            is_empty = True
            for batch in batches:
                is_empty = False
                file.add(stored_table(pa.Table.from_batches([batch]), self._files.arrow))
            if is_empty:
                file.add(self._files.arrow.empty_table())
            file.close()
        except BaseException:
            file.writer.abort()
            raise
