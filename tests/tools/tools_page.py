"""The parts of ``docs/reference/tools.md`` that follow from the sessions: counts, and outputs side
by side.

Each stands between two comments that name it. A test compares them with what it finds; with
``KPROTO_TOOLS_PAGE=write`` in the environment it writes them instead.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final

__all__ = ["counts", "outputs", "settle"]

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "tools.md"
WRITES: Final = os.environ.get("KPROTO_TOOLS_PAGE") == "write"


def settle(part: str, text: str) -> None:
    """The part of the page that is named so has to be ``text``, or becomes it."""
    page = PAGE.read_text("utf-8")
    begin, end = f"<!-- {part} -->\n", f"\n<!-- end of {part} -->"
    assert page.count(begin) == page.count(end) == 1, f"{PAGE} has no place for {part}"
    before, _, rest = page.partition(begin)
    present, _, after = rest.partition(end)
    if WRITES:
        PAGE.write_text(f"{before}{begin}{text}{end}{after}", "utf-8")
        return
    assert present == text, f"{PAGE}: {part}: set KPROTO_TOOLS_PAGE=write to write it"


def counts(rows: Iterable[tuple[str, str, Iterable[str]]]) -> str:
    """Rows are whose tools, what they are compared on, and the tool of each command."""
    lines = ["| tools | on | commands |", "|---|---|---|"]
    for tools, places, commands in rows:
        by_tool = Counter(commands)
        listed = ", ".join(f"{by_tool[tool]} {tool}" for tool in sorted(by_tool))
        lines.append(f"| {tools} | {places} | {by_tool.total()}: {listed} |")
    return "\n".join(lines)


def outputs(shown: Iterable[tuple[str, Sequence[tuple[str, str]]]]) -> str:
    """Commands, and for each by whom they were run, and what was printed."""
    return "\n\n".join(_table(command, columns) for command, columns in shown)


def _table(command: str, columns: Sequence[tuple[str, str]]) -> str:
    heads = "".join(f"<th>{_head(head)}</th>" for head, _ in columns)
    cells = "".join(
        f"<td><pre>{escape(text.strip(), quote=False)}</pre></td>" for _, text in columns
    )
    rows = f"<tr>{heads}</tr>\n<tr valign=top>{cells}</tr>"
    return f"{command}\n\n<table>\n{rows}\n</table>"


def _head(text: str) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
