"""Reading: ``plan`` chooses row groups, pages and byte ranges, and ``scan`` fetches and decodes the planned chunks.

``file_reader`` is the entry. It hands a read of all rows to ``scan``, and a read with filters or row ranges to ``filtered``.
``flat``, ``int96_reading`` and ``nested`` decode one column for the scan. ``opener`` opens the column's chunks. ``int96``
chooses the unit of INT96 timestamps.
"""

from fastpq.common.lazy import refuse_calls

refuse_calls(__name__)
