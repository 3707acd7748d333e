"""The values of a column in memory: layouts, and the loops over them."""
