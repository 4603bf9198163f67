"""What an upgrade to the newest release would break: the verdict of ``wiredump audit``."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kproto.schema.releases import Release, load_releases
from wiredump.audit import Audit, audit
from wiredump.questions.answers import Tables
from wiredump.questions.clients import observed_in
from wiredump.report.blocks import Block, Note, Table, count, cut

__all__ = ["MOST_CONNECTIONS", "Upgrade", "measure_upgrade", "upgrade_section"]

MOST_CONNECTIONS: Final = 20_000
"""Connections that are judged, since the versions that each was offered are held."""
MOST_SHOWN: Final = 200


class Upgrade(NamedTuple):
    """``left_out`` is the number of connections that were not judged."""

    audit: Audit
    left_out: int


def measure_upgrade(tables: Tables) -> Upgrade:
    """Compare the requests in tables with the newest release. Raises QueryError."""
    observed, left_out = observed_in(tables, MOST_CONNECTIONS)
    return Upgrade(audit(observed.clients(), _newest()), left_out)


def _newest() -> Release:
    """Profiles are sorted, and the newest release has one mode."""
    return list(load_releases().values())[-1]


def upgrade_section(upgrade: Upgrade) -> list[Block]:
    """Return the section of the page."""
    found = upgrade.audit
    refused = [(client, each) for client in found.refused for each in client.refused]
    blocks: list[Block] = [
        Note(
            f"{found.release.name} would refuse requests of {count(len(found.refused))} of "
            f"{count(len(found.clients))} clients. wiredump audit judges other releases."
        )
    ]
    if upgrade.left_out:
        blocks.append(Note(f"{count(upgrade.left_out)} connections were not judged."))
    if not refused:
        return blocks
    rows: list[tuple[Any, ...]] = [
        (
            client.client_id or "", "" if client.software is None else str(client.software),
            each.api, each.version, each.requests,
            "no" if each.served is None else str(each.served),
            "" if each.instead.version is None else each.instead.version, each.instead.note,
        )
        for client, each in refused[:MOST_SHOWN]
    ]  # fmt: skip
    heads = (
        "client id%", "software", "api", "version#", "requests#", "served#", "instead#", "why~",
    )  # fmt: skip
    return [*blocks, Table("upgrade", heads, rows), *cut(len(rows), len(refused))]
