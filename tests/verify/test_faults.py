"""Every planted fault is found, at its place, with its section of the specification; without the fault the file is sound."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow.parquet as pq
import pytest

import fastpq
from tests.verify.faults import FAULTS, KEYS, SOUND, Fault


def matches(fault: Fault, violation: fastpq.Violation) -> bool:
    place = violation.place
    return (
        violation.part == fault.part
        and fault.message in violation.message
        and fault.section in violation.section
        and fault.column in (None, place.column)
    )


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_is_found(fault: Fault) -> None:
    data = fault.make()
    for quick in (False, True) if fault.is_quick else (False,):
        report = fastpq.verify_file(data, quick=quick, decryption_properties=fault.keys)
        assert any(matches(fault, violation) for violation in report.violations), report


def test_number_of_faults() -> None:
    assert len(FAULTS) >= 40
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert {fault.part for fault in FAULTS} == {
        "footer", "row group", "column chunk", "page header", "page", "dictionary", "levels", "values", "statistics",
        "encoding_stats", "offset index", "column index", "bloom filter", "encryption",
    }


@pytest.mark.parametrize("make", SOUND.values(), ids=SOUND)
@pytest.mark.parametrize("quick", [False, True])
def test_without_a_fault_the_file_is_sound(make: Callable[[], bytes], quick: bool) -> None:
    report = fastpq.verify_file(make(), quick=quick, decryption_properties=KEYS if make is SOUND["sealed"] else None)
    assert not report.violations
    assert report.is_complete
    assert str(report) == "no violation"
    if make is not SOUND["sealed"]:
        pq.read_table(io.BytesIO(make())).validate(full=True)
