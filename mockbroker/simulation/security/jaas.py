"""``sasl.jaas.config`` of a listener: a login module, a control flag, options and a semicolon.

org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from mockbroker.errors import ClusterError

__all__ = ["jaas_options"]

_TOKEN: Final = re.compile(
    r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s=;"']+)|([=;]))""", re.DOTALL
)
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")


def jaas_options(text: str) -> Mapping[str, str]:
    """Return the options of the login module. Raises ClusterError with Kafka's text."""
    tokens = _tokens(text)
    _module, flag, *rest = [*tokens, "", ""][: max(2, len(tokens))]
    if flag.lower() not in _FLAGS:
        raise ClusterError("Login module control flag not specified in JAAS config")
    found: dict[str, str] = {}
    while rest and rest[0] != ";":
        if len(rest) < 3 or rest[1] != "=" or rest[2] in ("=", ";"):
            raise ClusterError(f"Value not specified for key '{rest[0]}' in JAAS config")
        found[rest[0]] = rest[2]
        del rest[:3]
    if not rest:
        raise ClusterError("JAAS config entry not terminated by semi-colon")
    return found


def _tokens(text: str) -> list[str]:
    found, place = [], 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            raise ClusterError("JAAS config has a quotation mark without its counterpart")
        quoted = match[1] if match[1] is not None else match[2]
        word = match[3] or match[4]
        found.append(re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else word)
        place = match.end()
    return found
