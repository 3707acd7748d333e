"""Input and output of bytes: paths and URLs (location), sources to read from, sinks to write to, files beside a file.

source opens local files, memory and file objects (origin), and by remote_source files on fsspec filesystems; coalescing merges
ranges, and retrying repeats requests. sink writes by new_file to disk, and by multipart to object stores, whose requests are in
object_store, s3, azure and google. siblings opens files beside a file.
"""
