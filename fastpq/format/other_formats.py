"""Names of other kinds of files by their first bytes, for the error of a file that is no Parquet file."""

from __future__ import annotations

import re

# First bytes of a file, and what the file is, with a way to read it.
_MAGICS = (
    (b"ARROW1", "an Arrow IPC or Feather file, read by pyarrow.feather.read_table or polars.read_ipc"),
    (b"\xff\xff\xff\xff", "a stream of Arrow IPC, read by pyarrow.ipc.open_stream or polars.read_ipc_stream"),
    (b"Obj\x01", "an Avro file, read by polars.read_avro"),
    (b"SQLite format 3\0", "a database of SQLite, read by sqlite3"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, read by h5py or pandas.read_hdf"),
    (b"\x93NUMPY", "an array of NumPy, read by numpy.load"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook of the old kind, read by pandas.read_excel"),
    (b"\x1f\x8b", "a file compressed by gzip: decompress it first, as Parquet compresses pages inside of a file"),
    (b"\xfd7zXZ\0", "a file compressed by xz: decompress it first"),
    (b"\x28\xb5\x2f\xfd", "a file compressed by zstd: decompress it first, as Parquet compresses pages inside of a file"),
    (b"\x04\x22\x4d\x18", "a file compressed by LZ4: decompress it first"),
    (b"<?xml", "XML, read by pandas.read_xml"),
    (b"%PDF-", "a PDF"),
)
# Likewise, where text may begin with these bytes.
_MAGICS_OF_LETTERS = (
    (b"FEA1", "a Feather file of version 1, read by pyarrow.feather.read_table"),
    (b"ORC", "an ORC file, read by pyarrow.orc.read_table"),
    (b"BZh", "a file compressed by bzip2: decompress it first"),
)
_JSON = re.compile(r'\s*(\{\s*["}]|\[\s*([\[{"\]\d-]|(true|false|null)\b))')
_ZIP = b"PK\x03\x04"
_OFFICE = (b"[Content_Types].xml", b"docProps/", b"xl/", b"_rels/")     # names of the first file of an Office document
_SEPARATORS = ",;\t|"


def looks_like(head: bytes) -> str:
    """What a file is that is no Parquet file, as the object of a sentence; an empty text where the bytes do not tell.

    Args:
        head: first bytes of the file, some hundred.
    """
    text = _text(head)
    for magic, name in _MAGICS if text is not None else _MAGICS + _MAGICS_OF_LETTERS:
        if head.startswith(magic):
            return name
    if head.startswith(_ZIP):
        if any(head[30:].startswith(name) for name in _OFFICE):
            return "an Excel workbook or another document of Office, read by pandas.read_excel or polars.read_excel"
        return "an archive of arrays, read by numpy.load" if b".npy" in head[:128] else "a ZIP archive: extract its files first"
    return "" if text is None else _text_format(text)


def _text(head: bytes) -> str | None:
    """The first bytes as text in UTF-8; None for other bytes."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:     # more than a character cut off
            return None
        text = head[: error.start].decode()
    return None if any(character < " " and character not in "\t\r\n" for character in text) else text


def _text_format(text: str) -> str:
    """JSON and CSV, by the first lines."""
    if _JSON.match(text):
        return "JSON, read by pandas.read_json or polars.read_json (lines=True, or read_ndjson, for an object a line)"
    lines = text.splitlines()
    if len(lines) > 1 and any(lines[0].count(mark) and lines[0].count(mark) == lines[1].count(mark) for mark in _SEPARATORS):
        return "CSV, read by pandas.read_csv or polars.read_csv"
    return ""
