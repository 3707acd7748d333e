"""A short campaign over real files, and proof that a campaign notices what it is there to notice."""

from __future__ import annotations

from random import Random

import pytest

from tests.corrupt.campaign import Settings, run
from tests.corrupt.corpus import corpus
from tests.corrupt.mutate import MUTATIONS, mutate, varint


@pytest.mark.parametrize("target", ["read", "select", "rewrite"])
def test_mutated_files_give_a_table_or_a_typed_error(target: str) -> None:
    findings = run(Settings(count=400, seed=20_261, workers=1, target=target))
    assert not findings.failures, findings.failures[0]
    assert findings.outcomes["FormatError"] > 50
    assert findings.outcomes["ok"] > 20


def test_mutated_nested_files() -> None:
    findings = run(Settings(count=400, seed=20_261, workers=1, target="nested"))
    assert not findings.failures, findings.failures[0]
    assert findings.outcomes["FormatError"] > 50
    assert findings.outcomes["ok"] > 20


@pytest.mark.parametrize("target", ["kernel", "arrow_schema"])
def test_mutated_streams_and_schemas(target: str) -> None:
    findings = run(Settings(count=3000, seed=20_261, workers=1, target=target))
    assert not findings.failures, findings.failures[0]
    assert findings.outcomes["FormatError"] > 100
    assert findings.outcomes["ok"] > 100


@pytest.mark.parametrize("target", ["variant", "wkb"])
def test_mutated_values_give_a_value_or_a_typed_error(target: str) -> None:
    findings = run(Settings(count=3000, seed=20_261, workers=1, target=target))
    assert not findings.failures, findings.failures[0]
    assert findings.outcomes["FormatError" if target == "variant" else "SchemaError"] > 1000
    assert findings.outcomes["ok"] > 20


@pytest.mark.parametrize(
    ("target", "patience", "outcome", "detail"),
    [
        ("crash", 300, "death", "ended with -11"),
        ("sleep", 8, "death", "no answer within 8 s"),
        ("spin", 300, "death", "no answer within 1 s of processor time"),
        ("greedy", 300, "unexpected", "MemoryError"),
        ("bare", 300, "unexpected", "IndexError: not a ParquetError"),
    ],
)
def test_a_campaign_notices(target: str, patience: float, outcome: str, detail: str) -> None:
    findings = run(Settings(count=5, workers=1, time_limit=1, patience=patience, target=target))
    assert findings.outcomes == {outcome: 1, "ok": 4}
    assert findings.failures[0][:2] == (3, outcome)
    assert detail in findings.failures[0][2]


def test_typed_errors_are_not_findings() -> None:
    findings = run(Settings(count=5, workers=1, target="refuse"))
    assert findings.outcomes == {"FormatError": 5}
    assert not findings.failures


def test_mutations_change_files_and_can_be_made_again() -> None:
    samples = corpus()
    for index in range(200):
        what, data = mutate(samples, 7, index)
        assert (what, data) == mutate(samples, 7, index)
    for mutation in set(MUTATIONS):
        changed = [mutation(samples[0], Random(seed)) != samples[0].data for seed in range(20)]
        assert sum(changed) > 10, mutation


def test_varints() -> None:
    assert [varint(number) for number in (0, 127, 128, 300)] == [b"\x00", b"\x7f", b"\x80\x01", b"\xac\x02"]
