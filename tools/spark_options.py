"""Write the tables of options in docs/pages/spark.md, from the tables in fastpq.spark.options.

python -m tools.spark_options            write the page
python -m tools.spark_options --check    fail if the page differs from the tables
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from fastpq.options import Option
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.options import CLIENT_OPTION, EncryptionOptions, ReadOptions, WriteOptions, rows_by_spark_name

PAGE = Path(__file__).resolve().parent.parent / "docs" / "pages" / "spark.md"
BEGIN, END = "<!-- options of {}: written by python -m tools.spark_options -->", "<!-- end of options -->"
TABLES: dict[str, tuple[type[Any], ...]] = {
    "keys": (ServiceOptions, EncryptionOptions), "reads": (ReadOptions,), "writes": (WriteOptions,),
}
INTERNAL = ("filters",)         # options that fastpq.spark.read sets
PROPERTIES = "| fields of [`WriterProperties`](api/options.md) | | `compression`, `rowGroupSize`, `sortBy` ... |"


def page(text: str) -> str:
    """Return the page with new tables."""
    for name in TABLES:
        begin = BEGIN.format(name)
        if begin not in text:
            raise ValueError(f"{PAGE} has no line {begin!r}")
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{table(name)}\n{END}{rest.partition(END)[2]}"
    return text


def table(name: str) -> str:
    """Return one of the tables, in Markdown."""
    rows = {key: row for key, row in rows_by_spark_name(*TABLES[name]).items() if key not in INTERNAL}
    lines = ["| Option | Default | Meaning |", "| --- | --- | --- |"]
    lines += [f"| `{key}` | {default(row)} | {row.text.replace('``', '`')} |" for key, row in rows.items()]
    if name == "keys":
        lines.append(f"| `{CLIENT_OPTION[0]}` | | {CLIENT_OPTION[1].replace('NAME', '`NAME`')} |")
    if name == "writes":
        lines.append(PROPERTIES)
    return "\n".join(lines)


def default(row: Option) -> str:
    """Return the default value and its unit as Spark's user writes them. The text of a row says what a missing option means."""
    if not row.has_default:
        return ""
    value, unit = row.default, row.unit
    if isinstance(value, bool | str):
        return f"`{str(value).lower() if isinstance(value, bool) else value}`"
    if unit == "bytes" and value % (1 << 20) == 0:
        return f"{value >> 20} MiB"
    return re.sub(r"\.0$", "", f"{value:,}") + (f" {unit}" if unit else "")


def main() -> int:
    """Write or check the page. Return 1 if it is stale."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    old_text = PAGE.read_text()
    new_text = page(old_text)
    if not parser.parse_args().check:
        PAGE.write_text(new_text)
    elif old_text != new_text:
        print(f"{PAGE} is stale: python -m tools.spark_options writes it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
