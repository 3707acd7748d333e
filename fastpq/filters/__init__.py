"""Filters: what they mean, what they let a read leave out, and the rows that match."""
