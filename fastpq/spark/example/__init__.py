"""A pipeline on Spark to run in an empty folder (``python -m fastpq.spark.example``), with a key service for both readers."""
