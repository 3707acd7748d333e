"""The public functions and classes: read_table and write_table, ParquetFile, ParquetWriter."""
