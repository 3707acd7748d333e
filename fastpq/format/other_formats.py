"""Names of other kinds of files by their first bytes, for the error of a file that is no Parquet file."""

from __future__ import annotations

# First bytes of a file, and what the file is, with a way to read it.
_MAGICS = (
    (b"ARROW1", "an Arrow IPC or Feather file, read by pyarrow.feather.read_table or polars.read_ipc"),
    (b"FEA1", "a Feather file of version 1, read by pyarrow.feather.read_table"),
    (b"\xff\xff\xff\xff", "a stream of Arrow IPC, read by pyarrow.ipc.open_stream or polars.read_ipc_stream"),
    (b"ORC", "an ORC file, read by pyarrow.orc.read_table"),
    (b"Obj\x01", "an Avro file, read by polars.read_avro"),
    (b"SQLite format 3\0", "a database of SQLite, read by sqlite3"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, read by h5py or pandas.read_hdf"),
    (b"\x93NUMPY", "an array of NumPy, read by numpy.load"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook of the old kind, read by pandas.read_excel"),
    (b"\x1f\x8b", "a file compressed by gzip: decompress it first, as Parquet compresses pages inside of a file"),
    (b"BZh", "a file compressed by bzip2: decompress it first"),
    (b"\xfd7zXZ\0", "a file compressed by xz: decompress it first"),
    (b"\x28\xb5\x2f\xfd", "a file compressed by zstd: decompress it first, as Parquet compresses pages inside of a file"),
    (b"\x04\x22\x4d\x18", "a file compressed by LZ4: decompress it first"),
    (b"<?xml", "XML, read by pandas.read_xml"),
    (b"%PDF-", "a PDF"),
)
_ZIP = b"PK\x03\x04"
_OFFICE = (b"[Content_Types].xml", b"docProps/", b"xl/", b"_rels/")     # names of the first file of an Office document
_SEPARATORS = ",;\t|"


def looks_like(head: bytes) -> str:
    """What a file is that is no Parquet file, as the object of a sentence; an empty text where the bytes do not tell.

    Args:
        head: first bytes of the file, some hundred.
    """
    for magic, name in _MAGICS:
        if head.startswith(magic):
            return name
    if head.startswith(_ZIP):
        if any(head[30:].startswith(name) for name in _OFFICE):
            return "an Excel workbook or another document of Office, read by pandas.read_excel or polars.read_excel"
        return "an archive of arrays, read by numpy.load" if b".npy" in head[:128] else "a ZIP archive: extract its files first"
    return _text_format(head)


def _text_format(head: bytes) -> str:
    """JSON and CSV, by the first lines."""
    try:
        text = head.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:     # more than a character cut off
            return ""
        text = head[: error.start].decode(errors="replace")
    if any(character < " " and character not in "\t\r\n" for character in text):
        return ""
    start = text.lstrip()[:1]
    if start and start in "{[":
        return "JSON, read by pandas.read_json or polars.read_json (lines=True, or read_ndjson, for an object a line)"
    lines = text.splitlines()
    if len(lines) > 1 and any(lines[0].count(mark) and lines[0].count(mark) == lines[1].count(mark) for mark in _SEPARATORS):
        return "CSV, read by pandas.read_csv or polars.read_csv"
    return ""
