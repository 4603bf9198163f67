"""``python -m wiredump``, and the ``wiredump`` command."""

from __future__ import annotations

from typing import NoReturn

from wiredump import cli
from wiredump.cli.lean import own_process

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line in a process that ends with it."""
    own_process()
    cli.main()


if __name__ == "__main__":
    main()
