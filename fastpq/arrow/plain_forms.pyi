from typing import final

from fastpq.arrays.nodes import ArrayNode, FieldNode
from fastpq.arrays.table import AnyColumn

@final
class PlainForm:
    @property
    def node(self) -> FieldNode: ...
    @property
    def array_node(self) -> ArrayNode: ...
    def array(self) -> ArrayNode: ...

@final
class PlainForms:
    def __init__(self) -> None: ...
    def form(self, name: str, column: AnyColumn) -> PlainForm | None: ...
