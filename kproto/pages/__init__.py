"""HTML pages from Jinja2 templates: what the reports of ``kspec`` and ``wiredump`` share.

A page is one file that loads nothing. Every value is escaped, and its unprintable characters are
replaced, since names and error texts come from peers. The Content-Security-Policy of ``base.html``
allows only the scripts that ``Pages.render`` was given, by their hash, so that markup that was not
escaped could not run either.
"""

from __future__ import annotations

import base64
import codecs
import hashlib
from typing import Any, Final

from jinja2 import DictLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kproto.safe_text import printable_lines

__all__ = ["Pages"]

_BASE: Final = "kproto.pages"


class Pages:
    """The templates of ``package``, which may extend those of this package. All are read here, so
    that rendering opens no file."""

    def __init__(self, package: str) -> None:
        codecs.lookup("unicode_escape")  # Jinja's lexer uses it, and its first use opens a file
        self.environment = Environment(
            loader=DictLoader({**_templates(_BASE), **_templates(package)}),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.do"],
        )

    def render(self, template: str, *, scripts: tuple[str, ...] = (), **values: Any) -> str:
        """Return the page. ``scripts`` names templates that are inserted as they are."""
        loader = self.environment.loader
        assert loader is not None
        script = "".join(loader.get_source(self.environment, name)[0] for name in scripts)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        return self.environment.get_template(template).render(
            script=Markup(script), script_hash=f"sha256-{digest}", **values
        )


def _templates(package: str) -> dict[str, str]:
    loader, environment = PackageLoader(package), Environment()
    return {name: loader.get_source(environment, name)[0] for name in loader.list_templates()}


def _shown(value: Any) -> Any:
    """Return a value as templates print it: None as nothing, and text without control characters.
    Markup stays what it is, and lines stay lines."""
    if value is None:
        return ""
    return printable_lines(value) if type(value) is str else value
