"""Python side of the jar's format: workers that read and write files in shared memory, which the classes in ``java`` use.

The jar's format belongs to Spark's own file source, which lists files, prunes folders, makes tasks and commits writes.
``daemon`` starts the workers and ``worker`` answers the Java classes. ``questions`` answers the driver. On executors
``file_reading`` reads a file and ``file_writing`` writes one. ``layout`` and ``segments`` place columns in shared memory.
``hadoop`` is for files that are not local, whose bytes pass through the JVM.
"""
