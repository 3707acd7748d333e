"""Between what callers hold - NumPy arrays, Python objects, DataFrames - and columns."""
