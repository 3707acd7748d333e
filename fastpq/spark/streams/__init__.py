"""Structured Streaming over datasets: read the files that arrive in a folder, and write each batch once."""
