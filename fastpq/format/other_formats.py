"""Recognition of other file formats by their first bytes, for the error about a file that is not a Parquet file."""

from __future__ import annotations

import re

# A file's first bytes, what the file is, and what reads it.
_MAGICS = (
    (b"ARROW1", "an Arrow IPC or Feather file, which pyarrow.feather.read_table or polars.read_ipc reads"),
    (b"\xff\xff\xff\xff", "an Arrow IPC stream, which pyarrow.ipc.open_stream or polars.read_ipc_stream reads"),
    (b"Obj\x01", "an Avro file, which polars.read_avro reads"),
    (b"SQLite format 3\0", "an SQLite database, which Python's module sqlite3 reads"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, which h5py or pandas.read_hdf reads"),
    (b"\x93NUMPY", "a NumPy array, which numpy.load reads"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook (.xls), which pandas.read_excel reads"),
    (b"\x1f\x8b", "a file compressed by gzip. Decompress it first: Parquet compresses the pages in a file, not the file"),
    (b"\xfd7zXZ\0", "a file compressed by xz. Decompress it first"),
    (b"\x28\xb5\x2f\xfd", "a file compressed by zstd. Decompress it first: Parquet compresses the pages in a file, not the file"),
    (b"\x04\x22\x4d\x18", "a file compressed by LZ4. Decompress it first"),
    (b"<?xml", "XML, which pandas.read_xml reads"),
    (b"%PDF-", "a PDF"),
    (b"version https://git-lfs", "a pointer file of Git LFS. Fetch the file itself with git lfs pull"),
)
# The same for formats whose first bytes are letters, with which a text may begin too.
_MAGICS_OF_LETTERS = (
    (b"FEA1", "a Feather file of version 1, which pyarrow.feather.read_table reads"),
    (b"ORC", "an ORC file, which pyarrow.orc.read_table reads"),
    (b"BZh", "a file compressed by bzip2. Decompress it first"),
)
_JSON = re.compile(r'\s*(\{\s*["}]|\[\s*([\[{"\]\d-]|(true|false|null)\b))')
_ZIP = b"PK\x03\x04"
_OFFICE = (b"[Content_Types].xml", b"docProps/", b"xl/", b"_rels/")     # how the first name in an Office document begins
_SEPARATORS = ",;\t|"


def looks_like(head: bytes) -> str:
    """Return what a file that is not Parquet looks like, in words that continue "it looks like". Empty if nothing is recognized.

    Args:
        head: the file's first bytes, a few hundred.
    """
    text = _text(head)
    for magic, name in _MAGICS if text is not None else _MAGICS + _MAGICS_OF_LETTERS:
        if head.startswith(magic):
            return name
    if head.startswith(_ZIP):
        if any(head[30:].startswith(name) for name in _OFFICE):
            return "an Excel workbook or another Office document. pandas.read_excel or polars.read_excel reads workbooks"
        if b".npy" in head[:128]:
            return "a NumPy archive (.npz), which numpy.load reads"
        return "a ZIP archive. Extract its files first"
    return "" if text is None else _text_format(text)


def _text(head: bytes) -> str | None:
    """Return the first bytes as text if they are UTF-8. None for other bytes."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:     # the error is not just that the last character is cut off
            return None
        text = head[: error.start].decode()
    return None if any(character < " " and character not in "\t\r\n" for character in text) else text


def _text_format(text: str) -> str:
    """Return what a text looks like by its first lines: JSON or CSV. Empty for other text."""
    if _JSON.match(text):
        return "JSON, which pandas.read_json reads (with lines=True if each line is an object), or polars.read_json"
    lines = text.splitlines()
    if len(lines) > 1 and any(lines[0].count(mark) and lines[0].count(mark) == lines[1].count(mark) for mark in _SEPARATORS):
        return "CSV, which pandas.read_csv or polars.read_csv reads"
    return ""
