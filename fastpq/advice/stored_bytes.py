"""Changes that make a file smaller, for the uses scan, web and archive, if reading it does not become slower."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from fastpq.advice.advice_report import Advice, Topic
from fastpq.advice.present_settings import Change, FileStructure, structural_changes
from fastpq.advice.trials import RowSample, Trial
from fastpq.advice.writing_settings import ColumnSettings
from fastpq.encodings.registry import automatic_encodings
from fastpq.format import Encoding
from fastpq.picture.chunk_facts import EncodingClass
from fastpq.schema.parquet_schema import ColumnDescriptor

STORED = "stored bytes"
Codecs: TypeAlias = tuple[tuple[str, int | None], ...]

# A change of one column must save this share of its bytes, this many bytes per row, and this many bytes in all. No bound depends
# on other columns or on the present size of the file, so a change that is too small stays too small after other changes.
LEAST_OF_COLUMN, LEAST_PER_ROW, LEAST_BYTES = 0.03, 1 / 32, 256
# A change of the whole file must save this many bytes, and LEAST_PER_ROW.
LEAST_OF_ALL = 1024
# A codec that takes this share of the processor time is advised if the bytes grow by at most MOST_GROWTH.
FASTER, MOST_GROWTH = 0.7, 1.1
# Reading may take this much longer than before, because two measurements of the same work differ.
TOLERANCE, TOLERATED_SECONDS = 1.1, 0.0005


class StoredUse(NamedTuple):
    """What counts for a use.

    Attributes:
        rate: bytes a second that the storage is assumed to deliver. A change may cost as much time as its bytes save.
        codecs: new codecs with their levels, by the present codec.
        tries_encodings: whether encodings other than the writer's default are tried.
        drops_filters: whether bloom filters are of no use.
    """

    rate: float
    codecs: Mapping[str, Codecs]
    tries_encodings: bool = False
    drops_filters: bool = False


SLOW_CODECS = ("gzip", "brotli", "lzo", "lz4_hadoop")
_FAST_ZSTD: Codecs = (("zstd", None),)
_ALL = ("uncompressed", "snappy", "lz4_raw", "zstd", *SLOW_CODECS)
# A file does not tell its level, and a higher level does not always take fewer bytes: the default level is tried too.
STORED_USES = {
    "scan": StoredUse(250e6, {"uncompressed": (("snappy", None),)} | dict.fromkeys(SLOW_CODECS, _FAST_ZSTD)),
    "web": StoredUse(25e6, dict.fromkeys(_ALL, (*_FAST_ZSTD, ("zstd", 3)))),
    "archive": StoredUse(100e6, dict.fromkeys(_ALL, (*_FAST_ZSTD, ("zstd", 9))), tries_encodings=True, drops_filters=True),
}


class _Step(NamedTuple):
    """A change of one leaf column with its text, its bytes in the whole file, and its processor seconds in the sample."""

    topic: Topic
    values: Mapping[str, object]
    text: str
    before: float
    after: float
    seconds: tuple[float, float]


class StoredByteAdvisor:
    """Finds the changes for one file and one use.

    Args:
        sample: rows of the file.
        use: what counts.

    Attributes:
        settings: the settings with all changes that were found.
    """

    def __init__(self, sample: RowSample, use: StoredUse) -> None:
        structure = sample.structure
        self._columns, self._structure, self._sample, self._use = sample.columns, structure, sample, use
        self._present = structure.settings
        self._is_rewritten = False      # whether a change of the whole file has been found
        self.settings = structure.settings
        self._sizes = structure.bytes_by_column().astype(np.float64)
        self._rest = float(structure.size - self._sizes.sum())

    def advice(self) -> list[Advice]:
        """Return the changes, the largest gain first."""
        advice: list[Advice] = []
        pending = structural_changes(self._structure)
        while True:     # a change may make another one worth while
            before = self.settings
            for change in list(pending):
                if whole := self._try_whole(change):
                    advice.append(whole)
                    pending.remove(change)
            advice += self._column_advice()
            if self.settings == before:
                break
        text = "The footer and the indexes take more bytes than fastpq needs for them. Write the file anew."
        anew = self._try_whole(Change("footer", text))
        return sorted([*advice, *([anew] if anew else [])], key=self._seconds_saved, reverse=True)

    def _seconds_saved(self, advice: Advice) -> float:
        one, other = advice.decoding_seconds or (0.0, 0.0)
        return advice.gain / self._use.rate + (one - other) * self._sample.growth

    def _try_whole(self, change: Change) -> Advice | None:
        """Return the advice for a change of the whole file, if it saves enough."""
        trial = self._sample.trial(change.apply(self.settings))
        sizes, rest = self._sample.bytes_by_column(trial), self._sample.rest_bytes(trial)
        before, after = self._sizes.sum() + self._rest, sizes.sum() + rest
        if before - after < max(LEAST_PER_ROW * float(self._structure.facts.rows.sum()), LEAST_OF_ALL):
            return None
        self._sizes, self._rest, self._is_rewritten = sizes, rest, True
        self.settings = change.apply(self.settings)
        recipe = change.apply(self._present).options()
        return Advice(change.topic, change.text, (), STORED, int(before), int(after), None, recipe)

    def _column_advice(self) -> Iterator[Advice]:
        """Yield one piece of advice for each topic and text, over all columns that it is about."""
        groups: defaultdict[tuple[Topic, str], dict[str, _Step]] = defaultdict(dict)
        for column in self._columns:
            for step in self._steps(column):
                groups[step.topic, step.text][column.name] = step
        for (topic, text), steps in groups.items():
            change = Change(topic, text, {}, {name: step.values for name, step in steps.items()})
            seconds = (sum(step.seconds[0] for step in steps.values()), sum(step.seconds[1] for step in steps.values()))
            before, after = sum(step.before for step in steps.values()), sum(step.after for step in steps.values())
            is_timed = topic != "bloom filter"
            recipe = change.apply(self._present).options()
            yield Advice(topic, text, tuple(steps), STORED, int(before), int(after), seconds if is_timed else None, recipe)

    def _steps(self, column: ColumnDescriptor) -> list[_Step]:
        """Return the changes that lead to the best settings of a column: those with the fewest bytes that are not slower."""
        present = self.settings.columns[column.name]
        before = float(self._sizes[column.index])
        sizes = {settings: self._bytes_after(column, settings) for settings in self._alternatives(column, present)}
        seconds = None
        for settings in sorted(sizes, key=sizes.__getitem__):
            is_enough = self._is_enough(before, sizes[settings])
            if not is_enough and not self._is_faster(column, present, settings, before, sizes[settings]):
                continue
            seconds = self._present_seconds(column) if seconds is None else seconds
            new_seconds = self._seconds_of(column, settings)
            if self._is_slower(before, sizes[settings], seconds, new_seconds):
                continue
            steps = self._path(column, present, settings, before, seconds)
            self.settings = self.settings.with_column(column.name, settings)
            self._sizes[column.index] = sizes[settings]
            return steps
        return []

    def _alternatives(self, column: ColumnDescriptor, present: ColumnSettings) -> Iterator[ColumnSettings]:
        """Yield all settings to try: each encoding with each codec."""
        codecs = [(present.codec, present.level), *self._use.codecs.get(present.codec, ())]
        encodings: list[tuple[str | None, bool]] = [(present.encoding, present.is_dictionary), (None, True)]
        if self._use.tries_encodings:
            names = (each.name for each in automatic_encodings(column.type) if each not in (Encoding.PLAIN, Encoding.RLE))
            encodings += [(name, False) for name in names]
        has_filter = present.has_bloom_filter and not self._use.drops_filters
        for codec, level in dict.fromkeys(codecs):
            for encoding, is_dictionary in dict.fromkeys(encodings):
                yield replace(
                    present, codec=codec, level=level, encoding=encoding, is_dictionary=is_dictionary, has_bloom_filter=has_filter
                )

    def _path(
        self, column: ColumnDescriptor, present: ColumnSettings, target: ColumnSettings, before: float, seconds: float
    ) -> list[_Step]:
        """Return the steps from one setting to another, one topic after another. The topic that saves most comes first."""
        topics: dict[Topic, dict[str, object]] = {}
        if target.has_bloom_filter != present.has_bloom_filter:
            topics["bloom filter"] = {"has_bloom_filter": target.has_bloom_filter}
        if (target.codec, target.level) != (present.codec, present.level):
            topics["compression"] = {"codec": target.codec, "level": target.level}
        if (target.encoding, target.is_dictionary) != (present.encoding, present.is_dictionary) or not topics:
            topics["encoding"] = {"encoding": target.encoding, "is_dictionary": target.is_dictionary}
        steps: list[_Step] = []
        settings = present
        while topics:
            options = {topic: replace(settings, **values) for topic, values in topics.items()}    # type: ignore[arg-type]
            topic = min(options, key=lambda topic: self._bytes_after(column, options[topic]))
            values, settings = topics.pop(topic), options[topic]
            after, new_seconds = self._bytes_after(column, settings), self._seconds_of(column, settings)
            is_faster_codec = topic == "compression" and settings.codec != present.codec and new_seconds < seconds
            if before - after >= LEAST_BYTES or is_faster_codec:
                text = self._text(column, topic, present, settings)
                steps.append(_Step(topic, values, text, before, after, (seconds, new_seconds)))
                before, seconds = after, new_seconds
        return steps

    def _trial(self, column: ColumnDescriptor, settings: ColumnSettings) -> Trial:
        """Return the sample's top-level column that has a leaf, with other settings for the leaf."""
        top = column.path[0]
        leaves = frozenset(each.name for each in self._columns if each.path[0] == top)
        return self._sample.trial(self.settings.with_column(column.name, settings).only(leaves), [top])

    def _bytes_after(self, column: ColumnDescriptor, settings: ColumnSettings) -> float:
        """Return the bytes of a leaf column in the whole file, with other settings."""
        structure = self._trial(column, settings).structure
        size = float(structure.bytes_by_column()[structure.names.index(column.name)])
        if self._sample.is_whole:
            return size
        present = self._sample.present_bytes()[column.index]
        return size * float(self._structure.bytes_by_column()[column.index]) / present if present else size * self._sample.growth

    def _seconds_of(self, column: ColumnDescriptor, settings: ColumnSettings) -> float:
        return self._sample.trial_seconds(self._trial(column, settings), column.path[0])

    def _present_seconds(self, column: ColumnDescriptor) -> float:
        if self._is_rewritten:
            return self._seconds_of(column, self.settings.columns[column.name])
        return self._sample.present_seconds(column.path[0])

    def _is_enough(self, before: float, after: float) -> bool:
        rows = float(self._structure.facts.rows.sum())
        return before - after >= max(LEAST_OF_COLUMN * before, LEAST_PER_ROW * rows, LEAST_BYTES)

    def _is_faster(
        self, column: ColumnDescriptor, present: ColumnSettings, settings: ColumnSettings, before: float, after: float
    ) -> bool:
        """Return whether a codec that is known to be slow gives way to one that takes much less time, and few more bytes."""
        if present.codec not in SLOW_CODECS or settings.codec == present.codec or after > MOST_GROWTH * before:
            return False
        return self._seconds_of(column, settings) + TOLERATED_SECONDS < FASTER * self._present_seconds(column)

    def _is_slower(self, before: float, after: float, seconds: float, new_seconds: float) -> bool:
        """Return whether reading from storage and decoding would take longer than now."""
        bytes_seconds = (before - after) / self._sample.growth / self._use.rate
        return new_seconds > seconds * TOLERANCE + max(bytes_seconds, 0.0) + TOLERATED_SECONDS

    def _text(self, column: ColumnDescriptor, topic: Topic, present: ColumnSettings, settings: ColumnSettings) -> str:
        if topic == "compression":
            codec = settings.codec if settings.level is None else f"{settings.codec} at level {settings.level}"
            if present.codec == "uncompressed":
                return f"The pages are not compressed. Compress them with {codec}."
            if present.codec == settings.codec:
                return f"Another level of the codec takes fewer bytes. Compress the pages with {codec}."
            return f"The pages are compressed with {present.codec}. Compress them with {codec}."
        if topic == "bloom filter":
            return "The bloom filters serve lookups alone. Leave them out."
        if settings.encoding is not None:
            return f"Another encoding takes fewer bytes. Encode the values as {settings.encoding}."
        structure = self._trial(column, settings).structure
        had = _has_dictionary(self._structure, column.index)
        has = _has_dictionary(structure, structure.names.index(column.name))
        if has and not had:
            return "A dictionary takes fewer bytes, and the chunks have none, or gave it up. Write one."
        if had and not has:
            return "The dictionary costs more bytes than it saves. Write plain values."
        return "The writer's default encoding takes fewer bytes. Write the values anew."


def _has_dictionary(structure: FileStructure, index: int) -> bool:
    """Return whether all pages of a column use a dictionary."""
    return bool((structure.facts.encodings[:, index] == EncodingClass.DICTIONARY).all())
