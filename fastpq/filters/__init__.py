"""Filters on rows: parsing and typing filters, outcomes by statistics and page indexes, masks of matching rows."""
