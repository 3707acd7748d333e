"""A file's footer: FileMetaData, RowGroupMetaData and ColumnChunkMetaData. They are decrypted and decoded on first use."""
