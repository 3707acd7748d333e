"""KeyChangeReport: what a job that changes the encryption of a dataset's files has done with each file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fastpq.arrays.table import Table
from fastpq.common.display import counted


@dataclass(frozen=True, slots=True)
class FileKeyChange:
    """What a job has done with one file.

    Attributes:
        path: the file.
        status: ``"changed"``, ``"unchanged"``, or in a dry run ``"planned"``.
        reason: what was changed, or why nothing was.
        size: the file's size in bytes before the job. None if unknown.
        left_out: broken indexes and metadata that are not in the new file, one sentence each.
    """

    path: str
    status: Literal["changed", "unchanged", "planned"]
    reason: str
    size: int | None = None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyChangeReport:
    """What ``encrypt_dataset``, ``decrypt_dataset``, ``rotate_dataset`` or ``revoke`` has done, or would do in a dry run.

    Attributes:
        files: the dataset's files, by path.
        is_resumed: whether an earlier job was interrupted, and this one has done the rest.
    """

    files: tuple[FileKeyChange, ...]
    is_resumed: bool = False

    @property
    def changed_files(self) -> tuple[str, ...]:
        """Paths of the files that were changed, or would be in a dry run."""
        return tuple(file.path for file in self.files if file.status != "unchanged")

    @property
    def unchanged_files(self) -> tuple[str, ...]:
        """Paths of the other files."""
        return tuple(file.path for file in self.files if file.status == "unchanged")

    def table(self) -> Table:
        """Return a Table with a row for each file."""
        columns = {
            "path": [file.path for file in self.files],
            "status": [file.status for file in self.files],
            "reason": [file.reason for file in self.files],
            "size": [-1 if file.size is None else file.size for file in self.files],
            "left_out": ["; ".join(file.left_out) for file in self.files],
        }
        return Table(columns, num_rows=len(self.files))

    def __str__(self) -> str:
        is_planned = any(file.status == "planned" for file in self.files)
        text = f"{counted(len(self.changed_files), 'file')} {'would be changed' if is_planned else 'changed'}"
        return f"{text}, {len(self.unchanged_files)} unchanged" + (", after an interrupted job" if self.is_resumed else "")
