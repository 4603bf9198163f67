"""``python -m kspec``: the command line of ``runner.cli``."""

from __future__ import annotations

from kspec.runner.cli import main

if __name__ == "__main__":
    main()
