"""Cautions: what makes a file unsafe. Nothing here is a matter of bytes, so a person has to decide."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from fastpq.advice.advice_report import Caution, names_of
from fastpq.api.encryption_inspection import FileProtection
from fastpq.api.file import ParquetFile

SAMPLED_VALUES = 200        # of a text column
MOST_MATCHING = 0.6         # share of the values that must look like personal data

# Words in names of columns that hold personal data, as whole words.
_WORDS = frozenset([
    "email", "mail", "phone", "telephone", "mobile", "fax", "ssn", "passport", "iban", "birthday", "birthdate", "dob", "surname",
    "lastname", "firstname", "fullname", "address", "street", "patient", "diagnosis", "salary", "nationality", "gender",
    "religion", "ethnicity",
])
_PAIRS = (
    "first name", "last name", "full name", "given name", "family name", "date of birth", "birth date", "social security",
    "credit card", "card number", "tax id", "national id", "health insurance", "ip address", "home address",
)
# Forms of values. They must match as a whole.
_FORMS = (
    ("e-mail addresses", re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")),
    ("telephone numbers", re.compile(r"\+\d[\d ()/-]{7,17}\d")),
    ("IBANs", re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}")),
    ("social security numbers", re.compile(r"\d{3}-\d{2}-\d{4}")),
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def cautions_on(file: ParquetFile, table: Any, protection: FileProtection | None) -> Iterator[Caution]:
    """Yield what makes a file unsafe.

    Args:
        file: the file.
        table: some of its rows.
        protection: what the file says about its encryption, or None if nobody could ask.
    """
    clear = [column.name for column in file.schema.columns if not _is_encrypted(file, column.index)]
    personal: dict[str, list[str]] = {}
    for name in clear:
        reason = reason_for(name, table)
        if reason is not None:
            personal.setdefault(reason, []).append(name)
    for reason, names in personal.items():
        text = f"{names_of(tuple(names))} can be read without a key: {reason}. fastpq encrypt writes columns under keys."
        yield Caution("personal data", text, tuple(names))
    if protection is not None and protection.algorithm is not None:
        yield from _encryption_cautions(protection)


def reason_for(name: str, table: Any) -> str | None:
    """Return why a column looks like personal data, or None.

    Args:
        name: dotted path of the column.
        table: some rows. Values of flat text columns are looked at, and are not shown.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    text = " ".join(words)
    if _WORDS & {*words} or any(f" {pair} " in f" {text} " for pair in _PAIRS):
        return "the name looks like personal data"
    if "." in name or name not in table:
        return None
    column = table[name].slice(0, SAMPLED_VALUES) if hasattr(table[name], "slice") else table[name][:SAMPLED_VALUES]
    values = [value for value in column.to_pylist() if isinstance(value, str) and value]
    for what, form in _FORMS:
        if values and np.mean([form.fullmatch(value) is not None for value in values]) > MOST_MATCHING:
            return f"the values look like {what}"
    return None


def _is_encrypted(file: ParquetFile, index: int) -> bool:
    return file.metadata.num_row_groups > 0 and file.metadata.row_group(0).column(index).is_encrypted


def _encryption_cautions(protection: FileProtection) -> Iterator[Caution]:
    if protection.algorithm == "AES_GCM_CTR_V1":
        yield Caution("algorithm", "AES_GCM_CTR_V1 does not authenticate pages, so that altered values may go unnoticed. "
            "fastpq encrypt --algorithm AES_GCM_V1 authenticates them.")
    if protection.aad_prefix is None and not protection.needs_aad_prefix:
        yield Caution("AAD prefix", "There is no AAD prefix, so that one file can be put in the place of another with the same "
            "keys. fastpq encrypt --new-aad-prefix names the file.")
