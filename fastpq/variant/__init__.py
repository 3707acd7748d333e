"""The logical type VARIANT: encoding and decoding (VariantEncoding.md), and shredding into typed columns (VariantShredding.md).

value and variant_column have the public classes. wire checks encoded variants. decode, encode, json_input and json_output convert
them. shredding_schema defines shredding schemas, inference proposes one, and shredding_choice applies one to each column that is
written. shredding splits values into column trees (shredded), and reassembly joins them again. storage converts these trees to
and from the struct columns that files use.
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
