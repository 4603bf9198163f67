"""Draw ``docs/pictures/demo.svg``: two steps of the demo as it prints them, for README.md.

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

from demo.catalog import client
from demo.cluster import start
from demo.drivers import drive
from demo.recording import Recording
from demo.screen import Terminal
from demo.story import run
from demo.wire import PROFILES
from kproto.cli.console import Console
from kspec.runner.install import install

__all__ = ["PICTURE", "draw", "main"]

PICTURE: Final = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "demo.svg"
CLIENT: Final = "kafka-python"
RELEASE: Final = "kafka-2.4"
WIDTH: Final = 98
FROM, UNTIL = "Start moving", "4, 5 and 6 catch up"
"""The heading of the first step in the picture, and of the first step after it."""

_FORMAT: Final = re.sub(
    r"@font-face \{\{.*?\}\}\s*|<!--.*?-->\s*", "", CONSOLE_SVG_FORMAT, flags=re.S
)


def draw() -> str:
    """Play the demo's story with one client and return its picture as SVG."""
    chosen = client(CLIENT)
    profile = next(each for each in PROFILES if each.name == RELEASE)
    out = io.StringIO()
    terminal = Terminal(
        Console(
            file=out,
            width=WIDTH,
            force_terminal=True,
            color_system="truecolor",
            highlight=False,
        )
    )
    with (
        start(profile.name, Recording(lambda entry: None).cluster()) as cluster,
        drive(install(chosen.installed), cluster.bootstrap, chosen.client_id) as driver,
    ):
        run(chosen, profile, driver, cluster, terminal)
    lines = Text.from_ansi(out.getvalue()).split("\n")
    first, last = (
        next(number for number, line in enumerate(lines) if heading in line.plain)
        for heading in (FROM, UNTIL)
    )
    console = Console(
        file=io.StringIO(), width=WIDTH, record=True, color_system="truecolor", multiline=True
    )
    console.print(Text("\n").join(lines[first:last]), soft_wrap=True, highlight=False)
    title = f"make demo: {CLIENT} {chosen.release} on a mock Kafka {RELEASE.partition('-')[2]}"
    return console.export_svg(title=title, code_format=_FORMAT, unique_id="demo") + "\n"


def main() -> None:
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw())


if __name__ == "__main__":
    main()
