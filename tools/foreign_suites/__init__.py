"""The test suites of pyarrow, pandas and fastparquet, run against fastpq through thin shims.

``python -m tools.foreign_suites SUITE`` runs one suite and prints how many of its tests pass. A shim is a plugin of pytest that
puts functions of fastpq in the place of those of the other library. No test is edited. The suites of pyarrow and pandas are in
the installed packages. That of fastparquet is in a clone of its repository (``--source``). The tests that fail are of the kinds
in docs/pages/differences.md, compare texts of errors, or call what the shims do not have (NotImplementedError).
"""
