"""What clients asked, for tests: requests out of a journal, and assertions that say what was heard
instead. Decodes; opens nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from kproto.journal import Entry, Journal, describe, squash
from kproto.journal import select as select_entries

__all__ = ["RecordedRequests", "Request", "Requests"]

_SHOWN = 40
"""Lines of the journal at most in a failed assertion."""


class Request:
    """One request, decoded when it is looked at."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry

    @property
    def api_key(self) -> int | None:
        return self.entry.api_key

    @property
    def version(self) -> int | None:
        return self.entry.api_version

    @property
    def broker(self) -> int:
        """The id of the broker that was asked."""
        return self.entry.broker_id

    @property
    def client_id(self) -> str | None:
        return self.entry.client_id

    @property
    def software(self) -> str | None:
        """Name and version, as ApiVersions told them; None for a client that did not."""
        software = self.entry.client_software
        return None if software is None else str(software)

    @property
    def header(self) -> Any:
        return self._decoded().header

    @property
    def body(self) -> Any:
        """The message. Raises the DecodeError of one that cannot be decoded."""
        return self._decoded().body

    def _decoded(self) -> Any:
        decoded = self.entry.decode()
        if decoded.error is not None:
            raise decoded.error
        return decoded

    def __repr__(self) -> str:
        return describe(self.entry, since_ns=self.entry.timestamp_ns)


class Requests(Sequence[Request]):
    """Requests in the order in which they came."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._all = [Request(entry) for entry in entries]

    @overload
    def __getitem__(self, index: int) -> Request: ...
    @overload
    def __getitem__(self, index: slice) -> list[Request]: ...
    def __getitem__(self, index: int | slice) -> Request | list[Request]:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    @property
    def versions(self) -> list[int | None]:
        return [each.version for each in self._all]

    @property
    def brokers(self) -> list[int]:
        return [each.broker for each in self._all]

    @property
    def bodies(self) -> list[Any]:
        return [each.body for each in self._all]

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self._all))}]"


class RecordedRequests:
    """What was asked of the brokers that write this journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def requests(self, api: int | str | None = None, **filters: Any) -> Requests:
        """The requests of one api (a key or a name), or all; ``filters`` are the journal's:
        ``broker_id``, ``client_id``, ``client_software``, ``connection_id``, ``after``."""
        found = select_entries(self._journal, api=api, direction="request", **filters)
        return Requests(found)

    def assert_requested(
        self,
        api: int | str,
        *,
        times: int | None = None,
        version: int | None = None,
        **filters: Any,
    ) -> Requests:
        """It was asked, ``times`` times if given, and at ``version`` throughout if given."""
        found = self.requests(api, **filters)
        if not found if times is None else len(found) != times:
            wanted = "at least once" if times is None else f"{times} times"
            self._fail(f"{api} was requested {len(found)} times, not {wanted}")
        if version is not None and set(found.versions) - {version}:
            self._fail(f"{api} was requested at versions {found.versions}, not {version}")
        return found

    def assert_not_requested(self, api: int | str, **filters: Any) -> None:
        found = self.requests(api, **filters)
        if found:
            self._fail(f"{api} was requested {len(found)} times, which it should not have been")

    def assert_order(self, *apis: int | str, **filters: Any) -> None:
        """These were asked in this order, whatever else was asked between them."""
        left = list(apis)
        for request in self.requests(**filters):
            if left and _is(request, left[0]):
                left.pop(0)
        if left:
            wanted = ", ".join(map(str, apis))
            self._fail(f"not requested in this order: {wanted}; {left[0]} is the first not found")

    def _fail(self, problem: str) -> None:
        __tracebackhide__ = True
        heard = "\n".join(self.lines(_SHOWN)) or "  nothing"
        raise AssertionError(f"{problem}. What was said:\n{heard}")

    def lines(self, most: int | None = None) -> Iterator[str]:
        """The journal for eyes, the last ``most`` entries of it."""
        entries = list(self._journal)
        first = entries[0].timestamp_ns if entries else 0
        if most is not None and len(entries) > most:
            yield f"  ... {len(entries) - most} before these"
            entries = entries[-most:]
        for entry in entries:
            yield "  " + describe(entry, since_ns=first)


def _is(request: Request, api: int | str) -> bool:
    if isinstance(api, int):
        return request.api_key == api
    return bool(list(select_entries([request.entry], api=squash(api))))
