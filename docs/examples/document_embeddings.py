"""Embeddings: vectors as one column, read as one matrix, and the nearest documents."""

import numpy as np
from make_data import embeddings

import fastpq

data = embeddings()
fastpq.write_table(data, "embeddings.parquet", use_dictionary=False)

table = fastpq.read_table("embeddings.parquet")
matrix = np.stack(table["vector"].to_pylist()).astype(np.float32)
assert np.array_equal(matrix, np.stack(data["vector"]))
print(matrix.dtype, matrix.shape)

scores = matrix @ matrix[42]
nearest = np.argsort(-scores)[:3]
documents = table["document"].to_pylist()
print("nearest to doc-00042:", *(documents[place] for place in nearest))

# Single rows are read without the rest of the file.
with fastpq.ParquetFile("embeddings.parquet") as file:
    rows = file.take([7, 4711], ["document"])
    print(rows["document"].to_pylist())
