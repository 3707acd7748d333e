"""Every public object: a docstring that names each parameter, and options that are those of WriterProperties."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
import typing
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import pytest

import fastpq
from fastpq import ParquetDataset, ParquetFile, ParquetWriter, WriterProperties
from fastpq.api.keywords import ReaderOptions, WriterOptions
from fastpq.api.reader_options import DEFAULTS
from fastpq.common.foreign_options import READING
from fastpq.common.progress import Progress
from fastpq.encryption import CryptoFactory, FileDecryptionProperties, FileEncryptionProperties
from tests.requirements import is_there, needs, peer

pyspark = peer("pyspark", "'fastpq[spark]'")

MODULES = ["fastpq", "fastpq.encryption", "fastpq.spark", "fastpq.variant", "fastpq.arrays.memory"]
READERS: list[Callable[..., Any]] = [
    fastpq.read_table, fastpq.read_pandas, fastpq.read_metadata, fastpq.read_schema, ParquetDataset, fastpq.read_dataset,
]
DATASETS = (ParquetDataset, fastpq.read_dataset)
WRITERS = [ParquetWriter, fastpq.write_table, fastpq.write_dataset]
SPARK = ["compact_dataset", "decrypt_dataset", "encrypt_dataset", "read", "rotate_keys", "verify_dataset"]

SIGNATURE_LINE = re.compile(r"\w+\([^\n]*\)( -> [^\n]*)?\n\n?")       # which Cython puts before a docstring
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):\n", re.MULTILINE)
ENTRY = re.compile(r"^ {4}((?:\*{0,2}\w+, )*\*{0,2}\w+): ", re.MULTILINE)
ITEM = re.compile(r"^ *- (``.*?``(?:, ``.*?``)*): ", re.MULTILINE | re.DOTALL)


def members(name: str) -> Iterator[tuple[str, Any]]:
    """Public objects of a module and of its public classes, as far as fastpq defines them."""
    module = importlib.import_module(name)
    names = getattr(module, "__all__", None) or [key for key in vars(module) if not key.startswith("_") and key != "np"]
    for key in names:
        found = getattr(module, key)
        if not (inspect.isclass(found) or inspect.isroutine(found)):
            continue
        yield f"{name}.{key}", found
        if inspect.isclass(found):
            own = [vars(base) for base in reversed(found.__mro__) if base.__module__.startswith("fastpq")]
            for inner, value in {inner: value for each in own for inner, value in each.items()}.items():
                if not inner.startswith("_") and not isinstance(value, type):
                    yield f"{name}.{key}.{inner}", value


def public_objects() -> dict[str, Any]:
    return {path: found for name in MODULES if name != "fastpq.spark" or is_there(pyspark) for path, found in members(name)}


def docstring(found: Any) -> str:
    return SIGNATURE_LINE.sub("", inspect.cleandoc(getattr(found, "__doc__", None) or ""), count=1)


def documented(doc: str) -> set[str]:
    """Names in the sections of a docstring that describe parameters, and in lists below ``**options``."""
    parts = SECTION.split(doc)
    bodies = [body for head, body in zip(parts[1::2], parts[2::2], strict=True) if head in ("Args", "Attributes")]
    names = {name.strip() for body in bodies for entry in ENTRY.findall(body) for name in entry.split(",")}
    return names | {name.lstrip("*") for name in names} | options_in(doc).keys()


def options_in(doc: str) -> dict[str, str]:
    """The list below ``**options``: name to text."""
    _, _, rest = doc.partition("**options:")
    rest = SECTION.split(rest)[0]
    starts = [*ITEM.finditer(rest)]
    ends = [start.start() for start in starts[1:]] + [len(rest)] * bool(starts)
    return {
        name: " ".join(rest[start.end() : end].split())
        for start, end in zip(starts, ends, strict=True)
        for name in re.findall(r"``(.*?)``", start[1])
    }


def parameters(found: Any) -> list[str]:
    """Names of the parameters that a caller gives; none of a class without a constructor of its own."""
    if inspect.isclass(found):
        own = "__init__" in vars(found) or dataclasses.is_dataclass(found) or hasattr(found, "_fields")
        if not own or issubclass(found, enum.Enum) or getattr(found, "_is_protocol", False):
            return []
    try:
        signature = inspect.signature(found)
    except ValueError:      # a constructor in C; its docstring is compared with the stub by mypy's stubtest
        return []
    return [name for name in signature.parameters if name not in ("self", "cls")]


def unwrapped(found: Any) -> Any:
    return found.__func__ if isinstance(found, staticmethod | classmethod) else found


@pytest.mark.parametrize("path", public_objects())
def test_docstring_names_each_parameter(path: str) -> None:
    found = unwrapped(public_objects()[path])
    if not (callable(found) or isinstance(found, property | cached_property)):
        return      # a slot or a field; the class documents it
    doc = docstring(found) or inspect.getdoc(found) or ""
    assert re.match(r"[A-Zn(].{10,}", doc), "a docstring begins with a sentence"
    if isinstance(found, property | cached_property):
        return
    missing = [name for name in parameters(found) if name not in documented(doc) | documented(inspect.getdoc(found) or "")]
    assert not missing, f"{path} documents no {missing}"


def test_the_walk_sees_what_is_public() -> None:
    found = public_objects()
    for path in ("fastpq.read_table", "fastpq.ParquetFile.iter_batches", "fastpq.arrays.memory.empty", "fastpq.variant.Variant"):
        assert path in found
    assert len(found) > 250
    assert "batch_size" in parameters(ParquetFile.iter_batches)
    assert documented("One.\n\nArgs:\n    a: one\n        b: two\n    *c: three\n") == {"a", "*c", "c"}


# ---- annotations


def annotated(found: Any) -> list[Any]:
    """Objects whose annotations typing.get_type_hints evaluates: a class and its constructor, or the function of a method."""
    found = unwrapped(found)
    if inspect.isclass(found):
        return [found, found.__init__] if "__init__" in vars(found) else [found]
    found = getattr(found, "fget", None) or getattr(found, "func", found)
    return [found] if inspect.isroutine(found) else []


@pytest.mark.parametrize("path", [path for path, found in public_objects().items() if annotated(found)])
def test_type_hints_are_found(path: str) -> None:
    """By what checks types at run time (pydantic, typeguard, beartype); modules of the types are loaded then, and not before."""
    for found in annotated(public_objects()[path]):
        hints = typing.get_type_hints(found)
        assert hints.keys() >= getattr(found, "__annotations__", {}).keys()
        assert not [name for name, hint in hints.items() if isinstance(hint, str)]


def test_type_hints_are_the_types() -> None:
    assert typing.get_type_hints(fastpq.read_table)["progress"] == Progress | None
    assert typing.get_type_hints(ReaderOptions)["decryption_properties"] == FileDecryptionProperties | None
    assert typing.get_type_hints(ParquetFile.offset_index)["return"] == fastpq.OffsetIndex | None
    assert fastpq.ListColumn in typing.get_args(typing.get_type_hints(fastpq.ListColumn)["elements"])


# ---- options of reading: as ParquetFile has them


# options that datasets take by the path of a file
OF_ONE_FILE = {"decryption_properties", "metadata"}


@pytest.mark.parametrize("function", READERS)
def test_readers_have_the_options_of_parquet_file(function: Callable[..., Any]) -> None:
    expected, given = inspect.signature(ParquetFile).parameters, inspect.signature(function).parameters
    for name, parameter in expected.items():
        if name == "where" or (name in OF_ONE_FILE and function in DATASETS):
            assert name in given
            continue
        assert (given[name].default, given[name].annotation) == (parameter.default, parameter.annotation), name
        assert given[name].kind is inspect.Parameter.KEYWORD_ONLY
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in given.values())
    listed = options_in(docstring(function)).keys()
    assert listed == ReaderOptions.__annotations__.keys() - (OF_ONE_FILE if function in DATASETS else set())


def test_defaults_of_readers() -> None:
    assert DEFAULTS.keys() == ReaderOptions.__annotations__.keys()
    assert {name: inspect.signature(ParquetFile).parameters[name].default for name in DEFAULTS} == DEFAULTS
    assert not READING.keys() & DEFAULTS.keys()


def test_options_reach_the_file(tmp_path: Any) -> None:
    """Each option that has a wrong value is refused, so that none is lost on the way to ParquetFile."""
    fastpq.write_table({"a": [1, 2]}, tmp_path / "a.parquet")
    wrong: dict[str, Any] = {"threads": 0, "strings": "?", "coerce_int96_timestamp_unit": "?", "on_error": "?"}
    wrong["properties"] = fastpq.ReaderProperties(max_footer_size=1)
    wrong["decryption_properties"] = FileDecryptionProperties(b"0" * 16)
    for function in READERS:
        for name, value in wrong.items():
            with pytest.raises((ValueError, fastpq.ParquetError)):
                function(tmp_path / "a.parquet", **{name: value})
        advice = [("thread", r"; did you mean threads\?"), ("use_threads", "; use_threads: threads is"), ("zzz", "$")]
        for given, message in advice:
            with pytest.raises(TypeError, match=f"unknown options: {given}{message}"):
                function(tmp_path / "a.parquet", **{given: 1})


# ---- options of writing: the fields of WriterProperties


def test_writer_options_are_the_fields_of_writer_properties() -> None:
    fields = {field.name: field.type for field in dataclasses.fields(WriterProperties)}
    assert WriterOptions.__annotations__.keys() == fields.keys()
    assert typing.get_type_hints(WriterOptions) == typing.get_type_hints(WriterProperties)
    assert not WriterOptions.__required_keys__


@pytest.mark.parametrize("function", WRITERS)
def test_writers_show_and_document_every_option(function: Callable[..., Any]) -> None:
    attributes = documented_attributes(WriterProperties)
    assert list(options_in(docstring(function)).items()) == list(attributes.items())
    shown = inspect.signature(function).parameters
    for field in dataclasses.fields(WriterProperties):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        parameter = shown[field.name]
        assert (parameter.default, parameter.annotation, parameter.kind) == (default, field.type, parameter.KEYWORD_ONLY)
        text = re.search(r"Default ``(.*?)``\.$", attributes[field.name])
        assert text is not None, f"{field.name} documents no default"
        assert text[1].replace('"', "'") == repr(default)
    annotations = (function.__init__ if inspect.isclass(function) else function).__annotations__
    assert annotations["options"] == "Unpack[keywords.WriterOptions]"


def documented_attributes(found: type) -> dict[str, str]:
    body = docstring(found).split("Attributes:\n")[1]
    starts = [*ENTRY.finditer(body)]
    ends = [start.start() for start in starts[1:]] + [len(body)]
    return {start[1]: " ".join(body[start.end() : end].split()) for start, end in zip(starts, ends, strict=True)}


@pytest.mark.parametrize(
    ("given", "near"), [("compresion", "compression"), ("rowgroup_size", "row_group_size"), ("bloom_filters", "bloom_filter")]
)
def test_unknown_options_are_refused_with_near_names(given: str, near: str, tmp_path: Any) -> None:
    for write in (lambda **options: fastpq.write_table({"a": [1]}, tmp_path / "a", **options),
                  lambda **options: fastpq.write_dataset({"a": [1]}, tmp_path / "b", **options),
                  lambda **options: ParquetWriter(tmp_path / "c", **options)):
        with pytest.raises(TypeError, match=rf"unknown options: {given}; did you mean .*\b{near}\b"):
            write(**{given: 1})
    with pytest.raises(TypeError, match=r"unknown options: zzz$"):
        ParquetWriter(tmp_path / "c", zzz=1)    # type: ignore[call-arg]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


# ---- options of the CryptoFactory: those of the properties that it makes


@pytest.mark.parametrize(
    ("method", "made", "own"),
    [
        (CryptoFactory.file_encryption_properties, FileEncryptionProperties, {
            "footer_key", "column_keys", "footer_key_metadata", "plaintext_footer", "algorithm", "unlisted", "encrypt_unlisted",
            "plaintext_columns",    # in the EncryptionConfiguration
            "for_reader",           # DuckDB asks no key service
            "audit"}),
        (CryptoFactory.file_decryption_properties, FileDecryptionProperties, {"key_retriever", "audit"}),
    ],
)
def test_crypto_factory_passes_options_on(method: Callable[..., Any], made: type, own: set[str]) -> None:
    given = inspect.signature(method).parameters
    for name, parameter in inspect.signature(made).parameters.items():
        if name not in own:
            assert (given[name].default, given[name].annotation) == (parameter.default, parameter.annotation)


# ---- options of Spark: names of the data source


@pytest.mark.parametrize("name", SPARK)
def test_spark_jobs_document_every_option(name: str) -> None:
    needs(pyspark)
    function = getattr(fastpq.spark, name)
    (typed,) = typing.get_args(typing.get_type_hints(function)["options"])
    assert options_in(docstring(function)).keys() == typed.__annotations__.keys() | {"kms.conf.NAME"}


def test_spark_keywords_are_the_options_of_the_data_source() -> None:
    """Each keyword is an option that parsing accepts, and options that are no keywords are arguments or for streams."""
    needs(pyspark)
    from fastpq.spark import option_keywords, options

    def plain_names(typed: Any) -> set[str]:
        return {options.plain_name(name) for name in typed.__annotations__}

    service, encryption = options._SERVICE.keys(), options._ENCRYPTION.keys()
    assert plain_names(option_keywords.ServiceKeywords) == service
    assert plain_names(option_keywords.EncryptionKeywords) == encryption | service
    others = set(map(str.lower, options.NO_KEYWORDS))
    assert plain_names(option_keywords.ReadKeywords) == options._READING.keys() - others | service
    assert plain_names(option_keywords.CompactionKeywords) == options._PROPERTIES.keys() | encryption | service
