"""The footer of a file: FileMetaData, RowGroupMetaData and ColumnChunkMetaData, decrypted and decoded on first use."""
