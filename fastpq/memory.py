"""Idle memory, kept by reads for later reads: its size, its bound, and its release."""

from fastpq.arrays.memory import idle_bytes, release, set_idle_limit

__all__ = ["idle_bytes", "release", "set_idle_limit"]
