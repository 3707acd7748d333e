"""TPC-H lineitem as Parquet written by parquet-rs: what the demo and the benchmarks read."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def lineitem(scale: float, folder: Path) -> Path:
    """The path of lineitem.parquet at a scale factor, made by tpchgen-cli (PyPI) if it is not there.

    Args:
        scale: TPC-H scale factor; 1 is 6 million rows.
        folder: where a folder for each scale is kept.

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
