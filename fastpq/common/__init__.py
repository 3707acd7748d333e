"""Helpers of every room: lazy imports, threads, progress, memory of the process, text and HTML of reprs."""
