"""Input and output of bytes: paths and URLs (location), sources to read from, sinks to write to, files beside a file."""
