"""``python -m wiredump.rows``: print the columns of every table as Markdown."""

from __future__ import annotations

import sys

from wiredump.rows.documentation import tables

__all__: list[str] = []

if __name__ == "__main__":
    sys.stdout.write(tables())
