"""Fragments of HTML. All text goes through ``text``, so that nothing from a peer becomes markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from kproto.journal import printable

__all__ = ["STYLE", "count", "details", "duration", "figure", "moment", "section", "table", "text"]

STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --soft: #5c6670;
  --line: #d9dee3; --band: #f4f6f8; --mark: #0b62a8; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --paper: #14171a; --soft: #9aa4ae;
  --line: #333a41; --band: #1c2126; --mark: #7ab8f0; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
header, main, footer { max-width: 76rem; margin: 0 auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 1.2rem 0 0.2rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 0.4rem; padding-top: 0.6rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.2rem 0 0.3rem; }
a { color: var(--mark); }
nav { display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; margin: 0.6rem 0; }
nav a { padding: 0.35rem 0; }
p, figure { margin: 0.5rem 0; }
.soft { color: var(--soft); }
.bad { color: var(--bad); }
dl.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr));
  gap: 0.6rem; margin: 1rem 0; }
dl.facts div { background: var(--band); border-radius: 6px; padding: 0.5rem 0.8rem; }
dl.facts dt { color: var(--soft); font-size: 0.85rem; }
dl.facts dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; -webkit-overflow-scrolling: touch; }
table { border-collapse: collapse; width: 100%; font-size: 0.87rem; }
th, td { text-align: left; padding: 0.3rem 0.6rem; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td { overflow-wrap: break-word; min-width: 4.5rem; max-width: 24rem; }
td.number { min-width: 0; }
th { white-space: nowrap; background: var(--band); }
td.roomy { min-width: 12rem; }
td.id { min-width: 8rem; overflow-wrap: anywhere; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure svg { display: block; width: 100%; min-width: 21rem; max-width: 44rem; height: auto; }
details { margin: 0.3rem 0; }
summary { cursor: pointer; padding: 0.35rem 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { font-size: 14px; } th, td { padding: 0.25rem 0.4rem; } }
"""


def text(value: Any) -> str:
    """Escape a text, with unprintable characters replaced; empty for None."""
    return "" if value is None else escape(printable(str(value)))


def count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def moment(ns: int | None) -> str:
    """Format a time in UTC, to the millisecond."""
    if ns is None:
        return ""
    try:
        when = datetime.fromtimestamp(ns // 10**9, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{ns} ns"
    return f"{when:%Y-%m-%d %H:%M:%S}.{ns % 10**9 // 10**6:03}"


def duration(ns: float | None) -> str:
    """Format a duration: 0.12 ms, 4.1 ms, 1.25 s."""
    if ns is None:
        return ""
    if ns < 1e6:
        return f"{ns / 1e6:.3f} ms"
    return f"{ns / 1e6:.1f} ms" if ns < 1e9 else f"{ns / 1e9:.2f} s"


_KINDS: Final = {"#": ' class="number"', "~": ' class="roomy"', "%": ' class="id"'}


def table(
    name: str, heads: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str = ""
) -> str:
    """Make a table. ``heads`` that end in # are of numbers, in ~ of texts that need space, in % of
    ids that may be broken anywhere. Values are plain text; ints get separators."""
    kinds = [_KINDS.get(head[-1:], "") for head in heads]

    def cell(value: Any, kind: str) -> str:
        shown = count(value) if type(value) is int else text(value)
        return f"<td{kind}>{shown}</td>"

    top = "".join(
        f'<th scope="col"{kind}>{text(head.rstrip("#~%"))}</th>'
        for head, kind in zip(heads, kinds, strict=True)
    )
    body = "".join("<tr>" + "".join(map(cell, row, kinds)) + "</tr>\n" for row in rows)
    told = f"<caption class=soft>{text(caption)}</caption>" if caption else ""
    # Focusable, so that it can be scrolled with the keyboard.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(name)}">'
        f'<table id="table-{escape(name)}">{told}<thead><tr>{top}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>\n"
    )


def figure(name: str, svg: str | None, told: str) -> str:
    """Make a figure. ``told`` is its text alternative."""
    if svg is None:
        return ""
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{text(told)}"', 1)
    return (
        f'<figure id="plot-{escape(name)}"><div class="scroll" tabindex="0" role="region" '
        f'aria-label="{text(told)}">{svg}</div></figure>\n'
    )


def details(summary: str, inside: str) -> str:
    """Make a section that can be folded. ``inside`` is HTML."""
    return f"<details><summary>{text(summary)}</summary>{inside}</details>\n"


def section(name: str, title: str, *inside: str) -> str:
    """Make a landmark with an id. ``inside`` is HTML."""
    return (
        f'<section id="{escape(name)}" aria-labelledby="{escape(name)}-title">'
        f'<h2 id="{escape(name)}-title">{text(title)}</h2>\n{"".join(inside)}</section>\n'
    )
