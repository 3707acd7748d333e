"""The engine of column chunks (compiled).

Reading: page_walker steps over page headers, page opens bodies, value_reader decodes values, code_reader codes and verdicts of
dictionaries.
chunk_reader fills the output of a flat column (column_output), nested_reader and assembly the outputs of a nested column's
leaves; assemble joins these to one column.
Writing: shred and leaf_entries make levels, input gives stored values, value_writer encodes, chunk_writer makes pages, page_log
keeps their statistics.
"""
