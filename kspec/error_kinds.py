"""A client's error, and how it is classified: Kafka's name for it, and a category.

Every client words its errors differently. If the client shows Kafka's error code, the code decides.
Otherwise a table of the texts that released clients use decides, and else the kind is ``other``,
which no case asks for. An adapter that knows better sets ``"kind"`` in its answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kproto.error_codes import ErrorCode

__all__ = ["CATEGORIES", "Failure", "is_kind", "kinds_of"]

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
    def of(cls, reply: Mapping[str, Any]) -> Failure:
        """Parse ``{"error": ..., "code": ..., "message": ...}``."""
        code, kind = reply.get("code"), reply.get("kind")
        several = reply.get("errors")
        wrapped = [reply.get("cause"), *(several if isinstance(several, list) else ())]
        return cls(
            str(reply.get("error") or "error"),
            code if isinstance(code, int) and not isinstance(code, bool) else None,
            " ".join(str(reply.get("message") or "").split()),
            kind if isinstance(kind, str) else None,
            str(reply.get("at") or ""),
            tuple(cls.of(each) for each in wrapped if isinstance(each, Mapping)),
        )


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
