"""A dataset as a table: its files, their commits, and its types in Spark, Arrow and Parquet."""
