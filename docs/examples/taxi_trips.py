"""Taxi trips: write them, read a few columns of some hours, and see what a filter reads."""

import numpy as np
from make_data import trips

import fastpq

fastpq.write_table(trips(), "trips.parquet", row_group_size=100_000, compression="zstd")

night = [
    ("pickup", ">=", np.datetime64("2024-01-20T02:00")),
    ("pickup", "<", np.datetime64("2024-01-20T05:00")),
]
with fastpq.ParquetFile("trips.parquet") as file:
    table = file.read(["zone", "fare"], filters=night)
    explanation = file.explain(night, ["zone", "fare"])
    print(f"{table.num_rows} of {file.num_rows} trips begin in the night")

groups = sum(group.rows > 0 for group in explanation.row_groups)
print(f"{groups} of {len(explanation.row_groups)} row groups are read")
assert explanation.bytes_read < explanation.num_bytes / 3

fares = table["fare"].to_numpy()
print(f"mean fare: {fares.mean():.2f}")
assert not fastpq.advise("trips.parquet").advice        # nothing would make scans of this file faster
