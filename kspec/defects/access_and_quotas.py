"""Defects about access rules, log directories and client quotas."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import Link

__all__: list[str] = []

_DEFAULT, _ANY_NAME = 1, 2
_FILTERS_OF_ACLS: Final = ("resource_name_filter", "principal_filter")


@defect("drops-a-filter-of-access-rules")
class DropsAFilterOfAccessRules(Link):
    """Leaves the names out of a filter of access rules, so that it matches every name."""

    def send(self, body: Any, version: int) -> Any:
        for each in (body, *getattr(body, "filters", ())):
            for name in _FILTERS_OF_ACLS:
                if hasattr(each, name):
                    setattr(each, name, None)
        return super().send(body, version)


@defect("believes-that-rules-were-made")
class BelievesThatRulesWereMade(Client):
    """Takes the answer to a change of access rules for success, whatever it says of each."""

    def acl_outcomes(self, wanted: Sequence[str], rows: Sequence[Any]) -> dict[str, Any]:
        return dict.fromkeys(wanted)


@defect("applies-the-first-filter")
class AppliesTheFirstFilter(BelievesThatRulesWereMade):
    """Removes the access rules of the first filter and of no other."""

    class FirstFilter(Link):
        """Sends one filter."""

        def send(self, body: Any, version: int) -> Any:
            if getattr(body, "filters", None):
                body.filters = body.filters[:1]
            return super().send(body, version)

    link = FirstFilter


@defect("lists-nothing-for-an-error")
class ListsNothingForAnError(Client):
    """Takes an answer that has an error for an empty list of access rules or quotas."""

    def check_acls(self, answer: Any) -> None:
        """Accepts every answer."""

    def check_quotas(self, answer: Any) -> None:
        """Accepts every answer."""


@defect("asks-one-broker-for-log-directories")
class AsksOneBrokerForLogDirectories(Client):
    """Sends what is for a broker's log directories to whichever broker it is connected to."""

    def log_dir_place(self, broker: int) -> Callable[[], Awaitable[Link]]:
        return self.any_link


@defect("hides-errors-of-log-directories")
class HidesErrorsOfLogDirectories(Client):
    """Lists no partitions for a log directory or a broker that has an error."""

    def log_dirs(self, broker: int, answer: Any) -> dict[str, Any]:
        found = super().log_dirs(broker, answer)
        return {key: each for key, each in found.items() if isinstance(each, list)}


@defect("never-removes-a-quota")
class NeverRemovesAQuota(Link):
    """Leaves a quota as it is where it should be removed."""

    def send(self, body: Any, version: int) -> Any:
        for entry in getattr(body, "entries", ()):
            entry.ops = [each for each in entry.ops if not each.remove]
        return super().send(body, version)


@defect("takes-the-default-for-any-name")
class TakesTheDefaultForAnyName(Link):
    """Asks for the quotas of every name where those of the default are wanted."""

    def send(self, body: Any, version: int) -> Any:
        for each in getattr(body, "components", ()):
            if getattr(each, "match_type", None) == _DEFAULT:
                each.match_type = _ANY_NAME
        return super().send(body, version)
