"""``python -m kspec``: the command line of ``cli``."""

from __future__ import annotations

from kspec.cli import main

if __name__ == "__main__":
    main()
