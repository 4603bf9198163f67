"""``python -m wiredump``, and the ``wiredump`` command."""

from __future__ import annotations

from wiredump.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
