"""Names of the files that a run writes, relative to its folder."""

from __future__ import annotations

import re

from kspec.results import Result

__all__ = ["client_page_path", "journal_path"]


def journal_path(result: Result, number: int) -> str:
    """Return the journal of a result's variant; ``number`` counts from 0."""
    suffix = f"-{number + 1}" if len(result.variants) > 1 else ""
    return f"journals/{_name(result.client)}/{_name(result.case.id)}{suffix}.jsonl"


def client_page_path(client: str) -> str:
    return f"clients/{_name(client)}.html"


def _name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text).strip("-.") or "client"
