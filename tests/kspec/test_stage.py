"""A play's cluster, as the steps of a case move it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import pytest

from kspec.case_parser import parse_case
from kspec.runner.stage import Stage

CASE = """\
title: t
source: KIP-455
about: a
cluster: {brokers: 2, topics: ["foo=1,2"]}
steps:
  - call: list_topics
may:
  - {says: it asks, requests: {api: Metadata}}
"""


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    started = Stage(parse_case(CASE, "x/001-x.yaml").case)
    await started.start()
    yield started
    await started.stop()


def address_of(stage: Stage, broker: int) -> tuple[str, int]:
    host, _, port = stage.mock.addresses[broker].rpartition(":")
    return host, int(port)


async def test_a_stopped_brokers_port_refuses_and_is_nobody_elses(stage: Stage) -> None:
    address = address_of(stage, 2)
    await stage.step("stop-broker 2")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(address)
    await stage.step("start-broker 2")
    socket.create_connection(address).close()


async def test_an_unreachable_brokers_port_neither_accepts_nor_refuses(stage: Stage) -> None:
    address, before = address_of(stage, 2), stage.shows_attempts
    await stage.make_unreachable(2)
    assert (before, stage.shows_attempts) == (True, False)
    with pytest.raises(TimeoutError):
        socket.create_connection(address, timeout=0.5)
    await stage.step("start-broker 2")
    socket.create_connection(address).close()
