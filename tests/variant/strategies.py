"""Random variants, as trees of Primitives, dicts and lists."""

from __future__ import annotations

import decimal
from typing import Any

from hypothesis import strategies as st

from fastpq.variant import Kind, Primitive
from tests.variant.reference import Shape

INTEGER_BITS = {
    Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64, Kind.DATE: 32, Kind.TIMESTAMP: 64, Kind.TIMESTAMP_NTZ: 64,
    Kind.TIMESTAMP_NANOS: 64, Kind.TIMESTAMP_NTZ_NANOS: 64,
}
DIGITS = {Kind.DECIMAL4: 9, Kind.DECIMAL8: 18, Kind.DECIMAL16: 38}


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def decimals(kind: Kind) -> st.SearchStrategy[Primitive]:
    most = DIGITS[kind]
    return st.builds(
        lambda unscaled, scale: Primitive(kind, decimal.Decimal(unscaled).scaleb(-scale, decimal.Context(prec=60))),
        st.integers(-(10**most) + 1, 10**most - 1),
        st.integers(0, most),
    )


texts = st.text(st.characters(codec="utf-8"), max_size=80)
primitives: st.SearchStrategy[Primitive] = st.one_of(
    st.sampled_from([Primitive(Kind.NULL, None), Primitive(Kind.TRUE, True), Primitive(Kind.FALSE, False)]),
    *(st.builds(Primitive, st.just(kind), integers(bits)) for kind, bits in INTEGER_BITS.items()),
    *(decimals(kind) for kind in DIGITS),
    st.builds(Primitive, st.just(Kind.TIME), st.integers(0, 86_400_000_000 - 1)),
    st.builds(Primitive, st.just(Kind.DOUBLE), st.floats(allow_nan=False)),
    st.builds(Primitive, st.just(Kind.FLOAT), st.floats(width=32, allow_nan=False)),
    st.builds(Primitive, st.just(Kind.BINARY), st.binary(max_size=80)),
    st.builds(Primitive, st.just(Kind.STRING), texts),
    st.builds(Primitive, st.just(Kind.UUID), st.uuids()),
)
names = st.one_of(st.sampled_from("abcdefg"), st.text(st.characters(codec="utf-8"), max_size=5))
trees: st.SearchStrategy[Any] = st.recursive(
    primitives,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(names, inner, max_size=5)),
    max_leaves=20,
)
shapes = st.builds(Shape, st.integers(0, 3), st.booleans(), st.booleans(), st.booleans())
