"""Helpers for all subpackages: threads, progress, late imports, reprs, and advice for names from other libraries."""
