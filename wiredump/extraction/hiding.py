"""Replace what a transcript must not have, consistently within one transcript.

Hosts become ``host-1``, ``host-2`` in the order of appearance, with their ports; loopback addresses
stay. Hidden names become a word and ten digits, which are derived from the name and a key that is
not stored, so that a guessed name cannot be verified.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from functools import partial
from ipaddress import ip_address
from typing import Any, Final, cast

from kproto.codec.message import Message
from wiredump.extraction.emptied import emptied
from wiredump.extraction.fields import Sort, has, sorts_of
from wiredump.field_trees import changed
from wiredump.redact import holds_secrets, redacted

__all__ = ["Hiding"]

_WORDS: Final[dict[Sort, str]] = {
    "topic": "topic",
    "group": "group",
    "transaction": "transaction",
    "client": "client",
}

_INTERNAL: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}
)
"""Topics that every cluster has."""


class Hiding:
    """What to hide: by default secrets, hosts and contents of records; with ``names`` also the
    names of topics, groups, transactional ids and clients. ``key`` is for the names."""

    def __init__(
        self,
        *,
        secrets_too: bool = True,
        hosts: bool = True,
        records: bool = True,
        names: bool = False,
        key: bytes | None = None,
    ) -> None:
        self._secrets = secrets_too
        self._hosts = hosts
        self._records = records
        self._names = names
        self._key = key if key is not None else secrets.token_bytes(32)
        self._host_names: dict[str, str] = {}
        self._seen: re.Pattern[str] | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of hidden things, as a transcript's first line lists them."""
        each = {
            "secrets": self._secrets,
            "hosts": self._hosts,
            "records": self._records,
            "names": self._names,
        }
        return tuple(name for name, hidden in each.items() if hidden)

    def body(self, cls: type[Message], version: int, body: dict[str, Any]) -> dict[str, Any]:
        """Return a body's JSON, which may be partial, without what is to be hidden."""
        if self._secrets:
            body = redacted(cls.MESSAGE_NAME, body)
        body = changed(body, sorts_of(cls, version), self._changed_field)
        return self._without_hosts(body) if self._hosts and self._seen is not None else body

    def reveals(self, cls: type[Message] | None, version: int) -> bool:
        """Whether the bytes of a message may have anything to hide; None stands for any message."""
        if cls is None:
            return bool(self.kinds)
        tree = sorts_of(cls, version) if version in cls.VALID_VERSIONS else None
        return (
            (self._secrets and holds_secrets(cls.MESSAGE_NAME))
            or (self._hosts and (tree is None or has(tree, "host")))
            or (self._records and (tree is None or has(tree, "records")))
            or self._names
        )

    def host(self, host: str) -> str:
        """Replace a host name or address."""
        if not self._hosts or not host or host == "*" or _is_loopback(host):
            return host
        bare = host.removeprefix("/")  # the form in which Java prints an address without a name
        if _is_loopback(bare):
            return host
        known = self._host_names.get(bare)
        if known is None:
            known = self._host_names[bare] = f"host-{len(self._host_names) + 1}"
            longest_first = sorted(self._host_names, key=len, reverse=True)
            words = "|".join(re.escape(each) for each in longest_first if len(each) > 3)
            self._seen = re.compile(rf"(?<![\w.-])(?:{words})(?![\w-])") if words else None
        return host[: len(host) - len(bare)] + known

    def endpoint(self, text: str) -> str:
        """Replace the host of ``host:port``; any other text stays."""
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdigit():
            return text
        bare = host.removeprefix("[").removesuffix("]")
        hidden = self.host(bare)
        return text if hidden == bare else f"{hidden}:{port}"

    def name(self, sort: Sort, name: str) -> str:
        """Replace the name of a topic, group or client."""
        if not self._names or not name or name in _INTERNAL:
            return name
        digest = hashlib.blake2b(f"{sort}\0{name}".encode(errors="replace"), key=self._key)
        return f"{_WORDS[sort]}-{digest.hexdigest()[:10]}"

    def _changed_field(self, name: str, sort: str, held: Any) -> tuple[str, Any]:
        change = partial(self._changed, cast(Sort, sort))
        return name, [*map(change, held)] if isinstance(held, list) else change(held)

    def _changed(self, sort: Sort, value: Any) -> Any:
        if sort == "host":
            return self.host(value)
        if sort == "records":
            return _in_base64(value) if self._records else value
        if sort == "opaque":
            return "" if self._names else value
        return self.name(sort, value)

    def _without_hosts(self, value: Any) -> Any:
        """Replace known hosts within texts: error messages, values of configs."""
        if isinstance(value, str):
            return self._seen.sub(self._known, value) if self._seen is not None else value
        if isinstance(value, list):
            return [self._without_hosts(each) for each in value]
        if isinstance(value, dict):
            return {name: self._without_hosts(each) for name, each in value.items()}
        return value

    def _known(self, found: re.Match[str]) -> str:
        return self._host_names[found[0]]


def _in_base64(records: Any) -> Any:
    try:
        return base64.b64encode(emptied(base64.b64decode(records, validate=True))).decode()
    except (ValueError, TypeError):  # a log has the size of records, but no records
        return records


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
