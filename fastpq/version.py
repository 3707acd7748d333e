"""The version of fastpq, as files written by it tell it."""

VERSION = "0.1.0"
