"""A client's answer to a call, as its adapter reports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kspec.error_kinds import Failure
from kspec.errors import AdapterFault

__all__ = ["Answer"]

_PENDING: Final = Failure("no outcome within the call's limit", kind="pending")


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a call: a result, a failure, or the reason why the client lacks the call.

    ``partitions`` holds the outcomes per partition, or per record of ``produce``, and ``records``
    what ``poll`` returned, even if it then failed. ``raw`` is what the client returned, as its
    language prints it.
    """

    result: Any = None
    failure: Failure | None = None
    unsupported: str | None = None
    partitions: Mapping[str, Failure | None] = field(default_factory=dict)
    records: Sequence[Any] = ()
    raw: str = field(default="", compare=False)

    @property
    def ok(self) -> bool:
        """Whether neither the call nor any of its partitions failed."""
        whole = self.failure is None and self.unsupported is None
        return whole and not any(self.partitions.values())

    @property
    def pending(self) -> list[str]:
        """The records that have no outcome, by their values."""
        return [key for key, each in self.partitions.items() if each is not None and each.pending]

    def outcome(self, key: str) -> Failure | None:
        """Return the outcome of one partition or topic. Raises KeyError if the client gave none.

        A call that raised failed for every partition, unless its error names those that failed. A
        call that returned nothing at all succeeded for every partition.
        """
        if self.failure is not None:
            return self.partitions.get(key) if self.partitions else self.failure
        if self.result is None:
            return None
        return self.partitions[key]

    def keyed(self, names: Sequence[str]) -> Answer:
        """Return the answer to a call whose result is a list, one item per name, with an outcome
        per name. Raises ValueError if the list is not that long."""
        if self.failure is not None or self.unsupported is not None:
            return self
        items = self.result if isinstance(self.result, list) else []
        if len(items) != len(names):
            raise ValueError(f"expected {len(names)} outcomes, one per record: {self.result}")
        return replace(self, partitions=dict(zip(names, map(_outcome, items), strict=True)))

    @classmethod
    def of(cls, reply: Mapping[str, Any]) -> Answer:
        """Parse a line of the adapter protocol.

        Raises ValueError if it is invalid, and AdapterFault if it reports an error of the adapter
        itself.
        """
        if "adapter_error" in reply:
            raise AdapterFault(f"the adapter failed: {_own_error(reply['adapter_error'])}")
        if "unsupported" in reply:
            return cls(unsupported=str(reply["unsupported"]))
        raw = str(reply.get("raw") or "")
        if reply.get("ok") is True:
            result = reply.get("result")
            records = result if isinstance(result, list) else ()
            return cls(result, partitions=_partitions(result), records=records, raw=raw)
        if reply.get("ok") is False:
            named = _partitions(reply.get("partitions"))
            before = reply.get("records")
            records = before if isinstance(before, list) else ()
            return cls(failure=Failure.of(reply), partitions=named, records=records, raw=raw)
        raise ValueError('neither "ok" nor "unsupported"')

    def __str__(self) -> str:
        if self.unsupported is not None:
            return f"unsupported: {self.unsupported}"
        if self.failure is not None:
            after = f" after {self.records}" if self.records else ""
            return f"error {self.failure}{after}"
        failed = {key: each for key, each in self.partitions.items() if each is not None}
        if failed:
            return "; ".join(f"{key}: error {each}" for key, each in failed.items())
        return "ok" if self.result is None else f"ok {self.result}"


def _own_error(reply: Any) -> str:
    if not isinstance(reply, Mapping):
        return str(reply)
    error = Failure.of(reply)
    return f"{error} at {error.at}" if error.at else str(error)


def _outcome(item: Any) -> Failure | None:
    """Return the outcome of a record: None for success."""
    if not isinstance(item, Mapping):
        return None
    if item.get("pending") is True:
        return _PENDING
    return Failure.of(item) if "error" in item else None


def _partitions(result: Any) -> dict[str, Failure | None]:
    """Return the outcomes by key, if the result has any. Null means success."""
    if not isinstance(result, Mapping):
        return {}
    found: dict[str, Failure | None] = {}
    for key, each in result.items():
        if each is None:
            found[key] = None
        elif isinstance(each, Mapping) and "error" in each:
            found[key] = Failure.of(each)
    return found
