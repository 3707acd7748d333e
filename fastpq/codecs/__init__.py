"""Compression of pages."""
