"""Tests of fastpq.picture."""
