"""An example pipeline on Spark (``python -m fastpq.spark.example``), with a key service that Spark's own reader can use too."""
