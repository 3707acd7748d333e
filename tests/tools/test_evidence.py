"""The page of evidence is what its command writes, and fastpq accepts a forgery only if no reader can notice it."""

from __future__ import annotations

import re
import warnings
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.encryption.keys.softhsm import pkcs11
from tests.requirements import is_there, java_jars, needs, peer, softhsm_library

google_server = peer("google.cloud.kms_v1", "google-cloud-kms")
azure_server = peer("azure.keyvault.keys", "azure-keyvault-keys")
aws_client, aws_server = peer("boto3"), peer("moto")
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/pages/evidence.md").read_text()


def needs_clients_of_services() -> None:
    for each in (google_server, azure_server, aws_client, aws_server, pkcs11):
        needs(each)


def rows() -> dict[str, list[str]]:
    """The rows of the first table on the page, by what was done."""
    lines = PAGE.partition("## Forged files")[2].partition("## Modes")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0]: row[1:] for row in cells if row[0] != "---"}


def test_forgeries_are_noticed_if_they_can_be(tmp_path: Path) -> None:
    from tools import forgeries

    with warnings.catch_warnings(action="ignore"):      # Polars calls its encryption unstable
        readers = forgeries.Readers(None)
        judged = forgeries.judge(readers, tmp_path)
    page = rows()
    names = page.pop("What was done")
    assert list(page) == [forgery.name for forgery, _ in judged]
    for forgery, verdicts in judged:
        ours = [verdicts[name] for name in ("fastpq", "fastpq, key service")]
        right = forgeries.GENUINE if forgery.name.endswith("untouched") else forgeries.REFUSED
        assert ours == [forgeries.OTHER if forgery.is_undetectable else right] * 2, forgery.name
        if forgery.is_undetectable:     # no other reader notices it either
            assert set(verdicts.values()) <= {forgeries.OTHER, forgeries.UNREADABLE}, forgery.name
        assert page[forgery.name][:2] == ours
        assert page[forgery.name][-1] == forgery.is_undetectable
    assert names[:2] == ["fastpq", "fastpq, key service"]


def test_security_counts_the_forgeries() -> None:
    forged = [name for name in rows() if name != "What was done" and not name.endswith("untouched")]
    counts = re.findall(r"(\d+) forgeries", (ROOT / "SECURITY.md").read_text())
    assert counts == [str(len(forged))]


def test_the_page_is_up_to_date() -> None:
    """With the versions of other libraries that the page names. With others, the test above compares fastpq's columns."""
    needs_clients_of_services()
    java_jars()
    softhsm_library()
    from tools import evidence

    if all(is_there(peer(name)) and version(name) == pin for name, pin in evidence.PINS.items()):
        assert evidence.page() == PAGE


def test_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_clients_of_services()
    from tools import evidence

    monkeypatch.setitem(evidence.PINS, "polars", "0.0.1")
    with pytest.raises(SystemExit, match=r"pip install polars==0\.0\.1"):
        evidence.page()
