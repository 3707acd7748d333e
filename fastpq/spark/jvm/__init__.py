"""The way into Spark's JVM in columns: Python workers decode into shared memory, and the classes in ``java`` read there.

daemon starts the workers, worker answers Spark's classes, planning plans on the driver, scan reads on executors, layout and
segments lay columns out in shared memory, aggregates answers from footers, parts computes aggregates in tasks.
"""
