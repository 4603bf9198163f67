"""A run as JSON, as JUnit XML, and as an HTML page. ``cli`` writes the files."""

from kspec.report.data import as_json, as_junit
from kspec.report.page import as_html

__all__ = ["as_html", "as_json", "as_junit"]
