"""Recipes with steps. Each step is a verb with options, for one file or for a dataset. ``replay`` makes them.

A recipe is a JSON object. Either it has options for WriterProperties, which is one ``rewrite`` step, or it has ``steps``:

    {"steps": [{"verb": "rewrite", "options": {"compression": "zstd"}}, {"verb": "compact"}]}

A step may have ``files``, paths relative to the dataset's folder. Without them it is for all files.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastpq.advice.writing_settings import sorting_columns_of, writer_options_of
from fastpq.api.file import ParquetFile
from fastpq.api.functions import read_metadata
from fastpq.api.writer import ParquetWriter
from fastpq.common.progress import Meter, Progress
from fastpq.datasets.consolidation import check_kind, consolidate, joined_kind
from fastpq.datasets.discovery import find_files, list_dataset
from fastpq.datasets.metadata_writing import settle_metadata
from fastpq.datasets.small_files import compact
from fastpq.datasets.staged_files import StageFolder, exchange_folders
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.io.location import locate
from fastpq.io.new_file import new_token, temporary_path
from fastpq.io.sink_opening import open_sink
from fastpq.io.source_opening import open_source
from fastpq.rewriting.adding_indexes import add_indexes
from fastpq.rewriting.evolving import evolve_file
from fastpq.rewriting.rechunking import rechunk_file
from fastpq.rewriting.recompressing import recompress_file
from fastpq.rewriting.sorting_rows import sort_file
from fastpq.rewriting.splitting import split_file

BATCH_ROWS = 1 << 20
COPIED_BYTES = 8 << 20      # of a file without steps, at once
NO_SMALL_GROUPS = 0         # as least_bytes, it lets consolidate copy each row group
# Options in WriterProperties that may be given by column.
COLUMN_OPTIONS = ("compression", "compression_level", "column_encoding", "use_dictionary", "write_statistics", "bloom_filter")


@dataclass(frozen=True, slots=True)
class RecipeStep:
    """One step.

    Attributes:
        verb: a verb that the command has.
        options: arguments for its function. For ``sort`` the columns are ``by``.
        files: paths relative to the dataset's folder. Empty for all files.
    """

    verb: str
    options: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the step as a recipe has it."""
        members: dict[str, Any] = {"verb": self.verb}
        if self.options:
            members["options"] = dict(self.options)
        if self.files:
            members["files"] = list(self.files)
        return members


def recipe_of(steps: Sequence[RecipeStep]) -> dict[str, Any]:
    """Return steps as a recipe. Without steps it is empty."""
    return {"steps": [step.as_json() for step in steps]} if steps else {}


def has_steps(recipe: Mapping[str, Any]) -> bool:
    """Return whether a recipe has steps, and not only options."""
    return "steps" in recipe


def steps_of(recipe: Mapping[str, Any]) -> list[RecipeStep]:
    """Return the steps that a recipe has.

    Raises:
        ValueError: a step has an unknown verb or an unknown member.
    """
    if not has_steps(recipe):
        return [RecipeStep("rewrite", dict(recipe))] if recipe else []
    if unknown := recipe.keys() - {"steps"}:
        raise ValueError(f"a recipe with steps has no {', '.join(sorted(unknown))}: options belong to a step")
    members = recipe["steps"]
    if not isinstance(members, list) or not all(isinstance(member, Mapping) for member in members):
        raise ValueError("the steps of a recipe are a list of objects")
    return [_step(member) for member in members]


def _step(member: Mapping[str, Any]) -> RecipeStep:
    verbs = (*_VERBS, "compact")
    if member.get("verb") not in verbs:
        raise ValueError(f"a step has the verb {member.get('verb')!r}: the verbs of steps are {', '.join(verbs)}")
    if unknown := member.keys() - {"verb", "options", "files"}:
        raise ValueError(f"the step {member['verb']!r} has no {', '.join(sorted(unknown))}: its members are options and files")
    options, files = member.get("options", {}), member.get("files", [])
    if not isinstance(options, Mapping) or not isinstance(files, list):
        raise ValueError(f"the step {member['verb']!r} needs an object as options, and a list as files")
    return RecipeStep(member["verb"], options, tuple(files))


def replay(source: Any, target: Any, recipe: Mapping[str, Any], *, progress: Progress | None = None) -> None:
    """Make all steps in a recipe, on one file or on a local dataset.

    The result appears whole or not at all. If the target is the dataset's own folder, the old and the new folder are exchanged in
    one step. Otherwise the target must not exist.

    Args:
        source: a file's path, or a dataset's folder.
        target: path for the new file, or for the new folder.
        recipe: options for WriterProperties, or steps.
        progress: called as ``progress(done, total)`` after each step. The last call is ``(total, total)``.

    Raises:
        ValueError: a step has an unknown verb, or options that its function does not take. Or the target is inside the source.
        FileExistsError: the target is another folder that exists.
        SchemaError: a step names a file that is not there, or ``sort`` is for a folder whose files have different schemas.
        UnsupportedError: a file is encrypted, and a step would write it anew without its keys. Or the target is the source, and a
            file in it is a symbolic link.
    """
    steps = steps_of(recipe)
    meter = Meter(progress, len(steps))
    if not isinstance(source, str | os.PathLike) or not os.path.isdir(source):
        _replay_on_file(source, target, steps, meter)
        return
    place = locate(target)
    if not isinstance(place, str):
        raise UnsupportedError("the steps of a recipe make a local folder of a folder")
    source, target = os.path.realpath(source), os.path.realpath(place)
    if source == target:
        _replay_in_place(source, steps, meter)
        return
    if os.path.commonpath([source, target]) == source:
        raise ValueError("the new folder would be inside the old one: give a target outside of it")
    if os.path.lexists(target):
        raise FileExistsError(17, "the folder for the new dataset exists already", target)
    stage = temporary_path(target, new_token())
    try:
        shutil.copytree(source, stage)
        make_steps(stage, steps, meter)
        os.rename(stage, target)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise


def _replay_in_place(folder: str, steps: Sequence[RecipeStep], meter: Meter) -> None:
    """Make the steps on links to the files, and exchange the two folders. Steps replace files, so that the old ones stay.

    Raises:
        UnsupportedError: a file is a symbolic link. A step would replace the file to which it leads.
    """
    listing = list_dataset(folder)
    for file in (*listing.files, listing.metadata, listing.common_metadata):
        if file is not None and os.path.islink(file.path):
            message = "a file is a symbolic link, and steps in place would change what it leads to: write to a new folder"
            raise UnsupportedError(message, path=file.path)
    stage = StageFolder(folder, is_whole=True)
    try:
        os.rmdir(stage.new)
        shutil.copytree(folder, stage.new, symlinks=True, copy_function=os.link)
        make_steps(stage.new, steps, meter)
        exchange_folders(stage.new, folder)
    finally:
        stage.remove()


def make_steps(folder: str, steps: Sequence[RecipeStep], meter: Meter | None = None) -> None:
    """Make steps on the files in a folder, one after another. After an error some steps are done.

    Args:
        folder: the folder.
        steps: the steps.
        meter: counts the steps, or None.
    """
    for step in steps:
        paths = _paths(folder, step.files)
        if step.verb == "compact":
            compact(folder, **writer_options_of(step.options))
        elif step.verb == "sort":
            _sort_dataset(paths, step.options)
        else:
            for path in paths:
                _VERBS[step.verb](path, path, _options_for(path, step))
        if meter is not None:
            meter.add(1)
    settle_metadata(folder, None)


def _paths(folder: str, names: Sequence[str]) -> list[str]:
    """Return the paths that a step names, or all paths below the folder."""
    paths = [file.path for file in find_files(folder)]
    if not names:
        return paths
    by_name = {os.path.relpath(path, folder).replace(os.sep, "/"): path for path in paths}
    if missing := [name for name in names if name not in by_name]:
        raise SchemaError(f"a step of the recipe names {missing[0]!r}, which is not a file of the dataset", path=folder)
    return [by_name[name] for name in names]


def _replay_on_file(source: Any, target: Any, steps: Sequence[RecipeStep], meter: Meter) -> None:
    """Make the steps on one file. Each but the last makes a temporary file."""
    import tempfile

    if not steps:
        _copy(source, target)
        return
    if any(step.verb == "compact" for step in steps):
        raise UnsupportedError("the step 'compact' joins the files of a folder, and the source is one file")
    with tempfile.TemporaryDirectory() as folder:
        for number, step in enumerate(steps, 1):
            place = target if number == len(steps) else os.path.join(folder, f"{number}.parquet")
            _VERBS[step.verb](source, place, _options_for(source, step))
            source = place
            meter.add(1)


def _copy(source: Any, target: Any) -> None:
    """Write a file's bytes to a new file, which appears whole."""
    read_metadata(source)       # other files are refused, as by each step
    with open_source(source) as file, open_sink(target) as sink:
        for start in range(0, file.size, COPIED_BYTES):
            sink.write(file.read(start, min(COPIED_BYTES, file.size - start)).data)


def _options_for(source: Any, step: RecipeStep) -> dict[str, Any]:
    """Return a step's options for one file, without members about columns that the file lacks."""
    if step.verb != "rewrite":
        return dict(step.options)
    columns = {column.name for column in read_metadata(source).schema.columns}
    options = writer_options_of(step.options)
    for name, value in options.items():
        if name in COLUMN_OPTIONS and isinstance(value, Mapping):
            options[name] = {column: setting for column, setting in value.items() if column in columns}
        elif name in COLUMN_OPTIONS and isinstance(value, list):
            options[name] = [column for column in value if column in columns]
    return options


def _rewrite(source: Any, target: Any, options: dict[str, Any]) -> None:
    _refuse_encrypted(source)
    with ParquetFile(source) as file, ParquetWriter(target, **options) as writer:
        is_empty = True
        for table in file.iter_batches(min(BATCH_ROWS, options.get("row_group_size", BATCH_ROWS))):
            writer.write_table(table)
            is_empty = False
        if is_empty:
            writer.write_table(file.read())


def _refuse_encrypted(source: Any) -> None:
    footer = read_metadata(source)
    if footer.encryption_algorithm is not None or footer.footer_signing_key_metadata is not None:
        raise UnsupportedError("the file is encrypted, and a step of the recipe would write it anew without its keys")


def _sort(source: Any, target: Any, options: dict[str, Any]) -> None:
    own_options = dict(options)
    sort_file(source, target, sorting_columns_of(own_options.pop("by", [])), **own_options)


def _plain(function: Callable[..., Any]) -> Callable[[Any, Any, dict[str, Any]], None]:
    def make(source: Any, target: Any, options: dict[str, Any]) -> None:
        function(source, target, **options)

    return make


# How each step changes one file.
_VERBS: dict[str, Callable[[Any, Any, dict[str, Any]], None]] = {
    "rewrite": _rewrite,
    "sort": _sort,
    "add-indexes": _plain(add_indexes),
    "recompress": _plain(recompress_file),
    "rechunk": _plain(rechunk_file),
    "evolve": _plain(evolve_file),
}


def _check_members(paths: Sequence[str]) -> None:
    """Refuse files that cannot be sorted through all of them.

    Raises:
        SchemaError: a file has another schema than the first.
        UnsupportedError: a file is encrypted.
    """
    first_kind = joined_kind(read_metadata(paths[0]))
    for path in paths:
        _refuse_encrypted(path)
        check_kind(read_metadata(path), first_kind, path)


def _sort_dataset(paths: Sequence[str], options: Mapping[str, Any]) -> None:
    """Sort each folder through all its files. There are as many files as before, each with one range of values."""
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        by_folder.setdefault(os.path.dirname(path), []).append(path)
    for members in by_folder.values():
        if len(members) > 1:
            _check_members(members)
    for folder, members in by_folder.items():
        if len(members) == 1:
            _sort(members[0], members[0], dict(options))
            continue
        joined = temporary_path(os.path.join(folder, "joined.parquet"), new_token())
        try:
            consolidate(
                members, joined, least_bytes=NO_SMALL_GROUPS, keys=None, keys_of=lambda _: None, options={}, threads=None,
                meter=Meter(None))
            metadata = read_metadata(joined)
            rows = max(1, -(-metadata.num_rows // len(members)))
            _sort(joined, joined, {"row_group_size": min(rows, max([1, *metadata.row_counts])), **options})
            escaped_folder = folder.replace("{", "{{").replace("}", "}}")
            pattern = os.path.join(escaped_folder, f"sorted-{secrets.token_hex(8)}-{{number:05}}.parquet")
            split_file(joined, pattern, rows=rows)
        finally:
            if os.path.lexists(joined):
                os.unlink(joined)
        for path in members:
            os.unlink(path)
