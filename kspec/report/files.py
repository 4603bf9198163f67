"""Names of the files that a run writes, relative to its folder."""

from __future__ import annotations

import re

from kspec.results import Result

__all__ = ["client_page_path", "journal_file", "journal_path"]


def journal_path(result: Result, number: int) -> str:
    """Return the journal of a result's variant; ``number`` counts from 0."""
    return journal_file(result.client, result.case.id, number, len(result.variants))


def journal_file(client: str, case: str, number: int, variants: int) -> str:
    """Return the journal of a variant of a case that has so many variants."""
    suffix = f"-{number + 1}" if variants > 1 else ""
    return f"journals/{_name(client)}/{_name(case)}{suffix}.jsonl"


def client_page_path(client: str) -> str:
    return f"clients/{_name(client)}.html"


def _name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text).strip("-.") or "client"
