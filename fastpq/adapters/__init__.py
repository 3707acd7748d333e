"""Other engines that read Parquet files with fastpq: Polars, DataFusion, DuckDB, Dask, Ray Data, Daft and Hugging Face datasets.

Each module needs one engine's package, and is imported on first use. Columns and filters of a query reach the files, encrypted
ones too. Keys never enter a plan, its text, or a task: processes of an engine get keys by the name of a function (task_keys).
"""

from typing import TYPE_CHECKING

from fastpq.common.lazy import lazy_names

if TYPE_CHECKING:
    from fastpq.adapters.daft_source import read_daft
    from fastpq.adapters.dask_frame import read_dask
    from fastpq.adapters.datafusion_dataset import arrow_dataset
    from fastpq.adapters.hugging_face import read_hugging_face
    from fastpq.adapters.polars_scan import scan_polars
    from fastpq.adapters.ray_source import read_ray

__all__ = ["arrow_dataset", "read_daft", "read_dask", "read_hugging_face", "read_ray", "scan_polars"]

# The names that each module defines. The module is imported when one of them is first used.
_NAMES_OF = {
    "fastpq.adapters.daft_source": ("read_daft",),
    "fastpq.adapters.dask_frame": ("read_dask",),
    "fastpq.adapters.datafusion_dataset": ("arrow_dataset",),
    "fastpq.adapters.hugging_face": ("read_hugging_face",),
    "fastpq.adapters.polars_scan": ("scan_polars",),
    "fastpq.adapters.ray_source": ("read_ray",),
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES_OF)
