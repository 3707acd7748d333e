"""Recovery from damaged and unfinished files: their readable rows, and a loss report (parquet-format, "Error recovery").

A file is read by its own footer, by its last checkpoint (footers), or by row groups that are rebuilt from page headers alone
(pages, rebuild). A damaged column chunk is surveyed for readable pages (survey), and the intact rows are read (reading).
"""
