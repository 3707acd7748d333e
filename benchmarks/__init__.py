"""Benchmark harness: jobs by peers by threads; every result is compared with the truth before timing."""
