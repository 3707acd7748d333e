"""Variants to JSON and back."""

from __future__ import annotations

import decimal
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpq.errors import LimitError, SchemaError
from fastpq.variant import MAX_DEPTH, Kind, Primitive, Variant, VariantColumn
from tests.variant.strategies import texts

documents = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**38) + 1, 10**38 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        texts,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=15,
)


@settings(max_examples=300)
@given(documents)
def test_documents_come_back(document: Any) -> None:
    """Through Python's own json, which writes the shortest float and escapes other than ours."""
    variant = Variant.from_json(json.dumps(document))
    variant.check()
    assert json.loads(variant.to_json()) == document
    assert Variant.from_json(variant.to_json()) == variant


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", Primitive(Kind.INT8, 1)),
        ("-0", Primitive(Kind.INT8, 0)),
        ("9223372036854775808", Primitive(Kind.DECIMAL16, decimal.Decimal(1 << 63))),
        ("1" + "0" * 38, Primitive(Kind.DOUBLE, 1e38)),
        ("1.5", Primitive(Kind.DECIMAL4, decimal.Decimal("1.5"))),
        ("1.50", Primitive(Kind.DECIMAL4, decimal.Decimal("1.50"))),
        ("-0.0000000001", Primitive(Kind.DECIMAL8, decimal.Decimal("-0.0000000001"))),
        ("1.5e0", Primitive(Kind.DOUBLE, 1.5)),
        ("1E300", Primitive(Kind.DOUBLE, 1e300)),
        ("0." + "1" * 39, Primitive(Kind.DOUBLE, 1 / 9)),
        ('"\\ud83d\\udc22\\n"', Primitive(Kind.STRING, "🐢\n")),
    ],
)
def test_numbers_and_text_of_json(text: str, expected: Primitive) -> None:
    assert Variant.from_json(text).to_python(typed=True) == expected


@pytest.mark.parametrize(
    "text",
    ["", "{", "nul", "NaN", "[Infinity]", "-Infinity", "1e999", '{"a": 1, "a": 2}', '"\\ud800"', "01", "[1,]", "1" * 400],
)
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(SchemaError):
        Variant.from_json(text)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100_000])
def test_json_that_is_too_deep(depth: int) -> None:
    with pytest.raises(LimitError, match=r"MAX_DEPTH|nested too deep"):
        Variant.from_json("[" * depth + "]" * depth)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, '"NaN"'), (math.inf, '"Infinity"'), (-math.inf, '"-Infinity"'), (1.0, "1.0"), (-0.0, "-0.0"),
        (1e300, "1e+300"),
        (decimal.Decimal("1.50"), "1.50"), (decimal.Decimal("1e-20"), "0.00000000000000000001"), (b"\x00\xff", '"AP8="'),
        (Primitive(Kind.TIMESTAMP, -1), '"1969-12-31 23:59:59.999999+00:00"'),
        (Primitive(Kind.TIMESTAMP_NTZ, 1_000_000), '"1970-01-01 00:00:01"'),
        (Primitive(Kind.TIMESTAMP_NANOS, -1), '"1969-12-31 23:59:59.999999999+00:00"'),
        (Primitive(Kind.TIMESTAMP_NTZ_NANOS, 10), '"1970-01-01 00:00:00.00000001"'),
        (Primitive(Kind.TIME, 86_399_999_999), '"23:59:59.999999"'), (Primitive(Kind.TIME, 0), '"00:00:00"'),
        (Primitive(Kind.DATE, -719_528), '"0000-01-01"'), (Primitive(Kind.DATE, 1 << 30), '"2941775-04-07"'),
        ("\"\\/\b\f\n\r\t\x00\x1f\x7fé🐢", '"\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7fé🐢"'), ({"é\n": []}, '{"é\\n":[]}'),
    ],
)
def test_json_of_values(value: Any, text: str) -> None:
    variant = Variant.from_python(value)
    assert variant.to_json() == text
    assert VariantColumn.from_pylist([value]).to_json() == [text]


@settings(max_examples=300)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_are_short_and_exact(value: float) -> None:
    text = Variant.from_python(Primitive(Kind.FLOAT, value)).to_json()
    assert np.float32(text) == np.float32(value)
    assert len(text.replace("e+0", "e").replace("e-0", "e-")) <= len(np.format_float_scientific(np.float32(value))) + 8
