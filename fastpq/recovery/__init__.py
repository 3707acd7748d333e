"""Reads of damaged and unfinished files: the rows still readable, and a report of the losses (parquet-format, "Error recovery").

A file is read by its footer, by its last checkpoint (footers), or by row groups rebuilt from page headers alone (pages, rebuild).
Damaged column chunks are surveyed for readable pages (survey), and the intact rows are read (reading).
"""
