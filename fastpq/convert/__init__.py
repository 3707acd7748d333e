"""Conversion of NumPy arrays, Python objects and pandas DataFrames to columns and tables, and of tables to DataFrames.

numpy_input makes columns of arrays: casting has numbers and times, object_input Python values, nested_input lists and dicts.
dataframe_input makes tables of DataFrames; dataframes and series make DataFrames of tables. schemas applies a caller's schema,
and fitting fits later tables to the first one of a file.
"""
