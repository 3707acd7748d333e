"""Check that the driver and all executors can run fastpq: ``python -m fastpq.spark.check [MASTER]``.

``probe`` describes one process. It needs nothing but Python, so that it also runs where fastpq is missing. ``executors`` runs it
on all executors of a session, and ``problems`` compares the answers with the driver's.
"""
