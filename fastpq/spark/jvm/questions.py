"""Answer the questions that the JVM asks on the driver before it reads or writes. Questions and answers are JSON objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import types as st

from fastpq.spark.core import SPARK_ROW_METADATA, CryptoError, FormatError, ParquetError, run_parallel
from fastpq.spark.jvm.hadoop import Fetch, HadoopFile, is_local
from fastpq.spark.jvm.inferred_types import inferred_schema
from fastpq.spark.jvm.settings import extension_of, read_options_of, struct_of, write_options_of
from fastpq.spark.options import ReadOptions
from fastpq.spark.scan.file_scan import open_file
from fastpq.spark.sent import present_versions
from fastpq.spark.tables.row_metadata import refined
from fastpq.spark.tables.spark_types import spark_schema
from fastpq.spark.write.write_checks import check_encryption

FEW = 4         # up to this many files are opened one after the other, because starting threads takes longer
AT_ONCE = 16    # threads that open files
_SUMMARIES = ("_common_metadata", "_metadata")      # files without rows that have the schema of a folder


def answer(question: Mapping[str, Any], fetch: Fetch) -> dict[str, Any]:
    """Answer a question from the JVM.

    Args:
        question: ``ask`` (schema, check or write), ``options``, ``session``, and entries that depend on ``ask``.
        fetch: function for requests to the JVM, for files that are not local.

    Raises:
        ParquetError: for the same reasons as in the Python data source.
    """
    match question["ask"]:
        case "schema":
            return _schema(question, read_options_of(question), fetch)
        case "check":
            _check(read_options_of(question))
            return {"versions": present_versions()}
        case "write":
            return _write(question)
    raise ValueError(f"the question {question['ask']!r}: the jar and fastpq are of different versions")


def _check(options: ReadOptions) -> None:
    if options.service is not None:
        options.service.check()


class UnreadableFooter(Exception):
    """A file has no valid Parquet footer. The exception's cause is a FormatError that says why.

    Attributes:
        path: the file's path.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def _schema(question: Mapping[str, Any], options: ReadOptions, fetch: Fetch) -> dict[str, Any]:
    """Return the files' schemas as JSON, each only once. Spark merges them.

    If a file is unreadable, return its path and the problem instead.
    """
    _check(options)
    paths: list[str] = [path for path, _ in question["files"]]
    if _is_true(question, "mergeSchema", "spark.sql.parquet.mergeSchema"):
        has_summaries = str(question["session"].get("spark.sql.parquet.respectSummaryFiles")).lower() == "true"
        summaries = [path for path in paths if _name(path) in _SUMMARIES]
        schema_paths = summaries if has_summaries and summaries else [path for path in paths if _name(path) not in _SUMMARIES]
    else:
        schema_paths = _first_by_kind(paths)
    passes_over = _is_true(question, "ignoreCorruptFiles", "spark.sql.files.ignoreCorruptFiles")
    try:
        schemas = _schemas(schema_paths, options, fetch, passes_over, question["session"])
    except UnreadableFooter as error:
        return {"path": error.path, "problem": str(error.__cause__)}
    return {"schemas": list(dict.fromkeys(schema.json() for schema in schemas))}


def _first_by_kind(paths: Sequence[str]) -> list[str]:
    """Return a list with the one file whose schema is taken for all files. Without files, the list is empty.

    As in Spark's own Parquet source, a summary file is taken first.
    """
    for kind in _SUMMARIES:
        for path in paths:
            if _name(path) == kind:
                return [path]
    return list(paths[:1])


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _is_true(question: Mapping[str, Any], option: str, setting: str) -> bool:
    """Return whether an option is true. If the option is missing, the session's setting decides."""
    options = {name.lower(): text for name, text in question["options"].items()}
    return str(options.get(option.lower(), question["session"].get(setting))).lower() == "true"


def _schemas(
    paths: Sequence[str], options: ReadOptions, fetch: Fetch, passes_over_corrupt: bool, settings: Mapping[str, str | None]
) -> list[st.StructType]:
    def schema(path: str) -> st.StructType | None:
        where: Any = path if is_local(path) else HadoopFile(fetch, path)
        try:
            with open_file(where, options.service, name=path) as file:
                footer = file.metadata
            row_metadata = footer.key_value(SPARK_ROW_METADATA)
            if row_metadata is None:
                return inferred_schema(footer.schema, settings)
            return refined(spark_schema(footer.schema), row_metadata, has_months=True)
        except ParquetError as error:
            if passes_over_corrupt and not isinstance(error, CryptoError):
                return None
            if isinstance(error, FormatError):
                raise UnreadableFooter(path) from error
            raise error.at(path=path) from error.__cause__

    threads = 1 if len(paths) <= FEW or not all(map(is_local, paths)) else AT_ONCE
    return [file_schema for file_schema in run_parallel(schema, paths, threads) if file_schema is not None]


def _write(question: Mapping[str, Any]) -> dict[str, Any]:
    options = write_options_of(question)
    check_encryption(struct_of(question["schema"]), options)
    has_material_beside = options.encryption is not None and not options.encryption.options.get("internal_key_material", True)
    # only the name binds a file to its table
    has_unique_names = options.encryption is not None and options.service is not None and options.service.table_id is not None
    return {
        "extension": extension_of(options), "materialBesideFiles": has_material_beside, "uniqueNames": has_unique_names,
        "versions": present_versions(),
    }
