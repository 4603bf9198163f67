"""``python -m wiredump.rows``: print docs/reference/tables.md, the tables' documentation."""

from __future__ import annotations

import sys

from wiredump.rows.documentation import text

__all__: list[str] = []

if __name__ == "__main__":
    sys.stdout.write(text())
