"""The client on uvloop, whose transports derive from no class of asyncio's."""

import asyncio
import ssl
from typing import Any

from kproto.client import Admin, SaslPlain, TopicPartition
from mockbroker import MockCluster
from tests.client.test_sasl import PEM, secured, tls_server
from tests.support.toolchain import require_module

FOO0 = TopicPartition("foo", 0)


async def operate() -> None:
    async with (
        MockCluster(brokers=4, topics=["foo=1,2,3"], profile="kafka-3.9-zk") as mock,
        Admin(mock.bootstrap, retry_backoff_ms=1) as admin,
    ):
        await admin.alter_partition_reassignments({FOO0: [2, 3, 4]}).all()
        mock.failover(2)
        assert list(await admin.list_partition_reassignments()) == [FOO0]
    async with (
        secured(tls_server()) as mock,
        Admin(
            mock.bootstrap,
            ssl=ssl.create_default_context(cafile=PEM),
            sasl=SaslPlain("alice", "pencil"),
        ) as admin,
    ):
        assert await admin.list_partition_reassignments() == {}


def test_on_uvloop() -> None:
    uvloop: Any = require_module("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(operate())
