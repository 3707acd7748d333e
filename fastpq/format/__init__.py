"""The structs of parquet.thrift, and their decoder and encoder for the Thrift compact protocol.

``parquet`` and ``enums`` declare the structs, with base classes from ``struct``. ``compact`` decodes and encodes them.
``list_offsets`` finds the structs in a list, so that they are decoded on demand. ``page_header`` and ``plain_chunk`` read page
headers and column chunks in C. ``stored_footer`` finds the footer in a file.
"""

from fastpq.format.compact import SPAN as SPAN
from fastpq.format.compact import decode as decode
from fastpq.format.compact import decode_list as decode_list
from fastpq.format.compact import decode_listed as decode_listed
from fastpq.format.compact import decode_partly as decode_partly
from fastpq.format.compact import encode as encode
from fastpq.format.enums import *  # noqa: F403 - all enums
from fastpq.format.list_offsets import MISSING as MISSING
from fastpq.format.list_offsets import StructList as StructList
from fastpq.format.parquet import *  # noqa: F403 - all structs and unions
from fastpq.format.struct import Struct as Struct
from fastpq.format.struct import Union as Union
