"""Reading: a plan of row groups, pages and byte ranges, then a scan to fetch and decode the planned chunks.

file_reader gives a read to scan, or with filters and row ranges to selective. selection reads the evidence of a row group,
pruning draws the conclusions, selective reads the rows left. flat and nested decode one column for scan; opener opens its chunks.
"""

from fastpq.common.lazy import refuse_calls

refuse_calls(__name__)
