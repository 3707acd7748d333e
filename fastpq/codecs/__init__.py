"""Compression codecs of pages (Compression.md): one file a codec, one table of all codecs; and the checksum of a page."""
