"""Check what a client sent, from the journal.

Version negotiation is compared with the versions that the Kafka release advertises and those that
the client is known to write. Nothing here talks to a client or to the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import kproto
from demo.catalog import API_VERSIONS, Client
from kproto.journal import Entry

__all__ = [
    "CONTROLLER_APIS",
    "PRODUCE",
    "PROFILES",
    "Profile",
    "api_name",
    "misdirected",
    "negotiation_problems",
    "requests",
    "version_problems",
    "versions_used",
]

UNSUPPORTED_VERSION = 35
PRODUCE = 0
CONTROLLER_APIS = (43, 45, 46)
"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A Kafka release, as far as the demo is concerned: the version ranges that its brokers
    advertise, and whether brokers forward requests to the controller (KRaft does; ZooKeeper-era
    brokers did not)."""

    name: str
    ranges: Mapping[int, tuple[int, int]]
    forwards: bool

    @property
    def guards_replication_factor(self) -> bool:
        """Whether it has version 1 of AlterPartitionReassignments, which brought KIP-860."""
        return self.ranges[45][1] >= 1


PROFILES = (
    Profile(
        "kafka-2.4", {3: (0, 9), 18: (0, 3), 43: (0, 2), 45: (0, 0), 46: (0, 0)}, forwards=False
    ),
    Profile(
        "kafka-4.4",
        {3: (0, 13), 18: (0, 5), 43: (0, 2), 45: (0, 1), 46: (0, 0), 60: (0, 2)},
        forwards=True,
    ),
)


def api_name(api_key: int | None) -> str:
    """Return the name of an API key: ``AlterPartitionReassignments``."""
    if api_key is None:
        return "?"
    api = kproto.dialect("kafka").apis.get(api_key)
    return f"api {api_key}" if api is None else api.request.MESSAGE_NAME.removesuffix("Request")


def requests(entries: Sequence[Entry], *api_keys: int) -> list[Entry]:
    """Return the requests among ``entries``, of these keys if any are given."""
    return [
        entry
        for entry in entries
        if entry.direction == "request" and (not api_keys or entry.api_key in api_keys)
    ]


def versions_used(entries: Sequence[Entry]) -> dict[int, list[int]]:
    """Return the versions of the requests by API key, both ascending."""
    used: dict[int, set[int]] = {}
    for entry in requests(entries):
        if entry.api_key is not None and entry.api_version is not None:
            used.setdefault(entry.api_key, set()).add(entry.api_version)
    return {key: sorted(used[key]) for key in sorted(used)}


def misdirected(entries: Sequence[Entry], profile: Profile, controller: int) -> list[str]:
    """Return the requests for the controller that went to a broker that does not forward them."""
    if profile.forwards:
        return []
    return [
        f"{api_name(entry.api_key)} went to broker {entry.broker_id}, not controller {controller}"
        for entry in requests(entries, *CONTROLLER_APIS)
        if entry.broker_id != controller
    ]


def negotiation_problems(entries: Sequence[Entry], client: Client, profile: Profile) -> list[str]:
    """Return all deviations in version negotiation; empty if there are none."""
    return [
        *_first_request_problems(entries, client),
        *_refusal_problems(entries, profile),
        *_advertised_problems(entries, profile),
        *version_problems(entries, entries, client, profile),
    ]


def _first_request_problems(entries: Sequence[Entry], client: Client) -> Iterator[str]:
    """The first request must be ApiVersions, in the version that this release of the client
    offers."""
    sent = requests(entries)
    if not sent:
        yield "nothing was sent"
        return
    first = sent[0]
    if (first.api_key, first.api_version) != (API_VERSIONS, client.offers):
        yield (
            f"first request is {api_name(first.api_key)} v{first.api_version}, "
            f"not ApiVersions v{client.offers}"
        )


def _refusal_problems(entries: Sequence[Entry], profile: Profile) -> Iterator[str]:
    """Above the broker's newest ApiVersions, the response is error 35 in version 0 with only the
    row of key 18 (KIP-511); another request must follow on the same connection and be accepted."""
    newest = profile.ranges[API_VERSIONS][1]
    for asked, answer in _api_versions_exchanges(entries):
        body = answer.decode().body
        if body is None:
            yield f"ApiVersions response #{answer.correlation_id} cannot be decoded"
        elif asked.api_version is not None and asked.api_version <= newest:
            if body.error_code:
                yield f"ApiVersions v{asked.api_version} was answered with {body.error_code}"
        else:
            rows = [(row.api_key, row.min_version, row.max_version) for row in body.api_keys]
            if body.error_code != UNSUPPORTED_VERSION or answer.api_version != 0:
                yield f"ApiVersions v{asked.api_version} was not refused with 35 in version 0"
            elif rows != [(API_VERSIONS, *profile.ranges[API_VERSIONS])]:
                yield f"the refusal of ApiVersions lists {rows}"
            if not _tried_again(entries, asked, newest):
                yield f"no second ApiVersions after the refusal of v{asked.api_version}"


def _tried_again(entries: Sequence[Entry], refused: Entry, newest: int) -> bool:
    return any(
        entry.sequence > refused.sequence
        and entry.connection_id == refused.connection_id
        and entry.broker_id == refused.broker_id
        and (entry.api_version or 0) <= newest
        for entry in requests(entries, API_VERSIONS)
    )


def _api_versions_exchanges(entries: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    waiting: dict[tuple[int, int, int | None], Entry] = {}
    for entry in entries:
        if entry.api_key == API_VERSIONS:
            place = (entry.broker_id, entry.connection_id, entry.correlation_id)
            if entry.direction == "request":
                waiting[place] = entry
            elif place in waiting:
                yield waiting.pop(place), entry


def _advertised_problems(entries: Sequence[Entry], profile: Profile) -> Iterator[str]:
    """The ApiVersions response must have the ranges of this Kafka release, for the keys of the
    catalog."""
    for key, ranges in _advertised(entries).items():
        for seen in ranges - {profile.ranges.get(key)}:
            if key in profile.ranges or key == 60:
                yield f"{profile.name} does not advertise {api_name(key)} {seen[0]}-{seen[1]}"


def _advertised(entries: Sequence[Entry]) -> dict[int, set[tuple[int, int]]]:
    """Return, by API key, every range of an accepted ApiVersions response."""
    ranges: dict[int, set[tuple[int, int]]] = {}
    for _, answer in _api_versions_exchanges(entries):
        body: Any = answer.decode().body
        if body is not None and not body.error_code:
            for row in body.api_keys:
                ranges.setdefault(row.api_key, set()).add((row.min_version, row.max_version))
    return ranges


def version_problems(
    entries: Sequence[Entry], history: Sequence[Entry], client: Client, profile: Profile
) -> list[str]:
    """Every request of ``entries`` must have a version that the broker advertised in ``history``;
    of the keys in the catalog, the newest version that both sides support."""
    advertised = _advertised(history)
    problems = []
    for key, versions in versions_used(entries).items():
        if key == API_VERSIONS:
            continue  # has rules of its own: see _refusal_problems
        name = api_name(key)
        for version in versions:
            if not any(low <= version <= high for low, high in advertised.get(key, ())):
                problems.append(f"{name} v{version} was sent but is not advertised")
            highest = client.highest.get(key, version)
            best = min(highest, profile.ranges.get(key, (0, version))[1])
            if version != best:
                problems.append(f"{name} was sent in v{version}; both sides know v{best}")
    return problems
