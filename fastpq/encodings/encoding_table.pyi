from fastpq.format import Encoding, Type

READABLE: dict[Encoding, frozenset[Type]]
WRITABLE: dict[Encoding, frozenset[Type]]
