"""Memory that reading keeps for the next file: its size, its bound, and its release."""

from fastpq.arrays.memory import idle_bytes, release, set_idle_limit

__all__ = ["idle_bytes", "release", "set_idle_limit"]
