"""The VARIANT logical type: encoding and decoding of values and columns (VariantEncoding.md), shredding of columns into typed
columns, and reassembly of shredded columns (VariantShredding.md).
"""

from fastpq.schema.variant_kinds import MAX_DEPTH, Kind, Primitive
from fastpq.variant.inference import infer_schema
from fastpq.variant.shredded import Shredded, ShreddedArray, ShreddedObject
from fastpq.variant.value import Variant
from fastpq.variant.variant_column import VariantColumn

__all__ = [
    "MAX_DEPTH",
    "Kind",
    "Primitive",
    "Shredded",
    "ShreddedArray",
    "ShreddedObject",
    "Variant",
    "VariantColumn",
    "infer_schema",
]
