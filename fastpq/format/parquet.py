"""The structs and unions that the current parquet.thrift declares, with the field ids, names and order from the IDL."""

from __future__ import annotations

from fastpq.format.enums import (
    BoundaryOrder,
    CompressionCodec,
    ConvertedType,
    EdgeInterpolationAlgorithm,
    Encoding,
    FieldRepetitionType,
    PageType,
    Type,
)
from fastpq.format.struct import BINARY, BOOL, DOUBLE, I8, I16, I32, I64, STRING, Struct, Union, optional, required


class SizeStatistics(Struct):
    unencoded_byte_array_data_bytes: int | None = optional(1, I64)
    repetition_level_histogram: list[int] | None = optional(2, [I64])
    definition_level_histogram: list[int] | None = optional(3, [I64])


class BoundingBox(Struct):
    xmin: float = required(1, DOUBLE)
    xmax: float = required(2, DOUBLE)
    ymin: float = required(3, DOUBLE)
    ymax: float = required(4, DOUBLE)
    zmin: float | None = optional(5, DOUBLE)
    zmax: float | None = optional(6, DOUBLE)
    mmin: float | None = optional(7, DOUBLE)
    mmax: float | None = optional(8, DOUBLE)


class GeospatialStatistics(Struct):
    bbox: BoundingBox | None = optional(1, BoundingBox)
    geospatial_types: list[int] | None = optional(2, [I32])


class Statistics(Struct):
    max: bytes | None = optional(1, BINARY)
    min: bytes | None = optional(2, BINARY)
    null_count: int | None = optional(3, I64)
    distinct_count: int | None = optional(4, I64)
    max_value: bytes | None = optional(5, BINARY)
    min_value: bytes | None = optional(6, BINARY)
    is_max_value_exact: bool | None = optional(7, BOOL)
    is_min_value_exact: bool | None = optional(8, BOOL)
    nan_count: int | None = optional(9, I64)


class StringType(Struct):
    pass


class UUIDType(Struct):
    pass


class MapType(Struct):
    pass


class ListType(Struct):
    pass


class EnumType(Struct):
    pass


class DateType(Struct):
    pass


class Float16Type(Struct):
    pass


class NullType(Struct):
    pass


class DecimalType(Struct):
    scale: int = required(1, I32)
    precision: int = required(2, I32)


class MilliSeconds(Struct):
    pass


class MicroSeconds(Struct):
    pass


class NanoSeconds(Struct):
    pass


class TimeUnit(Union):
    MILLIS: MilliSeconds | None = optional(1, MilliSeconds)
    MICROS: MicroSeconds | None = optional(2, MicroSeconds)
    NANOS: NanoSeconds | None = optional(3, NanoSeconds)


class TimestampType(Struct):
    isAdjustedToUTC: bool = required(1, BOOL)
    unit: TimeUnit = required(2, TimeUnit)


class TimeType(Struct):
    isAdjustedToUTC: bool = required(1, BOOL)
    unit: TimeUnit = required(2, TimeUnit)


class IntType(Struct):
    bitWidth: int = required(1, I8)
    isSigned: bool = required(2, BOOL)


class JsonType(Struct):
    pass


class BsonType(Struct):
    pass


class VariantType(Struct):
    specification_version: int | None = optional(1, I8)


class GeometryType(Struct):
    crs: str | None = optional(1, STRING)


class GeographyType(Struct):
    crs: str | None = optional(1, STRING)
    algorithm: int | None = optional(2, EdgeInterpolationAlgorithm)


class FileType(Struct):
    pass


class LogicalType(Union):
    STRING: StringType | None = optional(1, StringType)
    MAP: MapType | None = optional(2, MapType)
    LIST: ListType | None = optional(3, ListType)
    ENUM: EnumType | None = optional(4, EnumType)
    DECIMAL: DecimalType | None = optional(5, DecimalType)
    DATE: DateType | None = optional(6, DateType)
    TIME: TimeType | None = optional(7, TimeType)
    TIMESTAMP: TimestampType | None = optional(8, TimestampType)
    INTEGER: IntType | None = optional(10, IntType)
    UNKNOWN: NullType | None = optional(11, NullType)
    JSON: JsonType | None = optional(12, JsonType)
    BSON: BsonType | None = optional(13, BsonType)
    UUID: UUIDType | None = optional(14, UUIDType)
    FLOAT16: Float16Type | None = optional(15, Float16Type)
    VARIANT: VariantType | None = optional(16, VariantType)
    GEOMETRY: GeometryType | None = optional(17, GeometryType)
    GEOGRAPHY: GeographyType | None = optional(18, GeographyType)
    FILE: FileType | None = optional(19, FileType)


class SchemaElement(Struct):
    type: int | None = optional(1, Type)
    type_length: int | None = optional(2, I32)
    repetition_type: int | None = optional(3, FieldRepetitionType)
    name: str = required(4, STRING)
    num_children: int | None = optional(5, I32)
    converted_type: int | None = optional(6, ConvertedType)
    scale: int | None = optional(7, I32)
    precision: int | None = optional(8, I32)
    field_id: int | None = optional(9, I32)
    logicalType: LogicalType | None = optional(10, LogicalType)


DATA_PAGE_TYPES = frozenset({PageType.DATA_PAGE, PageType.DATA_PAGE_V2})


class DataPageHeader(Struct):
    num_values: int = required(1, I32)
    encoding: int = required(2, Encoding)
    definition_level_encoding: int = required(3, Encoding)
    repetition_level_encoding: int = required(4, Encoding)
    statistics: Statistics | None = optional(5, Statistics)


class IndexPageHeader(Struct):
    pass


class DictionaryPageHeader(Struct):
    num_values: int = required(1, I32)
    encoding: int = required(2, Encoding)
    is_sorted: bool | None = optional(3, BOOL)


class DataPageHeaderV2(Struct):
    num_values: int = required(1, I32)
    num_nulls: int = required(2, I32)
    num_rows: int = required(3, I32)
    encoding: int = required(4, Encoding)
    definition_levels_byte_length: int = required(5, I32)
    repetition_levels_byte_length: int = required(6, I32)
    is_compressed: bool | None = optional(7, BOOL)
    statistics: Statistics | None = optional(8, Statistics)


class SplitBlockAlgorithm(Struct):
    pass


class BloomFilterAlgorithm(Union):
    BLOCK: SplitBlockAlgorithm | None = optional(1, SplitBlockAlgorithm)


class XxHash(Struct):
    pass


class BloomFilterHash(Union):
    XXHASH: XxHash | None = optional(1, XxHash)


class Uncompressed(Struct):
    pass


class BloomFilterCompression(Union):
    UNCOMPRESSED: Uncompressed | None = optional(1, Uncompressed)


class BloomFilterHeader(Struct):
    numBytes: int = required(1, I32)
    algorithm: BloomFilterAlgorithm = required(2, BloomFilterAlgorithm)
    hash: BloomFilterHash = required(3, BloomFilterHash)
    compression: BloomFilterCompression = required(4, BloomFilterCompression)


class PageHeader(Struct):
    type: int = required(1, PageType)
    uncompressed_page_size: int = required(2, I32)
    compressed_page_size: int = required(3, I32)
    crc: int | None = optional(4, I32)
    data_page_header: DataPageHeader | None = optional(5, DataPageHeader)
    index_page_header: IndexPageHeader | None = optional(6, IndexPageHeader)
    dictionary_page_header: DictionaryPageHeader | None = optional(7, DictionaryPageHeader)
    data_page_header_v2: DataPageHeaderV2 | None = optional(8, DataPageHeaderV2)


class KeyValue(Struct):
    key: str = required(1, STRING)
    value: str | None = optional(2, STRING)


class SortingColumn(Struct):
    column_idx: int = required(1, I32)
    descending: bool = required(2, BOOL)
    nulls_first: bool = required(3, BOOL)


class PageEncodingStats(Struct):
    page_type: int = required(1, PageType)
    encoding: int = required(2, Encoding)
    count: int = required(3, I32)


class ColumnMetaData(Struct):
    type: int = required(1, Type)
    encodings: list[int] = required(2, [Encoding])
    path_in_schema: list[str] | None = optional(3, [STRING])       # the IDL requires it, but arrow-rs can leave it out
    codec: int = required(4, CompressionCodec)
    num_values: int = required(5, I64)
    total_uncompressed_size: int = required(6, I64)
    total_compressed_size: int = required(7, I64)
    key_value_metadata: list[KeyValue] | None = optional(8, [KeyValue])
    data_page_offset: int = required(9, I64)
    index_page_offset: int | None = optional(10, I64)
    dictionary_page_offset: int | None = optional(11, I64)
    statistics: Statistics | None = optional(12, Statistics)
    encoding_stats: list[PageEncodingStats] | None = optional(13, [PageEncodingStats])
    bloom_filter_offset: int | None = optional(14, I64)
    bloom_filter_length: int | None = optional(15, I32)
    size_statistics: SizeStatistics | None = optional(16, SizeStatistics)
    geospatial_statistics: GeospatialStatistics | None = optional(17, GeospatialStatistics)


class EncryptionWithFooterKey(Struct):
    pass


class EncryptionWithColumnKey(Struct):
    path_in_schema: list[str] = required(1, [STRING])
    key_metadata: bytes | None = optional(2, BINARY)


class ColumnCryptoMetaData(Union):
    ENCRYPTION_WITH_FOOTER_KEY: EncryptionWithFooterKey | None = optional(1, EncryptionWithFooterKey)
    ENCRYPTION_WITH_COLUMN_KEY: EncryptionWithColumnKey | None = optional(2, EncryptionWithColumnKey)


class ColumnChunk(Struct):
    file_path: str | None = optional(1, STRING)
    file_offset: int | None = optional(2, I64)      # the IDL requires it, with a default, but some writers leave it out
    meta_data: ColumnMetaData | None = optional(3, ColumnMetaData)
    offset_index_offset: int | None = optional(4, I64)
    offset_index_length: int | None = optional(5, I32)
    column_index_offset: int | None = optional(6, I64)
    column_index_length: int | None = optional(7, I32)
    crypto_metadata: ColumnCryptoMetaData | None = optional(8, ColumnCryptoMetaData)
    encrypted_column_metadata: bytes | None = optional(9, BINARY)


class RowGroup(Struct):
    columns: list[ColumnChunk] = required(1, [ColumnChunk])
    total_byte_size: int = required(2, I64)
    num_rows: int = required(3, I64)
    sorting_columns: list[SortingColumn] | None = optional(4, [SortingColumn])
    file_offset: int | None = optional(5, I64)
    total_compressed_size: int | None = optional(6, I64)
    ordinal: int | None = optional(7, I16)


class TypeDefinedOrder(Struct):
    pass


class IEEE754TotalOrder(Struct):
    pass


class Int96TimestampOrder(Struct):
    pass


class ColumnOrder(Union):
    TYPE_ORDER: TypeDefinedOrder | None = optional(1, TypeDefinedOrder)
    IEEE_754_TOTAL_ORDER: IEEE754TotalOrder | None = optional(2, IEEE754TotalOrder)
    INT96_TIMESTAMP_ORDER: Int96TimestampOrder | None = optional(3, Int96TimestampOrder)


class PageLocation(Struct):
    offset: int = required(1, I64)
    compressed_page_size: int = required(2, I32)
    first_row_index: int = required(3, I64)


class OffsetIndex(Struct):
    page_locations: list[PageLocation] = required(1, [PageLocation])
    unencoded_byte_array_data_bytes: list[int] | None = optional(2, [I64])


class ColumnIndex(Struct):
    null_pages: list[bool] = required(1, [BOOL])
    min_values: list[bytes] = required(2, [BINARY])
    max_values: list[bytes] = required(3, [BINARY])
    boundary_order: int = required(4, BoundaryOrder)
    null_counts: list[int] | None = optional(5, [I64])
    repetition_level_histograms: list[int] | None = optional(6, [I64])
    definition_level_histograms: list[int] | None = optional(7, [I64])
    nan_counts: list[int] | None = optional(8, [I64])


class AesGcmV1(Struct):
    aad_prefix: bytes | None = optional(1, BINARY)
    aad_file_unique: bytes | None = optional(2, BINARY)
    supply_aad_prefix: bool | None = optional(3, BOOL)


class AesGcmCtrV1(Struct):
    aad_prefix: bytes | None = optional(1, BINARY)
    aad_file_unique: bytes | None = optional(2, BINARY)
    supply_aad_prefix: bool | None = optional(3, BOOL)


class EncryptionAlgorithm(Union):
    AES_GCM_V1: AesGcmV1 | None = optional(1, AesGcmV1)
    AES_GCM_CTR_V1: AesGcmCtrV1 | None = optional(2, AesGcmCtrV1)


class FileMetaData(Struct):
    version: int = required(1, I32)
    schema: list[SchemaElement] = required(2, [SchemaElement])
    num_rows: int = required(3, I64)
    row_groups: list[RowGroup] = required(4, [RowGroup])
    key_value_metadata: list[KeyValue] | None = optional(5, [KeyValue])
    created_by: str | None = optional(6, STRING)
    column_orders: list[ColumnOrder] | None = optional(7, [ColumnOrder])
    encryption_algorithm: EncryptionAlgorithm | None = optional(8, EncryptionAlgorithm)
    footer_signing_key_metadata: bytes | None = optional(9, BINARY)


class FileCryptoMetaData(Struct):
    encryption_algorithm: EncryptionAlgorithm = required(1, EncryptionAlgorithm)
    key_metadata: bytes | None = optional(2, BINARY)
