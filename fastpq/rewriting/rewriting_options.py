"""RewritingOptions: the options that are common to all functions that make one file from another."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from fastpq.common.progress import Progress
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.options import ReaderProperties, option, options_of, unknown_option_error


@dataclass(frozen=True, slots=True)
class RewritingOptions:
    """Options for functions that make one file from another."""

    encryption_properties: FileEncryptionProperties | None = option(
        None, "Keys for the new file. None gives an encrypted file its own keys again, under a new identifier."
    )
    decryption_properties: FileDecryptionProperties | None = option(None, "Keys for an encrypted source.")
    properties: ReaderProperties | None = option(None, "Limits and checks for reading.")
    keep_metadata: Collection[str] = option(
        (), "Keys of key-value entries that are copied unchanged, even if they hold values that are to be hidden or deleted."
    )
    progress: Progress | None = option(
        None,
        "Called as ``progress(done, total)`` after each row group, in rows. The last call is ``(total, total)``. An exception "
        "from progress leaves the target unchanged.",
    )
    filesystem: Any = option(None, "Filesystem for all paths, from fsspec or pyarrow.fs. None finds one by the URL.")
    storage_options: Mapping[str, Any] | None = option(
        None, "Options for the URLs' fsspec filesystem, as in pandas and Polars."
    )
    timeout: float | None = option(
        None, "An HTTP or S3 URL fails after this many seconds without a byte from the server."
    )

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> RewritingOptions:
        """Return checked options.

        Raises:
            TypeError: an option is unknown, or ``keep_metadata`` is one name.
        """
        if not options.keys() <= options_of(cls).keys():
            raise unknown_option_error(options, cls, writes=True)
        keep_metadata = options.get("keep_metadata", ())
        if isinstance(keep_metadata, str):
            raise TypeError(f"keep_metadata must be a list of names, not the name {keep_metadata!r}")
        return cls(**{**options, "keep_metadata": frozenset(keep_metadata)})

    @property
    def reading(self) -> ReaderProperties:
        """Limits and checks for reading. They are the default ones if the caller chose none."""
        return self.properties or ReaderProperties()


class RewritingKeywords(TypedDict, total=False):
    """The options as keyword arguments, for type checkers and editors."""

    encryption_properties: FileEncryptionProperties | None
    decryption_properties: FileDecryptionProperties | None
    properties: ReaderProperties | None
    keep_metadata: Collection[str]
    progress: Progress | None
    filesystem: Any
    storage_options: Mapping[str, Any] | None
    timeout: float | None
