"""Statistics of values: minimum and maximum in a column's order, geospatial bounds, and mistakes of known writers.

statistics computes bounds (total_order: IEEE 754 floats), bounds shortens them, and geospatial computes boxes. quirks has the
mistakes of known writers, and trust the kinds of statistics that remain usable for a column.
"""
