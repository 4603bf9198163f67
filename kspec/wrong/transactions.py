"""Misbehaviours of transactional producers."""

from __future__ import annotations

from kspec.wrong.registry import misbehaves
from kspec.wrong.transactional_producer import TransactionalProducer

__all__: list[str] = []


@misbehaves("never-ends-a-transaction")
class NeverEndsATransaction(TransactionalProducer):
    """Reports a transaction as ended and tells no coordinator."""

    async def end(self, *, committed: bool) -> None:
        self.is_open, self.error = False, None
