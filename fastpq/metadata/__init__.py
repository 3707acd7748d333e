"""The footer: FileMetaData, RowGroupMetaData and ColumnChunkMetaData, decrypted and decoded on first use."""
