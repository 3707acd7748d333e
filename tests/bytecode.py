"""Bytecode of the tests' processes is kept, also where the environment says that none is kept (PYTHONDONTWRITEBYTECODE).

Without bytecode each of many processes would compile the modules of the tests, and each of hundreds of Spark's workers those of
PySpark, pyarrow and pandas. Importing this module is enough for the importing process.
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "build" / "bytecode"
IS_KEPT = not sys.dont_write_bytecode       # by the environment's own wish
if not IS_KEPT:
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(FOLDER)
