"""One harness: jobs by peers by threads; results are compared before anything is timed."""
