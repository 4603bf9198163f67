"""The reassignment of one partition, from the request to its end, and its row."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from kproto import error_codes
from wiredump.knowledge.excerpts import Excerpt
from wiredump.knowledge.partition_requests import Partition, PartitionRequest
from wiredump.rows.exchanges import Row

__all__ = ["Outcome", "PartitionReassignment"]

Outcome: TypeAlias = Literal[
    "completed", "cancelled", "replaced", "refused", "in progress", "unknown"
]


class PartitionReassignment(msgspec.Struct):
    """One reassignment. ``alteration`` is None if the capture began later. From ``since_ns`` on,
    everything about the partition belongs to this reassignment. ``accepted``: the broker accepted
    it, or listed it."""

    partition: Partition
    since_ns: int
    alteration: Excerpt | None = None
    target: list[int] | None = None
    before: list[int] | None = None
    accepted: bool = True
    code: int | None = None
    text: str | None = None
    first_listed_ns: int | None = None
    last_listed_ns: int | None = None
    adding: list[int] | None = None
    removing: list[int] | None = None
    pending: bool = False
    """Whether it was still in progress when it was last seen."""

    def row(
        self, cluster: str, outcome: Outcome, evidence: str | None = None, by: Excerpt | None = None
    ) -> Row:
        """Return the row. ``by`` is the exchange that ended the reassignment, or that showed its
        end."""
        alteration = self.alteration
        return "reassignments", (
            cluster, *self.partition, outcome,
            alteration.requested_ns if alteration else None,
            alteration.responded_ns if alteration else None,
            alteration.connection if alteration else None,
            alteration.request_offset if alteration else None,
            alteration.client_id if alteration else None,
            alteration.software_name if alteration else None,
            alteration.software_version if alteration else None,
            (alteration or by or _UNKNOWN).dialect,
            self.target, self.before, self._rf_change(), self._allowed(),
            error_codes.name(self.code) if self.code else None, self.text,
            self.first_listed_ns, self.last_listed_ns, self.adding, self.removing,
            by.completed_ns if by else None,
            evidence,
            by.connection if by else None,
            by.request_offset if by else None,
            by.client_id if by else None,
        )  # fmt: skip

    def _rf_change(self) -> int | None:
        if self.target is None or self.before is None:
            return None
        return len(self.target) - len(self.before)

    def _allowed(self) -> Any:
        body = self.alteration.request if self.alteration is not None else None
        return (body or {}).get("allowReplicationFactorChange")

    @classmethod
    def of(
        cls, excerpt: Excerpt, request: PartitionRequest, before: list[int] | None
    ) -> PartitionReassignment:
        """Make one that begins, or that is refused."""
        return cls(
            request.partition,
            excerpt.completed_ns,
            alteration=excerpt,
            target=request.target,
            before=before,
            accepted=request.code == 0,
            code=request.code,
            text=request.text if request.code else None,
        )


_UNKNOWN = Excerpt(-1, 0, 0, None, "", None, None, None, -1, -1, "kafka", None, None)
