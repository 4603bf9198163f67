"""Deprecated: these names are now in ``kspec.clientfuzz.mutate``."""

from __future__ import annotations

from typing import Final

from kproto.deprecation import deprecated_names

_NEW: Final = "kspec.clientfuzz.mutate"

__getattr__ = deprecated_names(
    __name__,
    {
        name: f"{_NEW}:{name}"
        for name in (
            "KINDS", "Change", "Edit", "Mutation", "MutationError", "mutate", "mutation_of",
        )
    },
)  # fmt: skip
