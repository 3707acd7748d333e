"""Export and import of columns and tables through Arrow's C data and C stream interfaces. No Arrow library is needed.

Schemas, arrays and streams are exchanged as PyCapsules. ``ColumnType.arrow_format`` is the exported format of each column
type. Each flat format is imported as the type that ``fastpq.arrow.formats`` lists. No value is copied where the layouts agree:
NumPy arrays share a producer's memory and keep its array alive, and a consumer's arrays share the memory of NumPy arrays.

Import: capsules_in takes capsules, fields reads columns (flat_import reads flat ones), and importing makes tables. Export:
exporting chooses each format, and capsules_out makes capsules. hints stores a file's Arrow fields and restores them (ipc_schema
and flatbuffer do the encoding). restoring converts values back to Arrow types that Parquet does not have.
https://arrow.apache.org/docs/format/CDataInterface.html
"""

from typing import TYPE_CHECKING

from fastpq.common.lazy import lazy_names

if TYPE_CHECKING:
    from fastpq.arrow.canonical import GEOARROW_WKB, geospatial_metadata
    from fastpq.arrow.exporting import export_array, export_schema, export_stream
    from fastpq.arrow.importing import import_batches, import_column, import_table

__all__ = [
    "GEOARROW_WKB",
    "export_array",
    "export_schema",
    "export_stream",
    "geospatial_metadata",
    "import_batches",
    "import_column",
    "import_table",
]

# The names that each module defines. The module is imported when one of them is first used.
_NAMES_OF = {
    "fastpq.arrow.canonical": ("GEOARROW_WKB", "geospatial_metadata"),
    "fastpq.arrow.exporting": ("export_array", "export_schema", "export_stream"),
    "fastpq.arrow.importing": ("import_batches", "import_column", "import_table"),
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES_OF)
