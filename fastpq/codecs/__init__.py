"""Compression codecs for pages (Compression.md): one file for each codec, and a table that lists them all.

The page checksum is here too.
"""
