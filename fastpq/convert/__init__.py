"""Conversion of NumPy arrays, Python objects and pandas DataFrames to columns and tables, and of tables to DataFrames."""
