"""Types for the keyword arguments that readers and writers take, for ``**options: Unpack[...]``.

The classes are made from the option tables when something asks for type hints. Type checkers and editors read the same classes
in ``keywords.pyi``, which ``python -m tools.keywords`` writes.
"""

from __future__ import annotations

from typing import TypedDict, get_type_hints

from fastpq.api.reader_options import OpeningOptions
from fastpq.options import WriterProperties, options_of

_READER, _WRITER = get_type_hints(OpeningOptions), get_type_hints(WriterProperties)
_DATASET = [name for name, row in options_of(OpeningOptions).items() if row.level == "dataset"]

ReaderOptions = TypedDict("ReaderOptions", _READER, total=False)
DatasetReaderOptions = TypedDict("DatasetReaderOptions", {name: _READER[name] for name in _DATASET}, total=False)
WriterOptions = TypedDict("WriterOptions", _WRITER, total=False)
