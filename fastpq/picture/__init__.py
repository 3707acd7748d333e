"""A file's picture: which part owns each byte, drawn as HTML and SVG."""
