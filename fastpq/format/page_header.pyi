PAGE_TYPES: dict[str, int]
