"""Advice in notebooks and as text, cautions, arguments, and files of other writers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from tests.advice.planted_faults import columns, shuffled, written
from tests.requirements import DATA, needs_data

KEY = b"0123456789012345"
OTHER_KEY = b"5432109876543210"
MOST_BYTES = 100_000     # of a file of another writer


def file_of(table: Any, **options: Any) -> bytes:
    target = io.BytesIO()
    fastpq.write_table(table, target, **options)
    return target.getvalue()


def test_report_as_text_and_html() -> None:
    report = fastpq.advise(written("path", "user", compression=None)())
    text, html = repr(report), report._repr_html_()
    assert text.startswith("<AdviceReport: for scan, ")
    assert "compression" in text
    assert "stored bytes" in html
    assert "AdviceReport" in html
    assert str(report).startswith("compression [path")
    evil = fastpq.advise(file_of({"<script>alert(1)</script>": ["some text"] * 9000}, compression=None, use_dictionary=False))
    assert evil.advice
    assert "<script>" not in evil._repr_html_()


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("customer_email", ["x", "y"], "the name"), ("dateOfBirth", [1, 2], "the name"), ("PhoneNumber", ["1", "2"], "the name"),
        ("contact", ["a.b@example.org", "c@example.com"], "e-mail"), ("k", ["DE89370400440532013000"] * 3, "IBAN"),
        ("t", ["+49 170 1234567", "+1 (202) 555-0147"], "telephone"), ("n", ["078-05-1120"], "social security"),
    ],
)
def test_personal_data_in_the_clear(name: str, values: list[Any], reason: str) -> None:
    data = file_of({name: values, "emailing_list_size": [1] * len(values)})
    [caution] = fastpq.advise(data).cautions
    assert caution.topic == "personal data"
    assert caution.columns == (name,)
    assert reason in caution.text
    assert not any(str(value) in caution.text for value in values if isinstance(value, str) and len(value) > 2)
    keys = fastpq.FileEncryptionProperties(KEY, aad_prefix=b"file")
    sealed = file_of({name: values}, encryption_properties=keys)
    assert not fastpq.advise(sealed, decryption_properties=fastpq.FileDecryptionProperties(KEY)).cautions


def test_ordinary_names_are_no_personal_data() -> None:
    names = ["phonetic", "mailbox_count", "addressable", "id", "price", "streetcar", "genderless"]
    assert not fastpq.advise(file_of({name: [1, 2, 3] for name in names})).cautions


def test_cautions_about_encryption() -> None:
    keys = fastpq.FileEncryptionProperties(KEY, {"b": KEY}, algorithm="AES_GCM_CTR_V1", encrypt_unlisted="plaintext")
    data = file_of({"iban": ["x"], "b": [1]}, encryption_properties=keys)
    opening = fastpq.FileDecryptionProperties(KEY, {"b": KEY}, allowed_algorithms=["AES_GCM_CTR_V1"])
    report = fastpq.advise(data, decryption_properties=opening)
    assert [each.topic for each in report.cautions] == ["personal data", "algorithm", "AAD prefix"]
    assert "personal data: iban can be read without a key" in str(report)


@pytest.mark.parametrize("use", ["scan", "archive", "lookup"])
def test_encrypted_files(use: Any) -> None:
    """Trials are sealed too, so that the bytes of seals count."""
    options: Any = {"write_page_index": False} if use == "lookup" else {"row_group_size": 2000, "compression": None}
    table = {name: columns()[name] for name in ("id", "path", "place")}
    keys = fastpq.FileEncryptionProperties(KEY, aad_prefix=b"file")
    opening = fastpq.FileDecryptionProperties(KEY)
    data = file_of(table, encryption_properties=keys, **options)
    report = fastpq.advise(data, use, decryption_properties=opening)
    assert report.advice
    changed = file_of(table, encryption_properties=keys, **report.recipe)
    if use != "lookup":
        assert sum(each.gain for each in report.advice) == pytest.approx(len(data) - len(changed), rel=0.02)
    assert not fastpq.advise(changed, use, decryption_properties=opening).advice
    with pytest.raises(fastpq.KeyAccessError):
        fastpq.advise(data, use)


def test_columns_without_keys_are_left_out() -> None:
    table: dict[str, Any] = {name: columns()[name] for name in ("id", "path", "place")}
    rows = len(table["id"])
    locked = {f"c{number}": np.arange(rows) for number in range(100)} | {"s": [{"a": 1, "b": 2}] * rows}
    names = [*locked][:-1]
    keys = fastpq.FileEncryptionProperties(KEY, dict.fromkeys([*names, "s.a"], OTHER_KEY), aad_prefix=b"file")
    own_keys = fastpq.FileEncryptionProperties(KEY, aad_prefix=b"file")
    opening: Any = {"decryption_properties": fastpq.FileDecryptionProperties(KEY)}
    unread_names = (*names[:50], "s.a", "s.b", *names[50:])
    between = {name: locked[name] for name in names[:50]} | {"s": locked["s"]} | {"id": table["id"]}
    mixed = {**between, **{name: locked[name] for name in names[50:]}, **table}
    readable = {name: mixed[name] for name in mixed if name in table}
    for use in ("scan", "archive", "gpu", "lookup"):
        options: Any = {"compression": "gzip", "use_dictionary": False} if use != "lookup" else {"write_page_index": False}
        data = file_of(mixed, encryption_properties=keys, sort_by=["c0", "id"], **options)
        with pytest.raises(fastpq.KeyAccessError):
            fastpq.advise(data, use, **opening)
        report = fastpq.advise(data, use, on_missing_key="skip", **opening)
        assert report.unread_columns == unread_names
        assert report.size == len(data)
        assert (report.recipe, [each.recipe for each in report.advice]) == ({}, [{}] * len(report.advice))
        assert "not looked at, because keys are missing: c0, c1, c2 and 99 more" in str(report)
        assert "not looked at" in repr(report)
        assert report.advice
        assert {name for each in report.advice for name in each.columns} <= {*table}
        if use in ("gpu", "lookup"):        # other uses measure time
            # what is said about the others is what is said about a file that has only them
            alone = fastpq.advise(file_of(readable, encryption_properties=own_keys, sort_by=["id"], **options), use, **opening)
            assert [(each.topic, each.columns) for each in report.advice] == [(each.topic, each.columns) for each in alone.advice]
            assert [each.gain for each in report.advice] == pytest.approx([each.gain for each in alone.advice], rel=0.02)
    sound = fastpq.advise(file_of(mixed, encryption_properties=keys), on_missing_key="skip", **opening)
    assert not sound.advice
    assert str(sound).startswith("nothing to change in what was read for scan\nnot looked at")
    with pytest.raises(fastpq.KeyAccessError, match="on whose values the answer depends"):
        fastpq.advise(data, "lookup", key="c0", on_missing_key="skip", **opening)
    with pytest.raises(fastpq.KeyAccessError, match="no key for any column"):
        only = fastpq.FileEncryptionProperties(KEY, {"a": OTHER_KEY})
        fastpq.advise(file_of({"a": [1]}, encryption_properties=only), on_missing_key="skip", **opening)
    assert fastpq.advise(file_of(table), on_missing_key="skip").unread_columns == ()
    with pytest.raises(ValueError, match='"raise" or "skip"'):
        fastpq.advise(file_of(table), on_missing_key="null")    # type: ignore[arg-type]


def test_key_of_lookups() -> None:
    data = shuffled()()
    assert fastpq.advise(data, "lookup").key in ("id", "user")
    assert fastpq.advise(data, "lookup", key="path").key == "path"
    assert fastpq.advise(data, "scan").key is None
    repeated = fastpq.advise(file_of({"a": [1] * 1000, "b": [0.5] * 1000}), "lookup")
    assert repeated.key is None
    assert not repeated.advice
    with pytest.raises(fastpq.SchemaError, match="neither in a list nor in a struct"):
        fastpq.advise(file_of({"s": [{"a": 1}]}), "lookup", key="s.a")
    with pytest.raises(fastpq.SchemaError, match="nothing"):
        fastpq.advise(data, "lookup", key="nothing")


def test_wrong_use() -> None:
    with pytest.raises(ValueError, match="scan, lookup, web, archive, gpu"):
        fastpq.advise(written("id")(), "fast")  # type: ignore[arg-type]


def test_gpu_is_not_measured() -> None:
    report = fastpq.advise(written("path", compression="brotli")(), "gpu")
    assert not report.is_measured
    assert "not measured on a GPU" in repr(report)


def test_a_sorted_file_stays_sorted() -> None:
    order = [fastpq.SortingColumn("price", descending=True, nulls_first=True)]
    data = shuffled(sort_by=order, compression=None)()
    report = fastpq.advise(data)
    assert report.recipe["sort_by"] == [{"path": "price", "descending": True, "nulls_first": True}]


def test_advice_that_would_make_reading_slower_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The codec saves bytes, but decoding takes far longer than reading them would."""
    from fastpq.advice import trials

    data = written("path", "user", compression=None)()
    assert fastpq.advise(data, "scan").advice
    monkeypatch.setattr(trials.RowSample, "trial_seconds", lambda *_: 1.0)
    monkeypatch.setattr(trials.RowSample, "present_seconds", lambda *_: 0.001)
    assert not fastpq.advise(data, "scan").advice


def foreign_files() -> list[Path]:
    paths = (path for folder in ("wild", "strangers") for path in (DATA / folder).rglob("*.parquet"))
    return sorted(path for path in paths if path.stat().st_size < MOST_BYTES)[::6]      # each is written some fifty times


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("path", foreign_files(), ids=lambda path: path.name)
def test_files_of_other_writers(path: Path) -> None:
    """Each file gets advice or an error of fastpq, and never another one."""
    try:
        with fastpq.ParquetFile(path) as file:
            file.read()
    except fastpq.ParquetError:
        with pytest.raises(fastpq.ParquetError):
            fastpq.advise(path, "scan")
        return
    uses: list[Any] = ["scan", "lookup", "archive"]
    names = [column.name for column in fastpq.read_schema(path).columns]
    if len({*names}) < len(names):
        with pytest.raises(fastpq.UnsupportedError, match="share a name"):
            fastpq.advise(path, "scan")
        return
    for use in uses:
        report = fastpq.advise(path, use)
        for each in report.advice:
            assert each.gain > 0 or (each.decoding_seconds and each.decoding_seconds[1] < each.decoding_seconds[0])
        assert np.isfinite(report.size)
