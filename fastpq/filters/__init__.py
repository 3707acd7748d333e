"""Filters on rows: parsing and typing filters, outcomes by statistics and page indexes, masks of matching rows.

predicate parses filters into a tree of conditions; literals converts their values to keys of one order. evidence gives bounds
for deciding conditions without values; filtering evaluates the others on values, text and bytes by compare. answers takes null
counts and extremes from statistics.
"""
