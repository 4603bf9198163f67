"""Schema and version to plan (``plan``: every wire rule), plan to Python text (``emit_*``)."""
