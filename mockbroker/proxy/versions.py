"""The versions that clients see through the proxy: what the upstream has, as far as the proxy takes
part in it. No sockets.

``Clamp`` holds the ranges; ``ApiVersions`` responses are cut down to them, and requests above them
are refused. ``consequences`` says what a clamp takes from clients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kproto.dialects import Dialect
from kproto.schema.versions import Versions
from mockbroker.profiles import Profile
from mockbroker.proxy.addresses import REWRITTEN

__all__ = ["Clamp", "Consequence", "UnknownKeys", "consequences"]

UnknownKeys: TypeAlias = Literal["pass", "hide"]

_PRODUCE: Final = 0
_SASL_HANDSHAKE: Final = 17
_API_VERSIONS: Final = 18
_SASL_AUTHENTICATE: Final = 36
_READ_HERE: Final = frozenset(
    {_PRODUCE, _SASL_HANDSHAKE, _API_VERSIONS, _SASL_AUTHENTICATE}
    | {row.api_key for row in REWRITTEN}
)
"""The API keys that the proxy itself has to read, so that it needs a schema of their versions."""


class Clamp:
    """``profile`` limits versions and features to those of a release, ``features`` single features
    to a level. ``unknown_keys``: what becomes of API keys that ``codec`` lacks. ``served`` are the
    versions of the API keys that the upstream does not answer, whatever the profile."""

    def __init__(
        self,
        codec: Dialect,
        *,
        profile: Profile | None = None,
        features: Mapping[str, int] | None = None,
        unknown_keys: UnknownKeys = "pass",
        served: Mapping[int, Versions] | None = None,
    ) -> None:
        self.profile = profile
        self.served = served or {}
        self.unknown_keys = unknown_keys
        self._codec = codec
        self._features = dict(features or {})
        self._accepted: dict[tuple[int, int], bool] = {}

    def limit(self, api_key: int) -> Versions | None:
        """Return the versions that may pass; None for no limit. An empty range hides the key."""
        if api_key in self.served:
            return self.served[api_key]
        known = api_key in self._codec.apis
        if not known and self.unknown_keys == "hide":
            return Versions.NONE
        limit = self._codec.api(api_key).valid_versions if api_key in _READ_HERE else None
        if self.profile is None or (not known and api_key not in self.profile.versions):
            return limit
        own = self.profile.versions.get(api_key, Versions.NONE)
        return own if limit is None else own.intersect(limit)

    @property
    def shows_fallback_row(self) -> bool:
        """Whether the refusal of an ApiVersions version says which there are (KIP-511)."""
        return self.profile is None or self.profile.fallback_row

    def accepts(self, api_key: int, version: int) -> bool:
        """Whether a request passes. One that does not is refused as a broker would."""
        accepted = self._accepted.get((api_key, version))
        if accepted is None:
            limit = self.limit(api_key)
            accepted = self._accepted[api_key, version] = limit is None or version in limit
        return accepted

    def cut(self, body: Any) -> None:
        """Change an ApiVersions response to what passes. Produce keeps its lowest version of 0,
        which 4.x brokers advertise for old librdkafka (KAFKA-18659)."""
        rows = []
        for row in body.api_keys:
            if row.api_key in self.served:
                continue
            limit = self.limit(row.api_key)
            if limit is not None:
                both = Versions(row.min_version, row.max_version).intersect(limit)
                if not both:
                    continue
                row.min_version, row.max_version = both.lowest, both.highest
            rows.append(row)
        if not body.error_code:
            row_class = body.STRUCTS["ApiVersion"]
            rows += [
                row_class(api_key=key, min_version=each.lowest, max_version=each.highest)
                for key, each in self.served.items()
            ]
            rows.sort(key=lambda row: int(row.api_key))
        body.api_keys = rows
        body.supported_features = self._lowered(
            body.supported_features, "min_version", "max_version"
        )
        body.finalized_features = self._lowered(
            body.finalized_features, "min_version_level", "max_version_level"
        )

    def _lowered(self, rows: Sequence[Any], lowest: str, highest: str) -> list[Any]:
        kept = []
        for row in rows:
            level = self._feature_limit(row.name)
            if level is not None:
                if level < getattr(row, lowest) and lowest == "min_version":
                    continue
                setattr(row, highest, min(level, getattr(row, highest)))
                setattr(row, lowest, min(getattr(row, lowest), getattr(row, highest)))
                if not getattr(row, highest):
                    continue  # a finalized level of 0 is not listed
            kept.append(row)
        return kept

    def _feature_limit(self, name: str) -> int | None:
        """Return the highest level of a feature; None for no limit, 0 for none of it."""
        limit = self._features.get(name)
        if self.profile is None:
            return limit
        level = next((each.supported[1] for each in self.profile.features if each.name == name), 0)
        return level if limit is None else min(limit, level)


class Consequence(NamedTuple):
    """What clients cannot do if the highest version of an API that passes is below ``version``."""

    api_key: int
    version: int
    text: str


_CONSEQUENCES: Final = (
    Consequence(1, 13, "Fetch below 13 names topics, so clients do not use topic ids (KIP-516)"),
    Consequence(1, 7, "Fetch below 7 has no fetch sessions (KIP-227)"),
    Consequence(0, 12, "Produce below 12 has no implicit partitions of a transaction (KIP-890)"),
    Consequence(0, 3, "Produce below 3 has no record batches of format 2, so no idempotence"),
    Consequence(
        9, 7, "OffsetFetch below 7 cannot require stable offsets, so consumers of transactions "
        "may start from offsets that are not committed (KIP-447)",
    ),
    Consequence(22, 0, "InitProducerId is hidden: no idempotent or transactional producers"),
    Consequence(68, 0, "ConsumerGroupHeartbeat is hidden: consumers with group.protocol=consumer "
        "fail (KIP-848)"),
    Consequence(76, 0, "ShareGroupHeartbeat is hidden: share consumers fail (KIP-932)"),
    Consequence(60, 0, "DescribeCluster is hidden: admin clients use Metadata"),
    Consequence(45, 0, "AlterPartitionReassignments is hidden: no reassignments by the Admin API"),
)  # fmt: skip


def consequences(clamp: Clamp, upstream: Mapping[int, Versions] | None = None) -> list[str]:
    """Return what the profile takes from clients, in words. With the ``upstream``'s versions, only
    what it would have offered counts."""
    lost = []
    for each in _CONSEQUENCES:
        limit = clamp.limit(each.api_key)
        if (
            limit is None
            or each.api_key in clamp.served
            or (limit and limit.highest >= each.version)
        ):
            continue
        if upstream is not None:
            offered = upstream.get(each.api_key, Versions.NONE)
            if not offered or offered.highest < each.version:
                continue
        lost.append(each.text)
    return lost
