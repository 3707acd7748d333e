"""Version of fastpq, also written into files (``created_by``)."""

VERSION = "0.1.0"
