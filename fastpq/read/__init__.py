"""Reading: a plan of row groups, pages and byte ranges, then a scan to fetch and decode the planned chunks."""
