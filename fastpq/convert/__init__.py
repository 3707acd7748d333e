"""NumPy arrays, Python objects and pandas DataFrames to columns, and back."""
