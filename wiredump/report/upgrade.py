"""What an upgrade to the newest release would break: the verdict of ``wiredump audit``."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kproto.schema.releases import Release, load_releases
from wiredump.audit import Audit, Observed, audit
from wiredump.questions.database import answers
from wiredump.report.blocks import Block, Note, Table, count, cut

__all__ = ["MOST_CONNECTIONS", "Upgrade", "measure_upgrade", "upgrade_section"]

MOST_CONNECTIONS: Final = 20_000
"""Connections that are judged, since the versions that each was offered are held."""
MOST_SHOWN: Final = 200

_JUDGED: Final = f"""
WITH judged AS (
  SELECT DISTINCT run, connection FROM requests ORDER BY run, connection LIMIT {MOST_CONNECTIONS}
)
"""
_QUERIES: Final = {
    "requests": f"""{_JUDGED}
        SELECT run, connection, client_id, software_name, software_version, api_key, api_version,
          dialect, count(*) AS number
        FROM requests JOIN judged USING (run, connection) GROUP BY ALL ORDER BY ALL""",
    "negotiations": f"""{_JUDGED}
        SELECT DISTINCT run, connection, client_id, software_name, software_version, event, api_key,
          lowest, highest, 1 AS number
        FROM negotiations JOIN judged USING (run, connection) ORDER BY ALL""",
}
_CONNECTIONS: Final = "SELECT count(DISTINCT (run, connection)) FROM requests"


class Upgrade(NamedTuple):
    """``left_out`` is the number of connections that were not judged."""

    audit: Audit
    left_out: int


def measure_upgrade(folder: str) -> Upgrade:
    """Compare the requests in a folder of tables with the newest release. Raises QueryError."""
    observed = Observed()
    *tables, connections = answers(folder, [*_QUERIES.values(), _CONNECTIONS])
    for table, found in zip(_QUERIES, tables, strict=True):
        for row in found.records():
            observed.add(table, row, row["number"])
    left_out = max(0, connections.rows[0][0] - MOST_CONNECTIONS)
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
