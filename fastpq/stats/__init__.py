"""Statistics about values: minimum and maximum in a column's order, geospatial bounds, and known writer bugs.

statistics computes bounds, total_order compares those of IEEE 754 floats, bounds shortens them, and geospatial computes boxes.
writer_bugs lists what writers are known to get wrong. usable_statistics says which statistics of a column can be used.
"""
