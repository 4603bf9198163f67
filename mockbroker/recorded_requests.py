"""The requests in a journal, for tests, with assertions that show the journal when they fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from kproto.journal import Entry, Journal, describe, squash
from kproto.journal import select as select_entries

__all__ = ["RecordedRequests", "Request", "Requests"]

_SHOWN = 40
"""The maximum number of journal lines in a failed assertion."""


class Request:
    """One request, decoded on access."""

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
        """The id of the broker that received it."""
        return self.entry.broker_id

    @property
    def client_id(self) -> str | None:
        return self.entry.client_id

    @property
    def software(self) -> str | None:
        """The name and version that the client sent in ApiVersions, None if it sent none."""
        software = self.entry.client_software
        return None if software is None else str(software)

    @property
    def header(self) -> Any:
        return self._decoded().header

    @property
    def body(self) -> Any:
        """The message. Raises DecodeError if it cannot be decoded."""
        return self._decoded().body

    def _decoded(self) -> Any:
        decoded = self.entry.decode()
        if decoded.error is not None:
            raise decoded.error
        return decoded

    def __repr__(self) -> str:
        return describe(self.entry, since_ns=self.entry.timestamp_ns)


class Requests(Sequence[Request]):
    """Requests in the order in which they arrived."""

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
    """The requests to the brokers that write this journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def requests(self, api: int | str | None = None, **filters: Any) -> Requests:
        """Return the requests of one API (a key or a name), or all.

        ``filters`` are those of the journal: ``broker_id``, ``client_id``, ``client_software``,
        ``connection_id``, ``after``.
        """
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
        """Assert that the API was requested: ``times`` times and always at ``version``, if
        given."""
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
            self._fail(f"{api} was requested {len(found)} times, expected none")

    def assert_order(self, *apis: int | str, **filters: Any) -> None:
        """Assert that these APIs were requested in this order, with any requests in between."""
        left = list(apis)
        for request in self.requests(**filters):
            if left and _is(request, left[0]):
                left.pop(0)
        if left:
            wanted = ", ".join(map(str, apis))
            self._fail(f"not requested in this order: {wanted}; the first one missing is {left[0]}")

    def _fail(self, problem: str) -> None:
        __tracebackhide__ = True
        shown = "\n".join(self.lines(_SHOWN)) or "  nothing"
        raise AssertionError(f"{problem}. The journal:\n{shown}")

    def lines(self, most: int | None = None) -> Iterator[str]:
        """Yield the journal as text, or its last ``most`` entries."""
        entries = list(self._journal)
        first = entries[0].timestamp_ns if entries else 0
        if most is not None and len(entries) > most:
            yield f"  ... {len(entries) - most} earlier entries"
            entries = entries[-most:]
        for entry in entries:
            yield "  " + describe(entry, since_ns=first)


def _is(request: Request, api: int | str) -> bool:
    if isinstance(api, int):
        return request.api_key == api
    return bool(list(select_entries([request.entry], api=squash(api))))
