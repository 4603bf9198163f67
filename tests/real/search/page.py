"""Tables for the documentation: results, what is left to chance, and which kinds are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kproto.dialects import dialect
from tests.real.chance import CHANCE, LATE, UNORDERED, ZNODE
from tests.real.search import results
from tests.real.search.clusters import RELEASES
from tests.real.search.kinds import load
from tests.real.search.search import kinds_file

__all__ = ["chance_table", "families_table", "kinds_table", "results_table"]


def chance_table() -> Iterator[Sequence[str]]:
    yield "API", "field", "compared", "why"
    for each in CHANCE:
        yield _name(each.api_key), f"`{each.path}`", _HOW[each.how], each.why
    for row in UNORDERED:
        yield _name(row.api_key), f"`{row.path}`", "in any order", row.why
    for late in LATE:
        yield _name(late.api_key), f"`{late.path}`", "without empty rows beside others", late.why


_HOW = {
    "hide": "whether it is there",
    "clock": "unless it is the present",
    "producer": "by the name of the producer",
    "session": "by the name of the session",
    "records": "batch by batch, without the checksum",
    "coordinator": "whether it coordinates",
    "ids": "without ids",
    "count": "by their number",
    "broker": "whether it is a live broker",
}


def _name(api_key: int) -> str:
    return "in ZooKeeper" if api_key == ZNODE else dialect("kafka").api(api_key).name


def kinds_table() -> Iterator[Sequence[str]]:
    yield "release", "API", "versions", "field", "Kafka", "mock"
    for release in RELEASES:
        for kind in load(kinds_file(release)):
            signature = kind.signature
            path = f"`{signature.path}`" if signature.path else "the connection"
            versions = ", ".join(map(str, sorted(kind.versions)))
            yield release, signature.api, versions, path, signature.kafka, signature.mock


def results_table() -> Iterator[Sequence[str]]:
    yield "release", "seed", "programs", "requests", "fields", "kinds"
    for each in results.load(results.RESULTS):
        yield each.release, f"`{each.seed}`", *_numbers(each.total)


def families_table() -> Iterator[Sequence[str]]:
    yield "release", "family", "programs", "requests", "fields", "kinds"
    for each in results.load(results.RESULTS):
        for family, counts in each.families.items():
            yield each.release, family, *_numbers(counts)


def _numbers(counts: results.Counts) -> Sequence[str]:
    return [f"{each:,}" for each in counts]
