"""Hooks of mkdocs: fill the generated parts of the pages when the site is built."""

from __future__ import annotations

from typing import Any

from scripts.reference_pages import filled

__all__ = ["on_page_markdown"]


def on_page_markdown(markdown: str, **_: Any) -> str:
    return filled(markdown)
