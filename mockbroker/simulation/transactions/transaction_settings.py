"""The broker configs that transactions follow, and the bounds that this mock sets itself."""

from __future__ import annotations

from typing import Final

import msgspec

from mockbroker.simulation.configs.effective import EffectiveConfigs

__all__ = ["MOST_TRANSACTIONS", "NO_TIME_OUT_MS", "TransactionSettings", "transaction_settings"]

MOST_TRANSACTIONS: Final = 10_000
"""Transactional ids; a request that would make more gets COORDINATOR_NOT_AVAILABLE(15)."""


NO_TIME_OUT_MS: Final = 2**31 - 1
"""The time-out of transactions of two-phase commit (KIP-939), which only their producers end."""


class TransactionSettings(msgspec.Struct, frozen=True):
    """Times are milliseconds."""

    max_timeout_ms: int
    id_expiration_ms: int
    timeout_check_ms: int
    expiration_check_ms: int
    verifies: bool
    two_phase_commit: bool = False


def transaction_settings(configs: EffectiveConfigs) -> TransactionSettings:
    """Read the settings of the brokers. A config that the release lacks has the value of which
    nothing is seen."""

    def text(name: str, otherwise: str) -> str:
        known = name in configs.definitions.broker
        return configs.controller_value(name) if known else otherwise

    return TransactionSettings(
        max_timeout_ms=int(text("transaction.max.timeout.ms", "900000")),
        id_expiration_ms=int(text("transactional.id.expiration.ms", "604800000")),
        timeout_check_ms=int(
            text("transaction.abort.timed.out.transaction.cleanup.interval.ms", "10000")
        ),
        expiration_check_ms=int(
            text("transaction.remove.expired.transaction.cleanup.interval.ms", "3600000")
        ),
        verifies=text("transaction.partition.verification.enable", "false") == "true",
        two_phase_commit=text("transaction.two.phase.commit.enable", "false") == "true",
    )
