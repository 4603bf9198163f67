"""Defects about versions: KIP-35, KIP-511, KIP-896, and fields that a version lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from kproto.errors import DecodeError
from kproto.schema.versions import Versions
from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import API_VERSIONS, Link

__all__: list[str] = []

_METADATA: Final = 3
_ENDLESS: Final = 60
"""Number of attempts that shows that there would be no end."""


@defect("repeats-rejected-version")
class RepeatsRejectedVersion(Link):
    """Repeats ApiVersions at the version that was just refused."""

    def next_version(self, refused: int, attempt: int, rows: Mapping[int, Versions]) -> int | None:
        return refused if attempt < _ENDLESS else None


@defect("gives-up-on-error-35")
class GivesUpOnError35(Link):
    """Treats the refusal of one ApiVersions version as the refusal of all."""

    def next_version(self, refused: int, attempt: int, rows: Mapping[int, Versions]) -> int | None:
        return None


@defect("steps-to-named-version-only")
class StepsToNamedVersionOnly(Link):
    """Does not try version 0 if the refusal names no version of ApiVersions."""

    def next_version(self, refused: int, attempt: int, rows: Mapping[int, Versions]) -> int | None:
        row = rows.get(API_VERSIONS)
        return row.highest if row is not None and row.highest < refused else None


@defect("reads-refusal-at-requested-version")
class ReadsRefusalAtRequestedVersion(Link):
    """Decodes error 35 at the version it requested instead of version 0."""

    def read_refusal(self, frame: bytes) -> Any:
        return self.codec.decode_response(
            frame, api_key=API_VERSIONS, api_version=self.first_version()
        )[1]


@defect("speaks-its-newest-version")
class SpeaksItsNewestVersion(Link):
    """Requests the broker's versions but sends its own newest ones."""

    def choose_version(self, api_key: int) -> int:
        return self.codec.apis[api_key].valid_versions.highest


@defect("speaks-the-lowest-version")
class SpeaksTheLowestVersion(Link):
    """Uses the lowest common version instead of the highest."""

    def choose_version(self, api_key: int) -> int:
        super().choose_version(api_key)
        ours = self.codec.apis[api_key].valid_versions
        return max(ours.lowest, self.versions[api_key].lowest)


@defect("refuses-unknown-keys")
class RefusesUnknownKeys(Link):
    """Refuses a broker that has an unknown API."""

    def take_versions(self, body: Any) -> Mapping[int, Versions]:
        found = super().take_versions(body)
        unknown = [key for key in found if key not in self.codec.apis]
        if unknown:
            raise DecodeError(f"api key {unknown[0]} does not exist", offset=0, path="api_keys")
        return found


@defect("one-broker-speaks-for-all")
class OneBrokerSpeaksForAll(Client):
    """Assumes for ever that every broker has the versions of the first one."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, Versions] = {}

    def connect(self, arguments: Mapping[str, Any]) -> None:
        super().connect(arguments)
        self.known = {}

    async def link_to(self, address: tuple[str, int]) -> Link:
        link = await super().link_to(address)
        self.known = self.known or dict(link.versions)
        link.versions = self.kept(link.versions)
        return link

    def kept(self, offered: Mapping[int, Versions]) -> Mapping[int, Versions]:
        """Return the versions assumed for a broker that advertises these."""
        return self.known


@defect("drops-what-a-version-lacks")
class DropsWhatAVersionLacks(Client):
    """Omits a field that the broker's version lacks instead of refusing."""

    class Dropping(Link):
        def send(self, body: Any, version: int) -> Any:
            if version == 0 and getattr(body, "allow_replication_factor_change", True) is False:
                body.allow_replication_factor_change = True
            if version == 0 and getattr(body, "election_type", None):
                body.election_type = 0
            return super().send(body, version)

    link: type[Link] = Dropping
    name: ClassVar[str] = ""

    def require(self, link: Link, api_key: int, version: int, problem: str) -> None:
        """Requires nothing."""


@defect("keeps-all-ranges-but-metadata")
class KeepsAllRangesButMetadata(OneBrokerSpeaksForAll):
    """Takes the range of Metadata from each connection's ApiVersions but all others from the
    first."""

    def kept(self, offered: Mapping[int, Versions]) -> Mapping[int, Versions]:
        return {**self.known, _METADATA: offered[_METADATA]}
