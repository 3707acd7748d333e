"""Tests of fastpq.advice."""
