"""One browser for all tests of a file."""

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio

from tests.browser.opening import chromium


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Any]:
    async with chromium() as opened:
        yield opened
