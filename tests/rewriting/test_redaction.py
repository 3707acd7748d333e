"""Key-value metadata that hold values of columns: left out of the footer of an encrypted file where its readers lack the key."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.encryption import ColumnEncryptionProperties
from tests.narrowing import present

KEY, COLUMN_KEY = b"sixteen bytes k!", b"key of a column!"
KEYS = fastpq.FileDecryptionProperties(KEY, {"place": COLUMN_KEY})
SPARK = "org.apache.spark.sql.parquet.row.metadata"
SECRET = "topsecret"
BOX = [7.125, 46.5, 7.25, 46.75]

GEO = {
    "version": "1.1.0",
    "primary_column": "place",
    "columns": {
        "place": {"encoding": "WKB", "crs": {"name": "WGS 84"}, "geometry_types": ["Point"], "bbox": BOX},
        "other": {"encoding": "WKB", "geometry_types": ["Point"], "bbox": [1.0, 2.0, 3.0, 4.0]},
    },
}
HUGGING = {"info": {"features": {
    "place": {"names": [SECRET, "b"], "_type": "ClassLabel"},
    "other": {"names": ["open", "b"], "_type": "ClassLabel"},
}}}
SPARK_SCHEMA = {"type": "struct", "fields": [
    {"name": "place", "type": {"type": "array", "containsNull": True, "elementType": {"type": "struct", "fields": [
        {"name": "x", "type": "string", "nullable": True, "metadata": {"ml_attr": {"vals": [SECRET]}}}]}},
     "nullable": True, "metadata": {"ml_attr": {"vals": [SECRET]}, "comment": "where", "__CHAR_VARCHAR_TYPE_STRING": "char(3)"}},
    {"name": "other", "type": "string", "nullable": True, "metadata": {"ml_attr": {"vals": ["open"]}}},
]}

WHOLE = [
    "hoodie_min_record_key", "hoodie_max_record_key", "org.apache.hudi.bloomfilter", "com.uber.hoodie.bloomfilter",
    "PANDAS_ATTRS", "r",
]


def file_of(metadata: dict[str, str], table: pa.Table | None = None) -> bytes:
    """A plaintext file of pyarrow with the columns place and other; its ARROW:schema has the metadata once more."""
    table = pa.table({"place": ["a", "b"], "other": ["c", "d"]}) if table is None else table
    field = table.schema.field("place").with_metadata({"note": SECRET, "PARQUET:field_id": "7", "ARROW:extension:name": "x.y"})
    table = table.cast(pa.schema([field, table.schema.field("other").with_metadata({"note": "open"})]))
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), out)
    return out.getvalue()


def told_by(data: bytes) -> dict[str, str]:
    """The key-value metadata that pyarrow shows of a footer without a key."""
    return {key.decode(): value.decode() for key, value in (pq.read_metadata(io.BytesIO(data)).metadata or {}).items()}


def signed(data: bytes, **options: Any) -> tuple[dict[str, str], fastpq.RewritingReport, bytes]:
    """Of a file whose plaintext footer leaves the column place closed: metadata, report and bytes."""
    keys = fastpq.FileEncryptionProperties(KEY, {"place": COLUMN_KEY}, plaintext_footer=True, unlisted="plaintext")
    out = io.BytesIO()
    report = fastpq.encrypt_file(data, out, keys, **options)
    return told_by(out.getvalue()), report, out.getvalue()


def arrow_schema(told: dict[str, str]) -> pa.Schema:
    return pa.ipc.read_schema(pa.BufferReader(base64.b64decode(told["ARROW:schema"])))


def test_bounding_boxes() -> None:
    told, report, _ = signed(file_of({"geo": json.dumps(GEO)}))
    columns = json.loads(told["geo"])["columns"]
    assert columns["place"] == {"encoding": "WKB", "crs": {"name": "WGS 84"}, "geometry_types": []}
    assert columns["other"] == GEO["columns"]["other"]      # type: ignore[index]
    assert json.loads(present(arrow_schema(told).metadata)[b"geo"]) == json.loads(told["geo"])
    assert [(entry.key, entry.part) for entry in report.dropped_metadata] == [
        ("geo", "bbox, geometry_types of place"), ("ARROW:schema", "metadata of the field place"),
    ]
    assert "geo: bbox, geometry_types of place" in str(report)
    assert "46.5" not in str(report) + repr(report)
    old, _, _ = signed(file_of({"geo": json.dumps({"columns": {"place": {"geometry_type": "Point", "bbox": BOX}}})}))
    assert json.loads(old["geo"]) == {"columns": {"place": {"geometry_type": "Unknown"}}}


ODD = [SECRET, "[1]", '{"columns": ["topsecret"]}', "[" * 100_000, '{"columns": {"place": "topsecret"}}']


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("key", ["geo", "huggingface", SPARK, "pandas"])
def test_an_entry_of_another_structure_goes_as_a_whole(key: str, text: str) -> None:
    out = io.BytesIO()
    fastpq.write_table({"place": ["a"], "other": ["b"]}, out, key_value_metadata={key: text})
    told, report, data = signed(out.getvalue())
    assert told == {}
    assert fastpq.read_table(data, decryption_properties=KEYS).num_rows == 1
    assert [(entry.key, entry.part) for entry in report.dropped_metadata] == [(key, "")]


def test_schemas_of_avro_and_protocol_buffers() -> None:
    """Symbols of enums and defaults are values."""
    enum, text = {"type": "enum", "name": "e", "symbols": [SECRET]}, ["null", "string"]
    cases: list[tuple[Any, str | None, bool]] = [
        (enum, None, False), (["null", enum], None, False), (text, SECRET, False), (text, None, True),
    ]
    for type_, default, is_kept in cases:
        fields = [{"name": "place", "type": type_, "default": default}, {"name": "other", "type": enum, "default": "open"}]
        schema = json.dumps({"type": "record", "name": "r", "fields": fields})
        data = file_of({"parquet.avro.schema": schema, "parquet.proto.enum.E": f"{SECRET}:1"})
        out = io.BytesIO()
        keys = fastpq.FileEncryptionProperties(KEY, {"place": COLUMN_KEY}, plaintext_footer=True, unlisted="plaintext")
        fastpq.encrypt_file(data, out, keys)
        metadata = fastpq.read_metadata(out.getvalue(), decryption_properties=KEYS).key_value_metadata
        assert ("parquet.avro.schema" in metadata) == is_kept
        assert "parquet.proto.enum.E" not in metadata


def test_record_keys_and_r() -> None:
    told, report, _ = signed(file_of(dict.fromkeys([*WHOLE, "hoodie_bloom_filter_type_code", "mine"], SECRET)))
    assert sorted(told) == ["ARROW:schema", "hoodie_bloom_filter_type_code", "mine"]
    assert sorted(key.decode() for key in present(arrow_schema(told).metadata)) == ["hoodie_bloom_filter_type_code", "mine"]
    assert [entry.key for entry in report.dropped_metadata] == [*WHOLE, "ARROW:schema"]


def test_metadata_of_invalid_utf_8_stay_as_stored() -> None:
    data = file_of({"mine": "spoiled", "r": SECRET}).replace(b"spoiled", b"sp\xa1\xffled")
    out = io.BytesIO()
    keys = fastpq.FileEncryptionProperties(KEY, {"place": COLUMN_KEY}, plaintext_footer=True, unlisted="plaintext")
    fastpq.encrypt_file(data, out, keys)
    told = present(pq.read_metadata(io.BytesIO(out.getvalue())).metadata)
    assert told[b"mine"] == b"sp\xa1\xffled"
    schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(told[b"ARROW:schema"])))
    assert schema.metadata == {b"mine": b"sp\xa1\xffled"}


def test_labels() -> None:
    told, _, _ = signed(file_of({"huggingface": json.dumps(HUGGING), SPARK: json.dumps(SPARK_SCHEMA)}))
    assert json.loads(told["huggingface"])["info"]["features"] == {
        "place": {"num_classes": 2, "_type": "ClassLabel"}, "other": HUGGING["info"]["features"]["other"],
    }
    place, other = json.loads(told[SPARK])["fields"]
    assert place["metadata"] == {"comment": "where", "__CHAR_VARCHAR_TYPE_STRING": "char(3)"}
    assert place["type"]["elementType"]["fields"][0]["metadata"] == {}
    assert other == SPARK_SCHEMA["fields"][1]
    assert SECRET not in told["huggingface"] + told[SPARK]


def test_arrow_s_fields() -> None:
    schema = arrow_schema(signed(file_of({}))[0])
    assert schema.field("place").metadata == {b"PARQUET:field_id": b"7", b"ARROW:extension:name": b"x.y"}
    assert present(schema.field("other").metadata)[b"note"] == b"open"


def test_polars_enums() -> None:
    frame = pl.DataFrame({"place": ["topsecret", "b"], "other": ["open", "b"]}, schema={
        "place": pl.Enum(["topsecret", "b"]), "other": pl.Enum(["open", "b"])})
    theirs, ours = io.BytesIO(), io.BytesIO()
    frame.write_parquet(theirs, compression="uncompressed")
    keys = fastpq.FileEncryptionProperties(KEY, {"place": COLUMN_KEY}, plaintext_footer=True, unlisted="plaintext")
    fastpq.write_table(frame, ours, arrow_schema=True, encryption_properties=keys)
    for data in (signed(theirs.getvalue())[2], ours.getvalue()):
        stored = base64.b64decode(told_by(data)["ARROW:schema"])
        assert b"topsecret" not in stored
        assert b"open" in stored
        assert fastpq.read_table(data, decryption_properties=KEYS)["place"].to_pylist() == ["topsecret", "b"]


def test_attributes_of_pandas() -> None:
    frame = pd.DataFrame({"place": [1, 2], "other": [3, 4]})
    frame.attrs = {"largest": SECRET}
    out = io.BytesIO()
    frame.to_parquet(out)
    assert SECRET in told_by(out.getvalue())["pandas"]
    told, report, data = signed(out.getvalue())
    assert SECRET not in told["pandas"]
    assert SECRET.encode() not in base64.b64decode(told["ARROW:schema"])
    assert ("pandas", "attributes") in [(entry.key, entry.part) for entry in report.dropped_metadata]
    assert fastpq.read_pandas(data, decryption_properties=KEYS).equals(frame)


def test_who_may_read_the_footer() -> None:
    """An encrypted footer hides all from readers without keys, and nothing from readers of the columns under its key."""
    data = file_of({"geo": json.dumps(GEO), "hoodie_min_record_key": SECRET})
    for keys, closed in (
        (fastpq.FileEncryptionProperties(KEY), False),
        (fastpq.FileEncryptionProperties(KEY, {"place": COLUMN_KEY}), True),
        (fastpq.FileEncryptionProperties(KEY, {"other": ColumnEncryptionProperties()}), False),
        (fastpq.FileEncryptionProperties(KEY, plaintext_footer=True), True),
    ):
        out = io.BytesIO()
        report = fastpq.encrypt_file(data, out, keys)
        told = fastpq.read_metadata(out.getvalue(), decryption_properties=fastpq.FileDecryptionProperties(KEY)).key_value_metadata
        assert ("hoodie_min_record_key" not in told) is closed
        assert ("bbox" not in json.loads(present(told["geo"]))["columns"]["place"]) is closed
        assert bool(report.dropped_metadata) is closed
    copy = io.BytesIO()
    assert fastpq.merge_files([data], copy).dropped_metadata == ()
    assert told_by(copy.getvalue())["hoodie_min_record_key"] == SECRET


def test_kept_by_name() -> None:
    data = file_of({"geo": json.dumps(GEO), "hoodie_min_record_key": SECRET, "hoodie_max_record_key": SECRET})
    told, report, _ = signed(data, keep_metadata=["geo", "hoodie_min_record_key", "no such entry"])
    assert json.loads(told["geo"]) == GEO
    assert told["hoodie_min_record_key"] == SECRET
    assert "hoodie_max_record_key" not in told
    assert [entry.key for entry in report.dropped_metadata] == ["hoodie_max_record_key", "ARROW:schema"]
    assert arrow_schema(told).metadata == {key.encode(): told[key].encode() for key in ("geo", "hoodie_min_record_key")}
    told, _, _ = signed(data, keep_metadata=["ARROW:schema"])
    assert "hoodie_min_record_key" not in told
    assert present(arrow_schema(told).metadata)[b"hoodie_min_record_key"] == SECRET.encode()
    keys = fastpq.FileEncryptionProperties(KEY, {"place": COLUMN_KEY}, plaintext_footer=True, unlisted="plaintext")
    out = io.BytesIO()
    report = fastpq.merge_files([data, data], out, encryption_properties=keys, keep_metadata=["hoodie_max_record_key"])
    assert told_by(out.getvalue())["hoodie_max_record_key"] == SECRET
    assert [entry.key for entry in report.dropped_metadata] == ["geo", "hoodie_min_record_key", "ARROW:schema"]
    with pytest.raises(TypeError, match="list of names"):
        signed(data, keep_metadata="geo")


def test_unknown_fields_of_the_footer() -> None:
    """Fields of a newer specification might hold values: not copied where the footer is open."""
    data = bytearray(file_of({}))
    size = int.from_bytes(data[-8:-4], "little")
    footer, _ = fmt.decode(fmt.FileMetaData, bytes(data[-8 - size : -8]))
    encoded = fmt.encode(footer)
    assert encoded.endswith(b"\0")
    del data[-8 - size :]
    # field 20 of FileMetaData, a binary: a long-form field header, its id in zigzag
    encoded = encoded[:-1] + b"\x08" + bytes([40]) + bytes([len(SECRET)]) + SECRET.encode() + b"\0"
    data += encoded + len(encoded).to_bytes(4, "little") + b"PAR1"
    copy = io.BytesIO()
    fastpq.merge_files([bytes(data)], copy)
    assert SECRET.encode() in copy.getvalue()[-500:]
    assert SECRET.encode() not in signed(bytes(data), keep_metadata=["ARROW:schema"])[2][-600:]
