"""The requests in a journal, for tests, with assertions that show the journal when they fail.

An API is given by key, by name or by the class of its request; requests that are selected by class
have bodies of that class for type checkers. Names that no API has are errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, NoReturn, TypeAlias, TypedDict, TypeVar, Unpack, overload

from kproto.codec.message import Message, RequestMessage
from kproto.dialects import Dialect, dialect
from kproto.errors import UnknownNameError
from kproto.journal import DecodedEntry, Entry, Journal, describe, squash
from kproto.journal import select as select_entries
from kproto.messages.request_header import RequestHeader
from kproto.near_names import with_suggestion
from mockbroker.running.journal_lines import journal_lines

__all__ = [
    "ApiChoice",
    "RecordedRequests",
    "Request",
    "RequestFilters",
    "Requests",
    "api_keys",
    "named",
]

B_co = TypeVar("B_co", covariant=True)
M = TypeVar("M", bound=RequestMessage[Message])

ApiChoice: TypeAlias = int | str | type[RequestMessage[Message]]
"""An API's key, one of its names (``Metadata``, ``METADATA``) or the class of its request."""

_SHOWN = 40
"""The maximum number of journal lines in a failed assertion."""


class RequestFilters(TypedDict, total=False):
    """Filters of the journal. ``client_software`` is a name, with or without the version;
    ``listener`` is the name of a broker's listener; ``after`` skips sequence numbers up to and
    including it."""

    broker_id: int | None
    connection_id: int | None
    client_id: str | None
    client_software: str | None
    listener: str | None
    after: int


class Request(Generic[B_co]):
    """One request, decoded on access."""

    def __init__(self, entry: Entry, codec: Dialect | None = None) -> None:
        self.entry = entry
        self._codec = codec

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
    def listener(self) -> str:
        """The name of the listener that it came in on; "" if the broker's configs name none."""
        return self.entry.listener

    @property
    def client_id(self) -> str | None:
        return self.entry.client_id

    @property
    def software(self) -> str | None:
        """The name and version that the client sent in ApiVersions, None if it sent none."""
        software = self.entry.client_software
        return None if software is None else str(software)

    @property
    def header(self) -> RequestHeader:
        header: RequestHeader = self._decoded().header
        return header

    @property
    def body(self) -> B_co:
        """The message. Raises DecodeError if it cannot be decoded."""
        body: B_co = self._decoded().body
        return body

    def _decoded(self) -> DecodedEntry:
        decoded = self.entry.decode(self._codec)
        if decoded.error is not None:
            raise decoded.error
        return decoded

    def __repr__(self) -> str:
        return describe(self.entry, since_ns=self.entry.timestamp_ns, using=self._codec)


class Requests(Sequence[Request[B_co]]):
    """Requests in the order in which they arrived."""

    def __init__(self, requests: Iterable[Request[B_co]]) -> None:
        self._all = list(requests)

    @overload
    def __getitem__(self, index: int) -> Request[B_co]: ...
    @overload
    def __getitem__(self, index: slice) -> list[Request[B_co]]: ...
    def __getitem__(self, index: int | slice) -> Request[B_co] | list[Request[B_co]]:
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
    def bodies(self) -> list[B_co]:
        return [each.body for each in self._all]

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self._all))}]"


class RecordedRequests:
    """The requests to the brokers that write this journal.

    ``codec`` gives the cluster's dialect. Every method that takes an API raises UnknownNameError
    for a name that neither this dialect nor the released protocol has.
    """

    def __init__(self, journal: Journal, codec: Callable[[], Dialect] = dialect) -> None:
        self._journal = journal
        self._codec = codec

    @overload
    def requests(self, api: type[M], **filters: Unpack[RequestFilters]) -> Requests[M]: ...
    @overload
    def requests(
        self, api: int | str | None = None, **filters: Unpack[RequestFilters]
    ) -> Requests[Any]: ...
    def requests(
        self, api: ApiChoice | None = None, **filters: Unpack[RequestFilters]
    ) -> Requests[Any]:
        """Return the requests of one API, or all."""
        return Requests(self._select(self._journal, api, filters))

    @overload
    def assert_requested(
        self,
        api: type[M],
        *,
        times: int | None = None,
        version: int | None = None,
        **filters: Unpack[RequestFilters],
    ) -> Requests[M]: ...
    @overload
    def assert_requested(
        self,
        api: int | str,
        *,
        times: int | None = None,
        version: int | None = None,
        **filters: Unpack[RequestFilters],
    ) -> Requests[Any]: ...
    def assert_requested(
        self,
        api: ApiChoice,
        *,
        times: int | None = None,
        version: int | None = None,
        **filters: Unpack[RequestFilters],
    ) -> Requests[Any]:
        """Assert that the API was requested: ``times`` times and always at ``version``, if
        given."""
        found = Requests(self._select(self._journal, api, filters))
        if not found if times is None else len(found) != times:
            expected = "at least once" if times is None else f"{times} times"
            self._fail(f"{named(api)} was requested {len(found)} times, not {expected}")
        if version is not None and set(found.versions) - {version}:
            self._fail(f"{named(api)} was requested at versions {found.versions}, not {version}")
        return found

    def assert_not_requested(self, api: ApiChoice, **filters: Unpack[RequestFilters]) -> None:
        found = Requests(self._select(self._journal, api, filters))
        if found:
            self._fail(f"{named(api)} was requested {len(found)} times, expected none")

    def assert_order(self, *apis: ApiChoice, **filters: Unpack[RequestFilters]) -> None:
        """Assert that these APIs were requested in this order, with any requests in between."""
        left = [self._matcher(api) for api in apis]
        for request in self._select(self._journal, None, filters):
            if left and left[0](request.entry):
                left.pop(0)
        if left:
            expected = ", ".join(map(named, apis))
            missing = named(apis[len(apis) - len(left)])
            self._fail(
                f"not requested in this order: {expected}; the first one missing is {missing}"
            )

    def _select(
        self, entries: Iterable[Entry], api: ApiChoice | None, filters: RequestFilters
    ) -> Iterator[Request[Any]]:
        is_wanted = self._matcher(api)
        known = RequestFilters.__annotations__
        for name in filters.keys() - known:
            others = f"use {', '.join(known)}"
            problem = f"no filter {name!r}"
            raise TypeError(with_suggestion(problem, name, known, most=1, otherwise=others))
        for entry in select_entries(entries, direction="request", **filters):
            if is_wanted(entry):
                yield Request(entry, self._codec_of(entry))

    def _codec_of(self, entry: Entry) -> Dialect | None:
        """The cluster's dialect may be a user's own, which has no registered name."""
        own = self._codec()
        return own if own.name == entry.dialect else None

    def _matcher(self, api: ApiChoice | None) -> Callable[[Entry], bool]:
        if api is None:
            return lambda _entry: True
        if isinstance(api, int):
            return lambda entry: entry.api_key == api
        if isinstance(api, str):
            keys = api_keys(api, self._codec())
            return lambda entry: entry.api_key in keys
        if api.API_KEY is None or api.MESSAGE_TYPE != "request":
            raise UnknownNameError(f"{api.__name__} is not the class of a request")
        return lambda entry: self._class_of(entry) is api

    def _class_of(self, entry: Entry) -> type[Message] | None:
        codec = self._codec_of(entry) or dialect(entry.dialect)
        found = None if entry.api_key is None else codec.apis.get(entry.api_key)
        return None if found is None else found.request

    def _fail(self, problem: str) -> NoReturn:
        __tracebackhide__ = True
        shown = "\n".join(self.lines(_SHOWN)) or "  nothing"
        raise AssertionError(f"{problem}. The journal:\n{shown}")

    def lines(self, most: int | None = None, *, after: int = 0) -> Iterator[str]:
        """Yield the journal as text, or its last ``most`` entries, from those numbered above
        ``after``."""
        entries = self._journal.newer(after)
        first = entries[0].timestamp_ns if entries else 0
        if most is not None and len(entries) > most:
            yield f"  ... {len(entries) - most} earlier entries"
            entries = entries[-most:]
        for line in journal_lines(entries, self._codec_of, since_ns=first):
            yield "  " + line


def api_keys(name: str, own: Dialect) -> set[int]:
    """The keys of the APIs with this name in the cluster's dialect or in the released protocol: a
    draft may give a released API another key. Raises UnknownNameError."""
    if name.isascii() and name.isdigit():
        return {int(name)}
    names: dict[str, set[int]] = {}
    for codec in (own, dialect()):
        for key, message in codec.apis.requests.items():
            names.setdefault(message.removesuffix("Request"), set()).add(key)
    found = {key for each, keys in names.items() if squash(each) == squash(name) for key in keys}
    if not found:
        problem = f"no API is named {name!r:.80}"
        raise UnknownNameError(with_suggestion(problem, name, names, most=3))
    return found


def named(api: ApiChoice) -> str:
    """Return how a message names the API."""
    return api.__name__ if isinstance(api, type) else str(api)
