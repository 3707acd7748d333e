"""Statistics of values: bounds and their orders, geospatial bounds, and the mistakes of known writers in them."""
