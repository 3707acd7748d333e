"""A file with PLAIN pages before pages with dictionary indexes in one chunk, as fastpq wrote them once."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from fastpq import format as fmt
from tests.narrowing import present
from tests.verify.page_forging import PageForgery

ROWS = 6000
TEXTS = [f"text {row % 50}" if row < 4000 else f"another text {row}" for row in range(ROWS)]


def file_with_late_indexes() -> bytes:
    """Return a file with two columns. The first pages of ``text`` are PLAIN, and the others have indexes. ``id`` is in order."""
    target = io.BytesIO()
    table = pa.table({"id": range(ROWS), "text": TEXTS})
    options = {"use_dictionary": ["text"], "dictionary_pagesize_limit": 4000, "data_page_size": 4000, "write_batch_size": 200}
    pq.write_table(table, target, compression="none", write_statistics=False, **options)
    forgery = PageForgery(target.getvalue())
    dictionary, *pages = forgery.chunks[1]
    coded = [page for page in pages if present(page.header.data_page_header).encoding != fmt.Encoding.PLAIN]
    plain = [page for page in pages if page not in coded]
    assert coded
    assert plain
    forgery.chunks[1] = [dictionary, *plain, *coded]
    return forgery.written()


def file_in_order() -> bytes:
    """Return a file whose pages with indexes come first, as most writers make it."""
    target = io.BytesIO()
    pq.write_table(pa.table({"text": TEXTS}), target, dictionary_pagesize_limit=4000, data_page_size=4000, write_batch_size=200)
    return target.getvalue()
