from fastpq.variant.shredded import Shredded

class NodeMemory: ...

class Tree(NodeMemory):
    names: list[str]
    def __init__(self, shredded: Shredded) -> None: ...
