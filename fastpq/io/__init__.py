"""Input and output of bytes: paths and URLs (location), sources to read from, sinks to write to, files beside a file.

source opens local files, memory and file objects (origin), and by remote_source files on fsspec filesystems; coalescing merges
ranges, and retrying repeats requests. sink writes by new_file to disk, by multipart to S3. siblings opens files beside a file.
"""
