"""Mutate frames along the grammar of their message: pure functions of a frame and a seed.

``mutate`` changes a whole frame, size included, of a request or response; the ``Mutation``
describes what it did. The same seed gives the same mutation on every machine and Python version.
``KINDS`` lists the kinds.
"""

from __future__ import annotations

from kspec.clientfuzz.mutate.changes import Change, Edit, Mutation, MutationError
from kspec.clientfuzz.mutate.mutation import KINDS, mutate, mutation_of

__all__ = ["KINDS", "Change", "Edit", "Mutation", "MutationError", "mutate", "mutation_of"]
