"""Datasets: many files read and written as one table, with hive partition columns from paths.

discovery finds files, hive parses and makes partition paths, unify finds one schema. dataset reads by opened_files, and skips
files by partition_filters. partitioning writes tables; records has the commits of datasets in S3.
"""
