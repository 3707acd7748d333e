"""Readings of a sensor: encodings for floats, missing values, and a read into your own array."""

import os

import numpy as np
from make_data import sensor

import fastpq

readings = sensor()
fastpq.write_table(readings, "plain.parquet")
fastpq.write_table(readings, "split.parquet", encoding="auto", compression="zstd")
share = os.path.getsize("split.parquet") / os.path.getsize("plain.parquet")
print(f"encodings chosen from a sample save more than a quarter: {share < 0.75}")

with fastpq.ParquetFile("split.parquet") as file:
    for chunk in file.metadata.row_group(0).to_dict()["columns"]:
        encodings = [name for name in chunk["encodings"] if name != "RLE"]      # RLE is for nulls
        print(chunk["path_in_schema"], *encodings)
    vibration = np.empty(file.num_rows)
    file.read(["vibration"], out={"vibration": vibration})
    temperature = file.read(["temperature"])["temperature"].to_numpy()

assert np.array_equal(vibration, readings["vibration"])
print(f"missing temperatures: {temperature.mask.sum()}")
print(f"from {temperature.min():.1f} to {temperature.max():.1f} degrees")
