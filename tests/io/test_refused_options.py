"""Options that the package of a filesystem refuses: a typed error with its cause, and without the values of the options."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

import fastpq

S3 = {"key": "SECRET1", "secret": "SECRET2", "endpoint_url": "http://127.0.0.1:9"}
OPTIONS: dict[str, dict[Any, Any]] = {
    "botocore's": {"config_kwargs": {"bogus": "SECRET3"}},
    "s3fs's": {"bogus": "SECRET3"},
    "the client's": {"client_kwargs": {"bogus": "SECRET3"}},
    "no mapping": {"config_kwargs": "SECRET3"},
    "no name": {5: "SECRET3"},
}
WAYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "read": lambda options: fastpq.read_table("s3://bucket/x.parquet", storage_options=options),
    "write": lambda options: fastpq.write_table({"a": [1]}, "s3://bucket/x.parquet", storage_options=options),
    "dataset": lambda options: fastpq.ParquetDataset("s3://bucket/x", storage_options=options),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OPTIONS)
def test_s3(name: str, way: str) -> None:
    pytest.importorskip("s3fs")
    with pytest.raises(fastpq.UnsupportedError, match=r"refuses its storage_options: (Type|Attribute)Error") as caught:
        WAYS[way]({**S3, **OPTIONS[name]})
    assert isinstance(caught.value.__cause__, TypeError | AttributeError)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


def test_http() -> None:
    with pytest.raises(fastpq.UnsupportedError, match=r"http://127.0.0.1:9/x refuses its storage_options: TypeError: .*'bogus'"):
        fastpq.read_table("http://127.0.0.1:9/x", storage_options={"bogus": "SECRET"})


def test_values_in_the_text_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    def refuse(self: Any, path: str, **_: Any) -> Any:
        raise TypeError("a token 'SECRET' is no token")

    monkeypatch.setattr(MemoryFileSystem, "info", refuse)
    with pytest.raises(fastpq.UnsupportedError, match=r"TypeError: a token '\(hidden\)' is no token") as caught:
        fastpq.read_table("memory://x", storage_options={"outer": {"token": "SECRET"}})
    assert "'SECRET' is" not in "".join(traceback.format_exception(caught.value)).replace("a token 'SECRET' is no token\")\n", "")
