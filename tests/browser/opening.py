"""A page in headless Chromium, watched: what it says, what it asks for, how it looks.

Debian's Chromium is driven by playwright, which comes from PyPI and would bring browsers of its
own: none of those is downloaded. A page is opened by ``opened`` and looked at by ``layout``. Tests
get the browser from the fixture of that name, and share its event loop (``loop_scope="module"``).
Screenshots are kept in ``SCREENSHOTS``; their paths are printed, so that pytest shows those of a
test that fails.
"""

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from kspec.runner.toolchains import TOOLCHAINS
from tests.support.toolchain import require, require_module

__all__ = ["DESKTOP", "PHONE", "SCREENSHOTS", "Scheme", "Watched", "chromium", "opened"]

PHONE: Final = 390
DESKTOP: Final = 1280
_HEIGHTS: Final = {PHONE: 844, DESKTOP: 900}
"""Of the windows, by their width: of a telephone, and of a desk."""

SCREENSHOTS: Final = Path(__file__).resolve().parents[2] / ".cache" / "screenshots"

Scheme: TypeAlias = Literal["light", "dark"]


@dataclass
class Watched:
    """``page`` is playwright's. ``said``: what the console has of warnings and errors, exceptions
    that no script caught, requests that failed. ``asked``: every address that was asked for."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def keeps_to(self, page: Path) -> None:
        """Nothing to complain of, and nothing asked for but the page."""
        assert self.said == []
        assert {address.partition("#")[0] for address in self.asked} == {page.as_uri()}


@asynccontextmanager
async def chromium() -> AsyncIterator[Any]:
    """A browser. Skips (fails where required) without Chromium or playwright."""
    require("chromium")
    playwright = require_module("playwright.async_api")
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=shutil.which(TOOLCHAINS["chromium"].command),
            # Its sandbox takes a user other than root; what is opened here is our own.
            args=["--no-sandbox"],
        )
        yield browser
        await browser.close()


@asynccontextmanager
async def opened(
    browser: Any, url: str, *, width: int, scheme: Scheme = "light", name: str, whole: bool = True
) -> AsyncIterator[Watched]:
    """The page at ``url`` in a window of its own; a screenshot ``name`` is taken at the end, also
    of a test that failed: of the whole page, or of the window."""
    is_phone = width < 600
    page = await browser.new_page(
        viewport={"width": width, "height": _HEIGHTS[width]},
        color_scheme=scheme,
        is_mobile=is_phone,
        has_touch=is_phone,
    )
    page.set_default_timeout(120_000)  # a busy machine takes as long to draw a report
    watched = Watched(page)
    _watch(watched)
    try:
        await page.goto(url)
        yield watched
    finally:
        await _screenshot(page, f"{name}-{width}-{scheme}", whole)
        await page.close()


def _watch(watched: Watched) -> None:
    said, page = watched.said, watched.page

    def message(told: Any) -> None:
        if told.type in ("error", "warning"):
            said.append(f"{told.type}: {told.text}")

    page.on("console", message)
    page.on("pageerror", lambda error: said.append(f"exception: {error}"))
    page.on("requestfailed", lambda asked: said.append(f"failed: {asked.url} ({asked.failure})"))
    page.on("request", lambda asked: watched.asked.append(asked.url))


async def _screenshot(page: Any, name: str, whole: bool) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / (re.sub(r"[^\w.-]+", "-", name) + ".png")
    # A page of 40,000 pixels takes seconds, and far more on a busy machine.
    await page.screenshot(path=path, full_page=whole, timeout=120_000)
    print(f"screenshot: {path}")
