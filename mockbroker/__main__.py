"""``python -m mockbroker``, and the ``mockbroker`` command."""

from __future__ import annotations

from mockbroker.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
