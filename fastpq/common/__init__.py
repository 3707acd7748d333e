"""Helpers of every room: lazy imports, threads, progress, text and HTML of reprs."""
