"""Hooks of mkdocs: fill the generated parts of the pages when the site is built, and add the pages
that are generated as a whole."""

from __future__ import annotations

from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from scripts import conformance_results
from scripts.reference_pages import filled

__all__ = ["on_files", "on_page_markdown"]


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the results of each client. The summaries are pages with generated parts."""
    for path, text in conformance_results.pages().items():
        if files.get_file_from_path(path) is None:
            files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return filled(markdown)
