"""Datasets: many files read and written as one table, with hive partition columns from paths."""
