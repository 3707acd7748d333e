from fastpq.variant.shredded import Shredded

class Tree:
    names: list[str]
    def __init__(self, shredded: Shredded) -> None: ...
