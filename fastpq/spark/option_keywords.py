"""Types for the keyword arguments of ``fastpq.spark.read`` and of the jobs, for ``**options: Unpack[...]``.

The classes are made from the tables of options. Type checkers and editors read the same classes in ``option_keywords.pyi``, which
``python -m tools.keywords`` writes. Names are Spark's, and values may be text. A name with a dot is passed as
``**{"kms.client": "keyring"}``. Case does not matter, nor do underscores in names without a dot.
"""

from __future__ import annotations

from typing import Any, TypedDict

from fastpq.spark.core import WriterProperties, spark_annotation
from fastpq.spark.options import NO_KEYWORDS, EncryptionOptions, ReadOptions, ServiceOptions, rows_by_spark_name

TABLES: dict[str, tuple[type[Any], ...]] = {
    "ServiceKeywords": (ServiceOptions,),
    "EncryptionKeywords": (EncryptionOptions, ServiceOptions),
    "ReadKeywords": (ReadOptions, ServiceOptions),
    "CompactionKeywords": (WriterProperties, EncryptionOptions, ServiceOptions),
}


def annotations_of(*tables: type[Any]) -> dict[str, str]:
    """Return the type of each keyword that some tables give, by name."""
    rows = rows_by_spark_name(*tables)
    return {name: spark_annotation(row) for name, row in rows.items() if name not in NO_KEYWORDS}


ServiceKeywords = TypedDict("ServiceKeywords", annotations_of(*TABLES["ServiceKeywords"]), total=False)
EncryptionKeywords = TypedDict("EncryptionKeywords", annotations_of(*TABLES["EncryptionKeywords"]), total=False)
ReadKeywords = TypedDict("ReadKeywords", annotations_of(*TABLES["ReadKeywords"]), total=False)
CompactionKeywords = TypedDict("CompactionKeywords", annotations_of(*TABLES["CompactionKeywords"]), total=False)
