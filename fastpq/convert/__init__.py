"""Conversion of NumPy arrays, Python objects and pandas DataFrames to columns and tables, and of tables to DataFrames.

caller_input makes columns and tables from what a caller passes. numpy_input makes columns from arrays. It calls casting for
numbers and times, object_input for Python values, and nested_input for lists and dicts. dataframe_input makes tables from
DataFrames, and dataframes and series make DataFrames from tables. schemas applies the caller's schema, and fitting fits later
tables to a file's first table.
"""
