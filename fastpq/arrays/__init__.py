"""Columns and tables in memory, in Arrow's layout, and the memory that they take.

These are the main modules, in an order in which each imports only from modules before it. ``memory`` allocates arrays and
keeps freed blocks for later arrays, and ``allowance`` limits how much memory a read takes. ``slices`` reads strings and binary
values, whatever their layout is. ``binary`` converts them from one layout to another, and ``layouts`` has the layouts' classes.
``numpy_output`` converts values to NumPy arrays and Python objects, and ``preview`` to short texts for display. ``column_base``
is the base class of columns. ``flat_column`` and ``nested_columns`` have the columns themselves, ``concat`` joins columns, and
``table`` holds columns by name.
"""
