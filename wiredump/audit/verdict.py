"""Compare observed requests with the versions that a release's brokers support.

A request is refused if the release does not support its API key, or not at its version. ApiVersions
never is: brokers answer a version that is too high, too (KIP-511). The version that a client would
use instead is stated only if the traffic shows it:

- ``seen``: the same software used a version that the release supports;
- ``between``: it used lower and higher versions, and is assumed to know those between;
- ``none``: there is no common version. The API key is gone; or the client chose this version
  although newer ones were offered, so that it is the client's newest, and the release has only
  newer ones;
- ``unknown``: nothing shows it. If the client chose the newest version offered, it may know more.

Requests between brokers and controllers are not judged, nor are the keys that brokers support
depending on their configuration (telemetry, 71 and 72). Releases are known by what a broker's
listener for clients supports; a controller's listener differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, TypeAlias

from kproto.codec.registry import schema_of
from kproto.dialects import dialect
from kproto.errors import KprotoError
from kproto.journal import ClientSoftware
from kproto.schema.releases import Release
from kproto.schema.versions import Versions
from wiredump.audit.observed import Seen

__all__ = ["Audit", "Client", "Instead", "Refused", "Why", "audit"]

Why: TypeAlias = Literal["seen", "between", "none", "unknown"]

_API_VERSIONS: Final = 18
_BY_CONFIGURATION: Final = frozenset({71, 72})


class Instead(NamedTuple):
    """``version`` is None if ``why`` is ``none`` or ``unknown``; ``note`` explains it."""

    version: int | None
    why: Why
    note: str


class Refused(NamedTuple):
    """``served`` is the range that the release supports, or None."""

    api_key: int
    api: str
    version: int
    dialect: str
    requests: int
    served: Versions | None
    instead: Instead


class Client(NamedTuple):
    """``negotiates``: whether it sent ApiVersions on all connections."""

    client_id: str | None
    software: ClientSoftware | None
    connections: int
    requests: int
    negotiates: bool
    refused: list[Refused]
    not_judged: int


class Audit(NamedTuple):
    """The verdict for every client of the traffic, against one release."""

    release: Release
    clients: list[Client]

    @property
    def refused(self) -> list[Client]:
        """The clients with a refused request."""
        return [client for client in self.clients if client.refused]


def audit(clients: Iterable[Seen], release: Release) -> Audit:
    """Compare every client with one release."""
    everybody = list(clients)
    known: dict[object, list[Seen]] = {}
    for seen in everybody:
        known.setdefault(_library(seen), []).append(seen)
    return Audit(release, [_client(seen, known[_library(seen)], release) for seen in everybody])


def _library(seen: Seen) -> object:
    """Return the key of a library's version: clients with the same key know the same versions. A
    client without a software name is alone."""
    return seen.software if seen.software is not None else id(seen)


def _client(seen: Seen, alike: list[Seen], release: Release) -> Client:
    refused: list[Refused] = []
    not_judged = 0
    for (key, version, name), count in sorted(seen.uses.items()):
        if not _is_judged(key, name, release):
            not_judged += count
            continue
        served = release.apis.get(key)
        if name == "kafka" and served is not None and version in served:
            continue
        if key == _API_VERSIONS and served is not None:
            continue
        instead = _instead(key, version, name, served, alike, bool(seen.negotiated))
        refused.append(Refused(key, _name(key, name), version, name, count, served, instead))
    return Client(
        seen.client_id,
        seen.software,
        len(seen.connections),
        sum(seen.uses.values()),
        seen.negotiated == seen.connections,
        refused,
        not_judged,
    )


def _is_judged(key: int, name: str, release: Release) -> bool:
    if key in _BY_CONFIGURATION:
        return key in release.apis
    if key in release.apis or name != "kafka":
        return True
    api = dialect("kafka").apis.get(key)
    # An unknown API key belongs to a client's own dialect, not to the cluster.
    return api is None or "broker" in schema_of(api.request).listeners


def _name(key: int, name: str) -> str:
    try:
        api = dialect(name).apis.get(key)
    except KprotoError:  # a user's own dialect
        api = None
    return api.request.MESSAGE_NAME.removesuffix("Request") if api is not None else f"api {key}"


def _instead(
    key: int, version: int, name: str, served: Versions | None, alike: list[Seen], negotiates: bool
) -> Instead:
    if served is None:
        return Instead(None, "none", "the api is not served at all")
    if name != "kafka":
        return Instead(None, "unknown", f"it speaks the draft {name}")
    used = {
        number for seen in alike for api, number, which in seen.uses if (api, which) == (key, name)
    }
    common = [each for each in used if each in served]
    if common:
        how = "" if negotiates else ", though not seen to ask which are served"
        return Instead(max(common), "seen", f"it was seen to use version {max(common)}{how}")
    between = Versions(min(used), max(used)).intersect(served)
    if between:
        text = f"it uses versions from {min(used)} to {max(used)}, and perhaps those between"
        return Instead(between.highest, "between", text)
    offers = {each for seen in alike for each in seen.offers.get((key, version), ())}
    if version < served.lowest:
        if any(version < each.highest for each in offers):
            return Instead(None, "none", f"its newest is {version}: it took that of newer ones")
        if offers:
            return Instead(None, "unknown", "it took the newest it was offered, and may know newer")
    return Instead(None, "unknown", "no other version was seen")
