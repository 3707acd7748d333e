"""Checks of a file against its own claims (``verify_file``): every offset, size, count, checksum, index, statistic and level.

``file_check`` opens the file and goes through it. ``footer_claims`` compares the entries of the footer with each other and with
the size of the file. ``chunk_check`` walks over the pages of a column chunk, ``page_content`` decodes one page, and
``value_claims`` compares what the pages hold with statistics, page indexes and bloom filters. ``nesting`` compares the levels of
columns that share a group, and ``claimed_order`` the order of the rows. What is wrong becomes a ``Violation`` (``findings``).
"""
