"""Parse what the JVM sends with each question: options, settings of the session, schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import types as st

from fastpq.spark.options import ReadOptions, WriteOptions, plain_name, read_options, write_options

COMPRESSION = "compression"
_NO_PATH = {"path": "/"}        # Spark lists and commits files, so that no worker uses a path from the options


def read_options_of(question: Mapping[str, Any]) -> ReadOptions:
    """Return a question's read options. Raises the same errors as read_options."""
    return read_options({**question["options"], **_NO_PATH}, through_spark=True)


def write_options_of(question: Mapping[str, Any]) -> WriteOptions:
    """Return a question's write options. Raises the same errors as write_options.

    The codec is the one that Spark's own format found in the options or in the session, unless the options have a mapping.
    """
    options = dict(question["options"])
    for name in [name for name in options if plain_name(name) == COMPRESSION and not options[name].startswith("{")]:
        del options[name]
    if not any(plain_name(name) == COMPRESSION for name in options):
        options[COMPRESSION] = _codec(question["codec"])
    return write_options({**options, **_NO_PATH}, through_spark=True)


def _codec(name: str) -> str:
    """Return fastpq's name for one of parquet-java's codecs."""
    return {"LZ4": "lz4_hadoop"}.get(name, name.lower())


def extension_of(options: WriteOptions) -> str:
    """Return the end of the names of files, which has the codec as in Spark's own format."""
    codec = options.properties[COMPRESSION]
    ends = {"gzip": ".gz", "brotli": ".br", "lz4_hadoop": ".lz4hadoop", "lz4_raw": ".lz4raw", "uncompressed": ""}
    return f"{ends.get(codec, f'.{codec}')}.parquet" if isinstance(codec, str) else ".parquet"


def struct_of(text: str) -> st.StructType:
    """Return the schema for JSON from the JVM."""
    return st.StructType.fromJson(json.loads(text))
