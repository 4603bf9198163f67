"""``connection_creation_rate`` of a real broker and of the mock, by hand (KIP-612)::

    python -m tests.real.connection_rate --release 4.4.0

Each side gets a quota of one connection a second for 127.0.0.1. Prints how many of twenty
connections at once are served, and after how many seconds the others are closed. It has its own
cluster, since all sessions of the data plane share the address.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from kproto.messages import AlterClientQuotasRequest, ApiVersionsRequest
from kproto.messages.alter_client_quotas_request import EntityData, EntryData, OpData
from mockbroker import MockCluster
from tests.mockbroker.wire import Wire
from tests.real.data.pairs import PROFILES
from tests.real.kafka import RealKafka

CONNECTIONS = 20
SETTLED = 3.0
"""Seconds until a broker has certainly read the quota."""
PATIENCE = 60.0


async def _outcome(wire: Wire) -> str:
    """What becomes of a connection on which ApiVersions is asked."""
    began = time.monotonic()
    wire.send(wire.frame(ApiVersionsRequest(), 0))
    try:
        async with asyncio.timeout(PATIENCE):
            first = await wire.reader.read(4)
    except ConnectionResetError:
        first = b""
    wire.writer.close()
    return "served" if first else f"closed after {time.monotonic() - began:.1f} s"


async def measured(address: tuple[str, int], codec_of: MockCluster) -> list[str]:
    """Set the quota, and tell what becomes of the connections, the distinct outcomes counted."""
    entry = EntryData(
        entity=[EntityData(entity_type="ip", entity_name="127.0.0.1")],
        ops=[OpData(key="connection_creation_rate", value=1.0)],
    )
    first = Wire(*await asyncio.open_connection(*address), codec_of.dialect)
    answer = await first.ask(AlterClientQuotasRequest(entries=[entry]), 1)
    assert answer.entries[0].error_code == 0, answer
    await asyncio.sleep(SETTLED)
    wires = [
        Wire(*await asyncio.open_connection(*address), codec_of.dialect) for _ in range(CONNECTIONS)
    ]
    outcomes = await asyncio.gather(*map(_outcome, wires))
    first.writer.close()
    return [f"{outcomes.count(each)} {each}" for each in sorted(set(outcomes))]


async def _main(release: str) -> int:
    async with MockCluster(brokers=1, profile=PROFILES[release]) as mock:
        host, port = mock.addresses[1].rsplit(":", 1)
        ours = await measured((host, int(port)), mock)
        with (
            tempfile.TemporaryDirectory() as folder,
            RealKafka(release, Path(folder), zookeeper=False, broker_ids=(1,)) as kafka,
        ):
            theirs = await measured(("127.0.0.1", kafka.ports[1]), mock)
    print(f"Kafka {release}: {'; '.join(theirs)}\nmock: {'; '.join(ours)}")
    return 0 if ours == theirs else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real.connection_rate")
    parser.add_argument("--release", choices=sorted(PROFILES), required=True)
    return asyncio.run(_main(parser.parse_args().release))


if __name__ == "__main__":
    sys.exit(main())
