"""Functions that rewrite files without decoding their values: encrypt, decrypt, change keys, merge.

files has the functions. chunk_copy copies each column chunk, and page_copy copies its pages. redaction removes values from an
encrypted file's key-value metadata, and report names the parts that were left out. similar_file has the options for a
file that is written anew from decoded values.
"""

from typing import TYPE_CHECKING

from fastpq.common.lazy import lazy_names

if TYPE_CHECKING:
    from fastpq.rewriting.files import durations_of
    from fastpq.rewriting.redaction import SPARK_ROW_METADATA, entries_for_footer
    from fastpq.rewriting.similar_file import options_like

__all__ = [
    "SPARK_ROW_METADATA",
    "durations_of",
    "entries_for_footer",
    "options_like",
]

# The names that each module defines. The module is imported when one of them is first used.
_NAMES_OF = {
    "fastpq.rewriting.files": ("durations_of",),
    "fastpq.rewriting.redaction": ("SPARK_ROW_METADATA", "entries_for_footer"),
    "fastpq.rewriting.similar_file": ("options_like",),
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES_OF)
