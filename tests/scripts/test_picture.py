"""docs/pictures/demo.svg shows what the demo prints."""

import html
import re

import pytest

from scripts import picture


def shown(svg: str) -> list[str]:
    """The lines of the picture, but for what depends on when the client refreshes metadata, and on
    the broker that it takes its producer id from."""
    lines: dict[str, list[str]] = {}
    for height, text in re.findall(
        r'<text class="demo-r\d+"[^>]* y="([^"]+)"[^>]*>(.*?)</text>', svg
    ):
        lines.setdefault(height, []).append(html.unescape(text).replace("\xa0", " "))
    return [
        re.sub(r"producer \d000", "producer 1000", line)
        for line in map("".join, lines.values())
        if "correlation_id" not in line
    ]


@pytest.mark.slow
def test_the_picture_is_fresh() -> None:
    committed = shown(picture.PICTURE.read_text())
    assert len(committed) > 20
    assert committed == shown(picture.draw()), "stale: .venv/bin/python -m scripts.picture"


def test_the_picture_loads_nothing() -> None:
    assert re.findall(r"https?://[^\"]+", picture.PICTURE.read_text()) == [
        "http://www.w3.org/2000/svg"
    ]
