"""advise_file: what would make one file smaller, faster to read or safer, for one use."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import Any

from fastpq.advice.advice_report import Advice, AdviceReport, OnMissingKey, Use
from fastpq.advice.cautions import cautions_on
from fastpq.advice.gpu_rules import GpuAdvisor
from fastpq.advice.lookups import LookupAdvisor
from fastpq.advice.present_settings import FileStructure, structure_of
from fastpq.advice.stored_bytes import SLOW_CODECS, STORED_USES, StoredByteAdvisor, StoredUse
from fastpq.advice.trials import MOST_ROWS, RowSample
from fastpq.advice.writing_settings import FileSettings
from fastpq.api.encryption_inspection import FileProtection, inspect_encryption
from fastpq.api.file import ParquetFile
from fastpq.codecs.catalogue import codec_for_read
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import KeyAccessError
from fastpq.options import ReaderProperties
from fastpq.read.missing_keys import locked_leaves, refuse_filters
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.verify.page_order import late_indexes

MISREAD_UNIT = "column chunks"


def advise_file(
    where: Any,
    use: Use,
    *,
    key: str | None = None,
    sample_rows: int = MOST_ROWS,
    properties: ReaderProperties | None = None,
    decryption_properties: FileDecryptionProperties | None = None,
    on_missing_key: OnMissingKey = "raise",
    other_codecs: frozenset[int] = frozenset(),
) -> AdviceReport:
    """Return advice on one file. Arguments and errors are those of ``advise``.

    Args:
        other_codecs: codecs that are tried too, because other files in the dataset have them.
    """
    protection = _protection_of(where, properties)
    where = BytesIO(where) if isinstance(where, bytes | bytearray | memoryview) else where      # reads of bytes are not counted
    with ParquetFile(where, properties=properties, decryption_properties=decryption_properties) as file:
        opening_bytes = file.io.bytes_read
        unread_columns = [] if on_missing_key == "raise" else _unread_columns(file)
        if key is not None:
            leaf = file.schema.column(key)
            refuse_filters([leaf] if leaf in unread_columns else [])
        with file._errors():
            structure = structure_of(file, {column.index for column in unread_columns})
        sample = RowSample(file, structure, sample_rows)
        advice: list[Advice] = []
        structure = sample.structure
        settings: FileSettings = structure.settings
        if sample.num_rows:
            advisor: Any
            if use == "lookup":
                advisor = LookupAdvisor(file, sample, key, opening_bytes)
                key = advisor.key
            elif use == "gpu":
                advisor = GpuAdvisor(sample)
            else:
                advisor = StoredByteAdvisor(sample, _with_codecs(STORED_USES[use], other_codecs))
            advice = advisor.advice()
            settings = advisor.settings
        recipe = settings.options() if advice else {}
        if misread := _misread_pages(file, structure):
            recipe = {**settings.options(), "data_page_version": "2.0" if settings.is_version_2 else "1.0"}
            advice = [replace(misread, recipe=recipe), *advice]
        if unread_columns:      # a recipe would write these columns with default options
            advice, recipe = [replace(each, recipe={}) for each in advice], {}
        return AdviceReport(
            path=structure.path,
            use=use,
            size=file._source.size,
            num_rows=int(structure.facts.rows.sum()),
            sample_rows=sample.num_rows,
            advice=tuple(advice),
            cautions=tuple(cautions_on(file, sample.table, protection)),
            recipe=recipe,
            key=key if use == "lookup" else None,
            is_measured=use != "gpu",
            unread_columns=tuple(column.name for column in unread_columns),
        )


def _unread_columns(file: ParquetFile) -> list[ColumnDescriptor]:
    """Return all leaves in top-level columns that have a leaf without a key.

    Raises:
        KeyAccessError: there is a key for none of the columns.
    """
    columns = file.schema.columns
    locked_numbers = locked_leaves(file.metadata, columns, range(file.metadata.num_row_groups))
    locked_tops = {column.top for column in columns if column.index in locked_numbers}
    unread_columns = [column for column in columns if column.top in locked_tops]
    if unread_columns and len(unread_columns) == len(columns):
        raise KeyAccessError.denied("there is no key for any column that could be looked at")
    return unread_columns


def _misread_pages(file: ParquetFile, structure: FileStructure) -> Advice | None:
    """Return the advice to write pages again that Spark misreads, without a recipe. None if there are no such pages."""
    counts = late_indexes(file._source, file.metadata, file._file.properties, structure.leaves)
    if not counts:
        return None
    text = (
        "Pages with values stand before pages with dictionary indexes. The format allows it, but Spark reads other values "
        "without an error, or fails. Write the file again."
    )
    columns = tuple(structure.names[structure.leaves.index(leaf)] for leaf in counts)
    return Advice("pages", text, columns, MISREAD_UNIT, counts.total(), 0, None, {})


def _with_codecs(use: StoredUse, codecs: frozenset[int]) -> StoredUse:
    """Return a use that also tries some codecs: a column that has one of them is tried with the other fast ones."""
    names = sorted(codec_for_read(codec).name for codec in codecs)
    quick = [name for name in names if name not in ("uncompressed", *SLOW_CODECS)]
    tried = {name: (*use.codecs.get(name, ()), *((other, None) for other in quick if other != name)) for name in names}
    return use._replace(codecs={**use.codecs, **{name: tuple(dict.fromkeys(codecs)) for name, codecs in tried.items()}})


def _protection_of(where: Any, properties: ReaderProperties | None) -> FileProtection | None:
    """Return what a file says about its encryption."""
    return next(iter(inspect_encryption(where, properties=properties).files), None)
