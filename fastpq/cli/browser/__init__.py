"""The terminal program of ``fastpq browse``: sheets of rows, one opened from another.

A sheet (``sheet.py``) says what there is to see, and knows nothing about terminals. ``sheet_view.py`` draws the part of it that
fits the terminal. ``browser_app.py`` has the line for answers, the keys, and the stack of open sheets. Only these two import
textual.
"""
