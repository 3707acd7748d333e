"""The VARIANT logical type: encoding and decoding of values and columns (VariantEncoding.md), shredding of columns into typed
columns, and reassembly of shredded columns (VariantShredding.md).

value and variant_column are the public classes. wire checks encoded variants; decode, encode, json_input and json_output convert
them. inference proposes a shredding_schema, shredding splits values into the trees of shredded, reassembly joins them again, and
storage converts trees to and from the struct columns of files.
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
