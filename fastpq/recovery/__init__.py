"""What can still be read of damaged and unfinished files (README.md of parquet-format, "Error recovery")."""
