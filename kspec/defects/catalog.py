"""Every defect: those that the modules of this package declare."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from kspec import defects
from kspec.defects.declaration import DEFECTS, Defect
from kspec.reference_client.client import Client

__all__ = ["DEFECTS", "Defect", "wrong_client"]

for _module in iter_modules(defects.__path__):
    if _module.name != "__main__":
        import_module(f"{defects.__name__}.{_module.name}")


def wrong_client(name: str) -> Client:
    """Return a new client with that defect, or the correct one for "". Raises KeyError."""
    return DEFECTS[name].client() if name else Client()
