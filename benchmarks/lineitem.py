"""TPC-H lineitem as Parquet written by parquet-rs: input of the demo and the benchmarks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def lineitem(scale: float, folder: Path, table: str = "lineitem") -> Path:
    """Path of lineitem.parquet, or of another table, at a scale factor; a missing file is made by tpchgen-cli (PyPI).

    Args:
        scale: TPC-H scale factor; 1 is 6 million rows.
        folder: folder for one subfolder of each scale.
        table: a table of TPC-H.

    Returns:
        A Snappy-compressed file of REQUIRED columns, 16 of lineitem.
    """
    target = folder / f"{table}-{scale:g}.parquet"
    if target.exists():
        return target
    generator = Path(sys.executable).with_name("tpchgen-cli")
    made = folder / f"making-{table}-{scale:g}"
    made.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [generator, "parquet", "-s", f"{scale:g}", f"--tables={table}", f"--output-dir={made}", "--quiet"],
        check=True,
    )
    (made / f"{table}.parquet").replace(target)
    shutil.rmtree(made)
    return target
