"""Read datasets: plan a scan on the driver, and read its parts as Arrow batches on executors."""
