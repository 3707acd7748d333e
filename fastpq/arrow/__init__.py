"""Export and import of columns and tables through the Arrow C data and C stream interfaces; no Arrow library is needed.

Schemas, arrays and streams are exchanged as PyCapsules. Each column type is exported in the format of
``ColumnType.arrow_format``, and each flat format is imported as the type listed in ``fastpq.arrow.formats``. Where the layouts
agree, no value is copied: NumPy arrays share a producer's memory and keep the producer's array alive, and a consumer's arrays
share the memory of NumPy arrays.

Import: capsules_in takes capsules, fields reads columns (flat_import the flat ones), importing makes tables. Export: exporting
chooses each format, capsules_out makes capsules. hints stores and restores Arrow fields of a file (ipc_schema, flatbuffer), and
restoring converts values back to Arrow types without a Parquet type.
https://arrow.apache.org/docs/format/CDataInterface.html
"""

from typing import TYPE_CHECKING

from fastpq.common.lazy import lazy_names

if TYPE_CHECKING:
    from fastpq.arrow.exporting import export_array, export_schema, export_stream
    from fastpq.arrow.importing import import_batches, import_column, import_table

__all__ = ["export_array", "export_schema", "export_stream", "import_batches", "import_column", "import_table"]

# The module of each public name, imported at the first use of the name.
_MODULE_OF = {
    "export_array": "fastpq.arrow.exporting",
    "export_schema": "fastpq.arrow.exporting",
    "export_stream": "fastpq.arrow.exporting",
    "import_batches": "fastpq.arrow.importing",
    "import_column": "fastpq.arrow.importing",
    "import_table": "fastpq.arrow.importing",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
