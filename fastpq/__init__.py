"""A complete Apache Parquet codec for NumPy: reading, writing and Parquet Modular Encryption."""
