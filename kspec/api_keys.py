"""API keys by the names that cases, rules and commands use for them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from kproto.dialects import Dialect, dialect
from kproto.journal import squash

__all__ = ["api_key"]


def api_key(api: str | int, codec: Dialect | None = None) -> int | None:
    """Return the key of ``ApiVersions``, ``API_VERSIONS`` or 18; None if there is no such API."""
    apis = (codec or dialect("kafka")).apis
    if isinstance(api, int):
        return api if api in apis else None
    return _keys_by_name(codec or dialect("kafka")).get(squash(api))


@lru_cache(maxsize=8)
def _keys_by_name(codec: Dialect) -> Mapping[str, int]:
    return {squash(each.name): key for key, each in codec.apis.items()}
