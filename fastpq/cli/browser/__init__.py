"""The terminal program of ``fastpq browse``: sheets of rows, one opened from another.

A sheet (``sheet.py``) says what there is to see, and knows nothing about terminals. ``sheet_view.py`` draws the part of it that
fits the terminal, ``prompt_field.py`` is the line for answers, and ``browser_app.py`` holds the keys and the stack of open
sheets. Only these three import textual.
"""
