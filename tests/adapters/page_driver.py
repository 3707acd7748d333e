"""Runs all examples of a page, those of large engines too: ``python -m tests.adapters.page_driver PAGE FOLDER``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tests.test_docs import blocks, run

if __name__ == "__main__":
    page = Path(sys.argv[1])
    os.chdir(sys.argv[2])
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.words in ({"python"}, {"python", "engines"}):
            run(page, block, namespace)
