"""Reading: the plan of row groups, pages and byte ranges, and the scan that follows the plan."""
