"""Reads and writes column chunks: their pages, levels and values. Most modules are compiled.

Reading: page_walker steps from page header to page header, and page opens the bodies. value_reader decodes their values.
code_reader makes dictionary codes or verdicts instead. chunk_reader fills the output of a flat column (column_output).
nested_reader and assembly fill one output for each leaf of a nested column, and assemble joins these outputs to a column.

Writing: shred and leaf_entries make levels, and input converts the values to their stored form. chunk_writer cuts pages.
value_writer encodes their values, page_writer stores the pages, and page_log keeps their statistics.
"""
