"""Adapters for clients in Python: ``python -m kspec.adapters.python.<name>_adapter``."""
