"""A stream's writer for object stores. Each commit record has the batch number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from fastpq.spark.core import records
from fastpq.spark.options import WriteOptions
from fastpq.spark.streams.file_streams import CheckedStream
from fastpq.spark.versions import DataSourceStreamArrowWriter
from fastpq.spark.write.store_writer import StoreTask, check_material, give_up, replaced, require_store, uploads_of
from fastpq.spark.write.write_task import present_task, write_task


class StoreStreamWriter(CheckedStream, DataSourceStreamArrowWriter):
    """Writes a stream to an object store. Each commit record has the batch number."""

    def __init__(self, schema: st.StructType, options: WriteOptions, overwrite: bool) -> None:
        super().__init__(schema, options, overwrite)
        check_material(options.encryption)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ds.WriterCommitMessage:
        return write_task(iterator, StoreTask(self.schema, self.options, self.options.path, self.job, *present_task()))

    def commit(self, messages: Sequence[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        place, uploads = require_store(self.options.path), uploads_of(messages)
        choose_old_files = replaced(place, uploads, self.options, self.overwrite)
        records.commit_uploads(place, self._job(batchId), uploads, choose_old_files, (self.stream, batchId))
        records.clean_up(place, self.options.orphan_seconds)

    def abort(self, messages: Sequence[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        give_up(require_store(self.options.path), self._job(batchId), messages)

    def _job(self, batch: int) -> str:
        return f"{self.stream}-{batch}-{self.job}"
