"""``help``, a command of each program: print a page of the documentation.

The distribution contains the pages of ``docs/`` as ``kproto/_docs``; in a checkout they are read
from ``docs/`` itself. A topic is a page's file name.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import click
from rich.markdown import Markdown

from kproto.cli.completing import starting_with
from kproto.cli.console import Console
from kproto.cli.terminal import echo, echo_text

__all__ = ["help_command", "help_topics"]

_FOLDERS = ("tutorials", "how-to", "reference", "explanation")


@cache
def help_topics() -> dict[str, Path]:
    """Return the page of each topic."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_docs"
    docs = installed if installed.is_dir() else package.parent / "docs"
    pages = (page for folder in _FOLDERS for page in sorted((docs / folder).glob("*.md")))
    return {page.stem: page for page in pages if page.stem != "index"}


def _topic_names(_context: click.Context, _option: click.Parameter, text: str) -> list[str]:
    return starting_with(text, help_topics())


@click.command("help")
@click.argument("topic", required=False, shell_complete=_topic_names)
def help_command(topic: str | None) -> None:
    """Print a page of the documentation, or the list of topics."""
    topics = help_topics()
    if topic is None:
        width = max(map(len, topics))
        for name, page in topics.items():
            with page.open(encoding="utf-8") as lines:
                title = next((line.lstrip("# ") for line in lines if line.startswith("# ")), "")
            echo(f"{name:{width}}  {title.strip()}")
        return
    if topic not in topics:
        raise click.UsageError(f"no topic {topic!r}; the topics are {', '.join(topics)}")
    text = topics[topic].read_text("utf-8")
    if sys.stdout.isatty():
        Console(multiline=True).print(Markdown(text))
    else:
        echo_text(text, nl=False)
