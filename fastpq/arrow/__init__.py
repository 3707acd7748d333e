"""The Arrow C data interface and C stream interface, in and out, through PyCapsules; no Arrow library is needed.

Each column type is exported in the format that ``ColumnType.arrow_format`` names, and each flat format is imported
as the type that ``fastpq.arrow.formats`` lists. Where the layouts agree, no value is copied: NumPy arrays stand over a
producer's memory and keep it alive, and a consumer's arrays stand over NumPy's.
https://arrow.apache.org/docs/format/CDataInterface.html
"""

from typing import TYPE_CHECKING

from fastpq.common.lazy import lazy_names

if TYPE_CHECKING:
    from fastpq.arrow.exporting import export_array, export_schema, export_stream
    from fastpq.arrow.importing import import_column, import_table

__all__ = ["export_array", "export_schema", "export_stream", "import_column", "import_table"]

# The module of each public name, imported when the name is first used.
_MODULE_OF = {
    "export_array": "fastpq.arrow.exporting",
    "export_schema": "fastpq.arrow.exporting",
    "export_stream": "fastpq.arrow.exporting",
    "import_column": "fastpq.arrow.importing",
    "import_table": "fastpq.arrow.importing",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
