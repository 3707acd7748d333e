"""TPC-H lineitem as Parquet written by parquet-rs: input of the demo and the benchmarks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def lineitem(scale: float, folder: Path) -> Path:
    """Path of lineitem.parquet at a scale factor; a missing file is made by tpchgen-cli (PyPI).

    Args:
        scale: TPC-H scale factor; 1 is 6 million rows.
        folder: folder for one subfolder of each scale.

    Returns:
        A Snappy-compressed file of 16 REQUIRED columns.
    """
    target = folder / f"lineitem-{scale:g}.parquet"
    if target.exists():
        return target
    generator = Path(sys.executable).with_name("tpchgen-cli")
    made = folder / f"making-{scale:g}"
    made.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [generator, "parquet", "-s", f"{scale:g}", "--tables=lineitem", f"--output-dir={made}", "--quiet"],
        check=True,
    )
    (made / "lineitem.parquet").replace(target)
    shutil.rmtree(made)
    return target
