"""``python -m wiredump``, and the ``wiredump`` command."""

from __future__ import annotations

import gc
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line in a process that ends with it."""
    # Before anything is imported: collections would look for garbage among modules.
    gc.set_threshold(100_000)
    from wiredump import cli
    from wiredump.cli.lean import own_process

    own_process()
    cli.main()


if __name__ == "__main__":
    main()
