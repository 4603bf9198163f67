"""Read the fenced code blocks of a Markdown page. Nothing here runs them.

An HTML comment right above a block says how to treat it:

``<!-- not run: REASON -->``  the block is only checked, not run
``<!-- exits with N -->``     the last command of the session fails with this code
"""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Block", "blocks_of", "commands_of"]

_FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)(?P=fence) *$",
    re.M | re.S,
)
_COMMENTS = re.compile(r"(?:<!--(?:(?!-->).)*-->\s*)+\Z", re.S)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    """Where the block begins in its page, counted from 1."""
    title: str = ""
    """The name of the file that the reader puts the block into."""
    reason: str = ""
    """Why the block is not run."""
    code: int = 0
    """The exit code of a session's last command."""


def blocks_of(page: str) -> Iterator[Block]:
    for found in _FENCE.finditer(page):
        language, _, options = found["info"].strip().partition(" ")
        before = _COMMENTS.search(page, 0, found.start())
        notes = before[0] if before else ""
        title = re.search(r'title="([^"]*)"', options)
        reason = re.search(r"<!--\s*not run:\s*(.*?)\s*-->", notes, re.S)
        code = re.search(r"<!--\s*exits with (\d+)\s*-->", notes)
        yield Block(
            language,
            textwrap.dedent(found["text"]),
            page.count("\n", 0, found.start()) + 1,
            title[1] if title else "",
            reason[1] if reason else "",
            int(code[1]) if code else 0,
        )


def commands_of(block: Block) -> list[tuple[str, str]]:
    """The commands of a ``console`` or ``sh`` block with the output that the page shows for each.

    ``sh`` blocks show none. A backslash at the end of a line continues the command.
    """
    text = block.text.replace("\\\n", " ")
    if block.language == "sh":
        return [(line, "") for line in text.splitlines() if line.partition("#")[0].strip()]
    found = []
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        found.append((command, shown.strip("\n")))
    return found
