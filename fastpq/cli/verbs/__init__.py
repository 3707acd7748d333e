"""The verbs of the command. ``fastpq.cli.verb_registry`` finds the files in this folder."""
