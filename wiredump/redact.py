"""Remove the secrets that messages carry: passwords, tokens and keys.

The messages are those of the released protocol: SASL tokens, delegation tokens, salted passwords,
the values of configs whose names are those of secrets, and the contents of an Envelope, which may
have any of these. In JSON a secret is replaced by ``[redacted]``; null and empty values stay, since
they are not secret. The rest of a message that cannot be read to its end may have a secret, and is
removed.

Records are not removed here: tables leave them out (``bodies.without_records``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kproto.schema.model import python_name

if TYPE_CHECKING:
    from kproto.annotate import FrameField

__all__ = ["REDACTED", "hidden_paths", "holds_secrets", "is_secret_config", "redacted"]

REDACTED: Final = "[redacted]"

_FIELDS: Final[dict[str, frozenset[str]]] = {
    "SaslAuthenticateRequest": frozenset({"authBytes"}),
    "SaslAuthenticateResponse": frozenset({"authBytes"}),
    "AlterUserScramCredentialsRequest": frozenset({"salt", "saltedPassword"}),
    "CreateDelegationTokenResponse": frozenset({"hmac"}),
    "RenewDelegationTokenRequest": frozenset({"hmac"}),
    "ExpireDelegationTokenRequest": frozenset({"hmac"}),
    "DescribeDelegationTokenResponse": frozenset({"hmac"}),
    "EnvelopeRequest": frozenset({"requestData"}),
    "EnvelopeResponse": frozenset({"responseData"}),
}
"""Message -> its secret fields, at any depth."""

_CONFIGS: Final = frozenset(
    {
        "AlterConfigsRequest",
        "IncrementalAlterConfigsRequest",
        "DescribeConfigsResponse",
        "CreateTopicsRequest",
        "CreateTopicsResponse",
    }
)
"""Messages with structs that have a config's ``name`` and ``value``."""

_SECRET_CONFIG: Final = re.compile(
    r"password|passwd|secret|credential|jaas\.config|private|ssl\.key|truststore\.certificates"
    r"|(^|\.)token$|master\.key",
    re.IGNORECASE,
)


def is_secret_config(name: str | None) -> bool:
    """Whether a config is secret by its name, as in Kafka and its plugins:
    ``ssl.keystore.password``, ``listener.name.x.plain.sasl.jaas.config``,
    ``delegation.token.secret.key``."""
    return name is not None and _SECRET_CONFIG.search(name) is not None


def holds_secrets(message: str) -> bool:
    """Whether the message with that name may have secrets."""
    return message in _FIELDS or message in _CONFIGS


def redacted(message: str, body: Any) -> Any:
    """Return the JSON value without secrets; the same object if the message has none."""
    if not holds_secrets(message):
        return body
    return _redacted(body, _FIELDS.get(message, frozenset()), message in _CONFIGS)


def _redacted(value: Any, fields: frozenset[str], configs: bool) -> Any:
    if isinstance(value, list):
        return [_redacted(item, fields, configs) for item in value]
    if not isinstance(value, dict):
        return value
    secret = fields
    if configs and (is_secret_config(value.get("name")) or value.get("isSensitive") is True):
        secret = fields | {"value"}  # also in the config's synonyms
    return {
        name: REDACTED if name in secret and item else _redacted(item, secret, configs)
        for name, item in value.items()
    }


def hidden_paths(message: str, rows: Iterable[FrameField]) -> frozenset[str]:
    """Return the paths of a frame's fields whose bytes must not be shown."""
    leaves = {row.path: row for row in rows if row.leaf}
    secret = {python_name(name) for name in _FIELDS.get(message, ())}
    hidden = {path for path in leaves if path.rpartition(".")[2] in secret}
    if message in _CONFIGS:
        for path, row in leaves.items():
            inside, _, name = path.rpartition(".")
            if (name == "name" and is_secret_config(row.value)) or (
                name == "is_sensitive" and row.value
            ):
                hidden |= {
                    each
                    for each in leaves
                    if each.startswith(f"{inside}.") and each.endswith(".value")
                }
    return frozenset(path for path in hidden if leaves[path].value)
