"""A run as JSON, as JUnit XML, and as HTML pages. ``cli`` writes the files."""

from kspec.report.data import as_json, as_junit, resolved
from kspec.report.files import client_page_path, journal_file, journal_path
from kspec.report.maintainers import as_markdown, excerpt_of, failed_variant, findings_of
from kspec.report.page import as_client_html, as_html, as_maintainers_html

__all__ = [
    "as_client_html",
    "as_html",
    "as_json",
    "as_junit",
    "as_maintainers_html",
    "as_markdown",
    "client_page_path",
    "excerpt_of",
    "failed_variant",
    "findings_of",
    "journal_file",
    "journal_path",
    "resolved",
]
