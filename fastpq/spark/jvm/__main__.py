"""The command that builds the jar."""

from fastpq.spark.jvm.jar import build_from_command_line

build_from_command_line()
