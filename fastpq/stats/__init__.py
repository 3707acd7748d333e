"""Statistics of values: minimum and maximum in a column's order, geospatial bounds, and mistakes of known writers."""
