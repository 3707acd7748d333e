"""Reads and writes files for programs with an asyncio event loop.

``reader_tasks`` runs the reader's functions as greenlets in a few threads. While one waits for a filesystem, others go on.
``async_file`` has AsyncParquetFile and aread_table over them, and ``async_writer`` has AsyncParquetWriter.
"""
