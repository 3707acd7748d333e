"""``python -m fastpq`` is the command ``fastpq``."""

from fastpq.cli import main

if __name__ == "__main__":
    main()
