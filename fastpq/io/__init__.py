"""Sources, from which bytes are read, and sinks, to which bytes are written.

``location`` finds out which local file or remote object a path or URL names.

``source_opening`` opens it for reading. ``source`` reads memory and local files, ``file_object`` reads the caller's file objects,
and ``remote_source`` reads files on fsspec filesystems. ``source`` uses ``origin`` to copy bytes that others may change.
``remote_source`` sends its requests with ``range_requests``, ``store_ranges`` and ``obstore_requests``, and repeats them with
``retrying``.

``sink_opening`` opens it for writing. ``sink`` writes local files with ``new_file``, and writes to file objects. ``multipart``
writes to object stores. The requests to the stores are in ``object_store``, ``s3``, ``azure`` and ``google``.
"""

from typing import TYPE_CHECKING

from fastpq.common.lazy import lazy_names

if TYPE_CHECKING:
    from fastpq.io.location import Remote, is_container, locate
    from fastpq.io.multipart import PendingSink
    from fastpq.io.new_file import make_directories, sync_folder
    from fastpq.io.object_store import Upload, find_store, store_at, url_of
    from fastpq.io.sink import FileSink

__all__ = [
    "FileSink",
    "PendingSink",
    "Remote",
    "Upload",
    "find_store",
    "is_container",
    "locate",
    "make_directories",
    "store_at",
    "sync_folder",
    "url_of",
]

# The names that each module defines. The module is imported when one of them is first used.
_NAMES_OF = {
    "fastpq.io.location": ("Remote", "is_container", "locate"),
    "fastpq.io.multipart": ("PendingSink",),
    "fastpq.io.new_file": ("make_directories", "sync_folder"),
    "fastpq.io.object_store": ("Upload", "find_store", "store_at", "url_of"),
    "fastpq.io.sink": ("FileSink",),
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES_OF)
