"""Classify a client's error: Kafka's name for it, and a category.

Every client words its errors differently. If the client shows Kafka's error code, the code decides.
Otherwise a table of the texts that released clients use decides, and else the kind is ``other``,
which no case asks for. An adapter that knows better sets ``"kind"`` in its answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kproto.error_codes import ErrorCode
from kspec.errors import AdapterFault

__all__ = ["CATEGORIES", "Answer", "Failure", "is_kind", "kinds_of"]

CATEGORIES: Final[Mapping[str, str]] = {
    "any": "an error of any kind",
    "unsupported-version": "no version of what was requested is common to both sides",
    "timeout": "the client or the broker timed out",
    "disconnected": "a connection was lost or refused, or no broker is available",
    "decode-error": "an answer could not be decoded: its size, its correlation id or its body",
    "authentication": "authentication failed, or the mechanism was not accepted",
    "no-controller": "the controller is unknown",
    "other": "none of these",
}

_BY_CODE: Final[Mapping[int, str]] = {
    ErrorCode.UNSUPPORTED_VERSION: "unsupported-version",
    ErrorCode.REQUEST_TIMED_OUT: "timeout",
    ErrorCode.NETWORK_EXCEPTION: "disconnected",
    ErrorCode.BROKER_NOT_AVAILABLE: "disconnected",
    ErrorCode.CORRUPT_MESSAGE: "decode-error",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "authentication",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "authentication",
    ErrorCode.ILLEGAL_SASL_STATE: "authentication",
    ErrorCode.NOT_CONTROLLER: "no-controller",
}

_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "unsupported-version": (
        r"unsupported_?version", r"IncompatibleBrokerVersion", r"unsupported_?\s?feature",
        r"DoesNotSupportApiKey", r"unsupported_?\s?api", r"does not support", r"not supported by",
        r"broker is too old", r"unknown to the broker", r"no support for", r"UnsupportedFormat",
        r"no .*API.* with a supported version", r"required feature not supported",
        r"matching version", r"support for .* not yet been added",
    ),
    "timeout": (
        r"time(d|s)?[ _-]?out", r"deadline exceeded", r"_TIMED_OUT",
    ),
    "disconnected": (
        r"disconnect", r"connection (was )?(closed|reset|refused|aborted|error)",
        r"ConnectionError", r"ConnectionClosed", r"KafkaConnection", r"\bEOF\b", r"ECONNRE",
        r"NetworkException", r"PLT_KFK_NETWORK", r"broken pipe", r"_TRANSPORT", r"connect:",
        r"BrokerNotFound", r"NoBrokersAvailable", r"NodeNotReady", r"NodeUnavailable",
        r"NoNodeAvailable", r"_ALL_BROKERS_DOWN", r"brokers (are )?down", r"transport failure",
        r"out of available brokers", r"closed connection", r"client is closed",
        r"unable to (dial|connect|bootstrap)", r"cannot connect", r"connection attempts failed",
        r"no (resolvable|nodes? available|available)",
    ),
    "decode-error": (
        r"decod", r"correlation", r"corrupt", r"malformed", r"SchemaException", r"unpack", r"parse",
        r"BufferUnderflow", r"out[ _]?of[ _]?(range|bounds)", r"EndOfStream", r"kbin",
        r"invalid (array|length|string|subset|byte|size|frame)", r"invalid.*response",
        r"not enough (data|bytes)", r"insufficient", r"struct\.error", r"RangeError",
        r"IndexError", r"ValueError", r"OverflowError", r"_BAD_MSG", r"bad message",
        r"InvalidReceive", r"MessageSize", r"message.*(too large|size)", r"too (small|short|big)",
        r"Error reading (field|array|byte)", r"unexpected (byte|data)", r"tag(ged)? field",
        r"not a Kafka", r"\bTLS\b", r"ERR_BUFFER",
    ),
    "authentication": (
        r"authenticat", r"SASL", r"mechanism", r"scram", r"credential", r"\bnonce\b", r"signature",
    ),
    "no-controller": (
        r"NotController", r"NoController", r"controller (is )?not", r"no controller",
        r"active controller", r"controller.*(unavail|not available)",
    ),
}  # fmt: skip
"""Patterns searched for in "<error>: <message>". Several may match."""

_PATTERNS: Final = {kind: re.compile("|".join(words), re.I) for kind, words in _WORDS.items()}


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as a client reported it, for a call or for one partition.

    ``code`` is Kafka's error code, ``at`` the place in the client's code, and ``causes`` the errors
    it wraps.
    """

    error: str
    code: int | None = None
    message: str = ""
    kind: str | None = None
    at: str = field(default="", compare=False)
    causes: tuple[Failure, ...] = ()

    @property
    def pending(self) -> bool:
        """Whether the client gave no outcome at all, which is neither a success nor an error."""
        return self.kind == "pending"

    @property
    def kinds(self) -> frozenset[str]:
        """Its own kinds and those of the errors it wraps. ``other`` is included only if there is no
        other."""
        found = kinds_of(self).union(*(each.kinds for each in self.causes))
        return found - {"other"} if len(found - {"any", "other"}) else found

    def chain(self) -> Iterator[Failure]:
        """Yield the error and every error it wraps."""
        yield self
        for each in self.causes:
            yield from each.chain()

    def __str__(self) -> str:
        code = "" if self.code is None else f" ({self.code})"
        text = f"{self.error}{code}: {self.message}" if self.message else f"{self.error}{code}"
        causes = [each for each in self.chain() if each.message not in self.message]
        return text + "".join(f" [{each.error}: {each.message}]" for each in causes)

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Failure:
        """Parse ``{"error": ..., "code": ..., "message": ...}``."""
        code, kind = said.get("code"), said.get("kind")
        several = said.get("errors")
        wrapped = [said.get("cause"), *(several if isinstance(several, list) else ())]
        return cls(
            str(said.get("error") or "error"),
            code if isinstance(code, int) and not isinstance(code, bool) else None,
            " ".join(str(said.get("message") or "").split()),
            kind if isinstance(kind, str) else None,
            str(said.get("at") or ""),
            tuple(cls.of(each) for each in wrapped if isinstance(each, Mapping)),
        )


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
    def of(cls, said: Mapping[str, Any]) -> Answer:
        """Parse a line of the adapter protocol.

        Raises ValueError if it is invalid, and AdapterFault if it reports an error of the adapter
        itself.
        """
        if "adapter_error" in said:
            raise AdapterFault(f"the adapter failed: {_own_error(said['adapter_error'])}")
        if "unsupported" in said:
            return cls(unsupported=str(said["unsupported"]))
        raw = str(said.get("raw") or "")
        if said.get("ok") is True:
            result = said.get("result")
            records = result if isinstance(result, list) else ()
            return cls(result, partitions=_partitions(result), records=records, raw=raw)
        if said.get("ok") is False:
            named = _partitions(said.get("partitions"))
            before = said.get("records")
            records = before if isinstance(before, list) else ()
            return cls(failure=Failure.of(said), partitions=named, records=records, raw=raw)
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


def _own_error(said: Any) -> str:
    if not isinstance(said, Mapping):
        return str(said)
    error = Failure.of(said)
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


def kinds_of(failure: Failure) -> frozenset[str]:
    """Return Kafka's name of the error, if there is a code, and its categories."""
    if failure.pending:
        return frozenset({"pending"})  # not any error
    if failure.kind is not None:
        return frozenset({"any", failure.kind})
    found = {"any"}
    if failure.code is not None:
        found.add(_name(failure.code))
        category = _BY_CODE.get(failure.code)
        return frozenset(found | ({category} if category else set()))
    text = f"{failure.error}: {failure.message}"
    found |= {kind for kind, pattern in _PATTERNS.items() if pattern.search(text)}
    found |= {code.name for code in ErrorCode if re.search(rf"\b{code.name}\b", text)}
    return frozenset(found if len(found) > 1 else {*found, "other"})


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error-{code}"


def is_kind(word: str) -> bool:
    """Return whether it is a category, one of Kafka's names, or ``error-<code>`` for an unknown
    code."""
    return (
        word in CATEGORIES
        or word in ErrorCode.__members__
        or re.fullmatch(r"error-(-?\d+)", word) is not None
    )
