"""Where bytes come from and go to: paths, URLs and file objects, mapped memory, files that appear whole."""
