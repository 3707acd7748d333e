"""Encodes and decodes values and levels. Each encoding has its own file, with its kernels in c/.

interface says what such a file provides. encoding_table lists all encodings, and registry checks whether one fits a type. views
has the two forms of variable-length values, and status has the kernels' errors.
"""
