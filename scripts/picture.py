"""Draw ``docs/pictures/demo.svg``: the demo's part on data as it prints it, for README.md.

    .venv/bin/python -m scripts.picture

A real client, kafka-python, talks to a mock cluster while this runs. The picture has nothing that
differs from run to run, and refers to no font on another host.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.text import Text

from demo.data import play_data
from demo.screen import Terminal
from kproto.cli.console import Console

__all__ = ["PICTURE", "draw", "main"]

PICTURE: Final = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "demo.svg"
WIDTH: Final = 98

_FORMAT: Final = re.sub(
    r"@font-face \{\{.*?\}\}\s*|<!--.*?-->\s*", "", CONSOLE_SVG_FORMAT, flags=re.S
)


def draw() -> str:
    """Play the demo's part on data and return its picture as SVG."""
    out = io.StringIO()
    screen = Console(
        file=out, width=WIDTH, force_terminal=True, color_system="truecolor", highlight=False
    )
    play_data(screen.print, Terminal(screen).produced)
    text = Text.from_ansi(out.getvalue())
    text.rstrip()
    console = Console(
        file=io.StringIO(), width=WIDTH, record=True, color_system="truecolor", multiline=True
    )
    console.print(text, soft_wrap=True, highlight=False)
    title = "make demo: a producer and a consumer on a mock Kafka 4.4"
    return console.export_svg(title=title, code_format=_FORMAT, unique_id="demo") + "\n"


def main() -> None:
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw())


if __name__ == "__main__":
    main()
