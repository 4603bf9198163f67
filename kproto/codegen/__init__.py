"""Schema and version to plan (``plan``: every wire rule), plan to Python (``emit_*``, ``codec``)."""
