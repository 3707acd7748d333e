"""Advice on files and datasets: what makes them smaller, and faster for a use. Each change is tried on rows first.

``advisor`` has ``advise``. For one file, ``single_file`` asks an advisor. ``present_settings`` tells how the file was written,
``stored_bytes``, ``lookups`` and ``gpu_rules`` list what may be changed for a use, and ``trials`` writes the sample with a change
and measures the result. ``cautions`` are about safety. For a dataset, ``dataset_advisor`` asks about sample files,
``dataset_lookups`` makes changes on copies, and ``recipe_steps`` makes the steps in a recipe.
"""
