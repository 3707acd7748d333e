from typing import Any

PAGE_TYPES: dict[str, int]

def parse_page_header(data: Any) -> tuple[dict[str, Any], int]: ...
