"""The connection of the reference client is given up at any moment."""

from __future__ import annotations

import asyncio

import pytest

from kspec.reference_client.link import Link, LinkClosedError


async def test_a_link_is_closed_while_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that ends closes it before there is a socket."""
    begun = asyncio.Event()

    async def never(host: str, port: int, **_tls: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "open_connection", never)
    link = Link(client_id="c", timeout=60, sasl=None)
    opening = asyncio.create_task(link.open("127.0.0.1", 1))
    beginning = asyncio.create_task(begun.wait())
    await asyncio.wait({beginning, opening}, return_when=asyncio.FIRST_COMPLETED)
    assert not opening.done()
    await link.close()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    with pytest.raises(LinkClosedError, match="closed by us"):
        link.send(None, 0)
