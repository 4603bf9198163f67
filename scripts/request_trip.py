"""How far one request travels: the project's files that run for it, and the hops between them.

The request is an AlterPartitionReassignments that moves partition foo-0 from brokers 1, 2, 3 to
4, 5, 6, or a Produce of one record to it. It goes to a running MockCluster over a socket. The same
request for another partition is sent first, so that imports and codecs made at first use are not
counted.

The script counts Python calls (``sys.setprofile``, event "call"; resuming a generator is one) into
files of this repository, from the moment the bytes reach the server's protocol until the
client has the answer and the journal has both entries:

* files: how many distinct files were called into;
* calls: how many calls there were;
* hops: how many calls were into another file than the call before. Returns do not count: a call
  there and back is one hop, and a second one if the caller then calls into its own file.

C code does not appear, so the native engine hides what it does. Counts on the same sources are
the same each time.

    python -m scripts.request_trip                        # kafka-4.4 and kafka-2.4
    python -m scripts.request_trip --profile kafka-3.9 --list
    python -m scripts.request_trip --api produce
    python -m scripts.request_trip --json
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import kproto
from kproto.codec.message import RequestMessage
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    PartitionProduceData,
    ProduceRequest,
    ReassignablePartition,
    ReassignableTopic,
    TopicProduceData,
)
from kproto.records import Record, build_batch
from mockbroker import MockCluster
from mockbroker.profiles import DEFAULT_PROFILE

_Request: TypeAlias = RequestMessage[Any]

__all__ = ["APIS", "PROFILES", "Trip", "main", "trace"]

PROFILES = (DEFAULT_PROFILE, "kafka-2.4")
_ROOT = f"{Path(__file__).resolve().parent.parent}/"
_PACKAGES = tuple(f"{_ROOT}{name}/" for name in ("kproto", "mockbroker"))


def _reassignment(partition: int) -> _Request:
    moved = ReassignablePartition(partition_index=partition, replicas=[4, 5, 6])
    return AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="foo", partitions=[moved])]
    )


def _record(partition: int) -> _Request:
    data = PartitionProduceData(
        index=partition, records=build_batch([Record(timestamp=1_000_000, value=b"value")])
    )
    topic = TopicProduceData(name="foo", partition_data=[data])
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])


APIS: Mapping[str, tuple[int, Callable[[int], _Request]]] = {
    "alter": (0, _reassignment),
    "produce": (8, _record),
}
"""Name -> the request's version, and the request for a partition."""


@dataclass(frozen=True, slots=True)
class Trip:
    """The calls that one request made, in order: (file relative to the repository, function)."""

    profile: str
    calls: tuple[tuple[str, str], ...]

    @property
    def files(self) -> dict[str, int]:
        """Calls by file, in the order in which files were first called into."""
        return dict(Counter(file for file, _ in self.calls))

    @property
    def hops(self) -> int:
        return sum(before[0] != after[0] for before, after in itertools.pairwise(self.calls))

    def to_dict(self) -> dict[str, object]:
        counts = {"files": len(self.files), "calls": len(self.calls), "hops": self.hops}
        return {"profile": self.profile, **counts, "calls_by_file": self.files}


def trace(profile: str, api: str = "alter") -> Trip:
    """Start a cluster, send the request and return its calls.

    Raises RuntimeError if the cluster refuses the request or does not record it in its journal.
    """
    return asyncio.run(_trace(profile, *APIS[api]))


async def _trace(profile: str, version: int, request: Callable[[int], _Request]) -> Trip:
    key = request(0).API_KEY
    calls: list[tuple[str, str]] = []

    def on_event(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_PACKAGES):
            calls.append((frame.f_code.co_filename.removeprefix(_ROOT), frame.f_code.co_name))

    topics = ["foo=1,2,3/1,2,3"]
    async with MockCluster(brokers=6, topics=topics, profile=profile, port=0) as mock:
        host, _, port = mock.bootstrap.partition(",")[0].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        await _send(reader, writer, request(1), version)
        recorded = len(mock.journal.select(api=key))
        await asyncio.sleep(0.01)  # the cluster's clock, in ms, always has to catch up
        sys.setprofile(on_event)
        try:
            await _send(reader, writer, request(0), version)
        finally:
            sys.setprofile(None)
        recorded = len(mock.journal.select(api=key)) - recorded
        writer.close()
    if recorded != 2:
        raise RuntimeError(f"the journal has {recorded} entries of the request instead of 2")
    received = next(i for i, (_, function) in enumerate(calls) if function == "data_received")
    return Trip(profile, tuple(calls[received:]))


async def _send(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: _Request, version: int
) -> None:
    """Send the request, and read the answer without decoding it while calls are traced."""
    tracing = sys.getprofile()
    sys.setprofile(None)
    frame = kproto.encode_request(
        request, api_version=version, correlation_id=1, client_id="request-trip"
    )
    sys.setprofile(tracing)
    writer.write(frame)
    size = await reader.readexactly(4)
    answer = size + await reader.readexactly(int.from_bytes(size, "big"))
    sys.setprofile(None)
    assert request.API_KEY is not None
    _, body = kproto.decode_response(answer, api_key=request.API_KEY, api_version=version)
    errors = [int(code) for code in re.findall(r"error_code=(-?\d+)", repr(body))]
    if any(errors):
        raise RuntimeError(f"the cluster refused the request: error codes {errors}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.request_trip",
        description="Count the files, calls and hops between files of one request's trip through "
        "a mock cluster.",
    )
    parser.add_argument(
        "--profile",
        action="append",
        help=f"profile of the cluster; repeatable (default: {' and '.join(PROFILES)})",
    )
    parser.add_argument(
        "--api", choices=APIS, default="alter", help="the request (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--list", action="store_true", help="list each file and its calls")
    options = parser.parse_args(arguments)
    trips = [trace(profile, options.api) for profile in options.profile or PROFILES]
    if options.json:
        print(json.dumps([trip.to_dict() for trip in trips], indent=2))
        return 0
    for trip in trips:
        print(f"{trip.profile}: {len(trip.files)} files, {len(trip.calls)} calls, {trip.hops} hops")
        if options.list:
            for file, count in trip.files.items():
                print(f"  {count:4d}  {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
