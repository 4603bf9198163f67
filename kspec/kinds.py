"""What kind of error a client's own error is: Kafka's name for it, and a category.

Every client has words of its own. Where it shows Kafka's error code, the code decides; else its
words are looked up here, by what released clients are known to say; else the kind is ``other``,
which no case asks for. An adapter that knows better says ``"kind"`` in its answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kproto.error_codes import ErrorCode

__all__ = ["CATEGORIES", "Answer", "Failure", "is_kind", "kinds_of"]

CATEGORIES: Final[Mapping[str, str]] = {
    "any": "an error of any kind",
    "unsupported-version": "what was asked for is in no version that both sides have",
    "timeout": "the client, or the broker, gave up waiting",
    "disconnected": "a connection broke, was refused, or there is no broker to be had",
    "decode-error": "an answer could not be understood: its size, its correlation id, its body",
    "authentication": "who the client is was not accepted, or the mechanism was not",
    "no-controller": "nobody is known to be the controller",
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

# Looked up in "<name>: <message>", in this order; more than one may fit.
_WORDS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (kind, re.compile(words, re.I))
    for kind, words in (
        (
            "unsupported-version",
            r"unsupported_?version|IncompatibleBrokerVersion|_UNSUPPORTED_FEATURE|unsupported feature"
            r"|DoesNotSupportApiKey|UnsupportedApi|unsupported api|does not support|not supported by"
            r"|broker is too old|unknown to the broker|no support for|KafkaJSServerDoesNotSupport"
            r"|UnsupportedFormat|no .*API.* with a supported version|required feature not supported",
        ),
        (
            "timeout",
            r"time(d|s)?[ _-]?out|deadline exceeded|TimeoutError|_TIMED_OUT|KafkaTimeout|i/o timeout",
        ),
        (
            "disconnected",
            r"disconnect|connection (was )?(closed|reset|refused|aborted|error)|ConnectionError"
            r"|\bEOF\b|NetworkException|BrokerNotFound|NoBrokersAvailable|NodeNotReady|_TRANSPORT"
            r"|_ALL_BROKERS_DOWN|brokers (are )?down|ECONNRE|broken pipe|ConnectionClosed|KafkaConnection"
            r"|run out of available brokers|unable to (dial|connect|bootstrap)|transport failure"
            r"|no (resolvable|nodes? available|available)|Failed to create new KafkaAdminClient"
            r"|NodeUnavailable|Cannot connect|Closed connection|broker closed|PLT_KFK_NETWORK"
            r"|client is closed|all connection attempts failed|NoNodeAvailable|connect:",
        ),
        (
            "decode-error",
            r"decod|correlation|corrupt|malformed|SchemaException|BufferUnderflow|out of (range|bounds)"
            r"|invalid (array|length|string|subset|byte|size|frame)|not enough (data|bytes)|insufficient"
            r"|struct\.error|UnpackError|unpack|parse|RangeError|ValueError|_BAD_MSG|bad message"
            r"|InvalidReceive|message.*(too large|size)|Error reading (field|array|byte)|unexpected (byte|data)"
            r"|too (small|short|big)|EndOfStream|kbin|tag(ged)? field|_PROTOCOL|invalid.*response"
            r"|MessageSize|not a Kafka|TLS|ERR_BUFFER|IndexError|OverflowError",
        ),
        (
            "authentication",
            r"authenticat|SASL|_AUTHENTICATION|mechanism|scram|credential",
        ),
        ("no-controller", r"NotController|NoController|controller (is )?not|no controller|controller.*unavail"),
    )
)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as a client showed it, of a call or of one partition. ``code`` is Kafka's."""

    error: str
    code: int | None = None
    message: str = ""
    kind: str | None = None

    @property
    def kinds(self) -> frozenset[str]:
        return kinds_of(self)

    def __str__(self) -> str:
        code = "" if self.code is None else f" ({self.code})"
        return f"{self.error}{code}: {self.message}" if self.message else f"{self.error}{code}"

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Failure:
        """Out of ``{"error": ..., "code": ..., "message": ...}``."""
        code, kind = said.get("code"), said.get("kind")
        return cls(
            str(said.get("error") or "error"),
            code if isinstance(code, int) and not isinstance(code, bool) else None,
            " ".join(str(said.get("message") or "").split()),
            kind if isinstance(kind, str) else None,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a call: a result, a failure, or why the client cannot be asked."""

    result: Any = None
    failure: Failure | None = None
    unsupported: str | None = None
    partitions: Mapping[str, Failure | None] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Neither the call nor any of its partitions failed."""
        whole = self.failure is None and self.unsupported is None
        return whole and not any(self.partitions.values())

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Answer:
        """Out of a line of the adapter protocol. Raises ValueError where it is none."""
        if "unsupported" in said:
            return cls(unsupported=str(said["unsupported"]))
        if said.get("ok") is True:
            result = said.get("result")
            return cls(result, partitions=_partitions(result))
        if said.get("ok") is False:
            return cls(failure=Failure.of(said))
        raise ValueError('neither "ok" nor "unsupported"')

    def __str__(self) -> str:
        if self.unsupported is not None:
            return f"unsupported: {self.unsupported}"
        if self.failure is not None:
            return f"error {self.failure}"
        failed = {key: each for key, each in self.partitions.items() if each is not None}
        if failed:
            return "; ".join(f"{key}: error {each}" for key, each in failed.items())
        return "ok" if self.result is None else f"ok {self.result}"


def _partitions(result: Any) -> dict[str, Failure | None]:
    """The outcomes by key, where the result holds some: null is success."""
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
    """Kafka's name of the error, where there is a code, and its categories."""
    if failure.kind is not None:
        return frozenset({"any", failure.kind})
    found = {"any"}
    if failure.code is not None:
        found.add(_name(failure.code))
        category = _BY_CODE.get(failure.code)
        return frozenset(found | ({category} if category else set()))
    text = f"{failure.error}: {failure.message}"
    found |= {kind for kind, words in _WORDS if words.search(text)}
    found |= {code.name for code in ErrorCode if re.search(rf"\b{code.name}\b", text)}
    return frozenset(found if len(found) > 1 else {*found, "other"})


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error-{code}"


def is_kind(word: str) -> bool:
    """A category, one of Kafka's names, or ``error-<code>`` for a code nobody knows."""
    return (
        word in CATEGORIES
        or word in ErrorCode.__members__
        or re.fullmatch(r"error-(-?\d+)", word) is not None
    )
