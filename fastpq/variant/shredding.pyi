from fastpq.arrays.slices import SliceReader
from fastpq.variant.shredded import Shredded
from fastpq.variant.shredding_schema import ShreddingSchema

def shred(metadata: SliceReader, value: SliceReader, schema: ShreddingSchema) -> Shredded: ...
