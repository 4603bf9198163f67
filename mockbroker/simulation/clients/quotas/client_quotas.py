"""Client quotas (KIP-546, KIP-612, KIP-599): described (48), altered (49), and looked up for a
client. ``byte_rates`` enforces them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from kproto.error_codes import ErrorCode
from mockbroker.simulation.clients.quotas.quota_rules import (
    CLIENT_ID,
    COMPONENT_ROWS,
    ENTITY_ROWS,
    EXACT,
    FILTER_ROWS,
    IP,
    READING_ROWS,
    SPECIFIED,
    USER,
    VALUE_ROWS,
    Component,
    EntityCheck,
    FilterCheck,
    ValueCheck,
)
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release
from mockbroker.simulation.state.actions import ClientQuotaChanged
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.java_maps import hash_order
from mockbroker.simulation.state.turns import step

__all__ = [
    "Alteration",
    "AlterationResult",
    "ClientQuotas",
    "DescribedQuotas",
    "Entity",
    "FilterPart",
    "Limit",
]

Entity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Types of entities with their names, None for the default."""


class Alteration(NamedTuple):
    """``values`` are (key, new value); None removes the quota."""

    entity: Entity
    values: Sequence[tuple[str, float | None]]


class AlterationResult(NamedTuple):
    entity: Entity
    error_code: ErrorCode = ErrorCode.NONE
    text: str | None = None


class FilterPart(NamedTuple):
    """``match_type``: 0 the name ``match``, 1 the default, 2 any name and the default."""

    type: str
    match_type: int
    match: str | None


class DescribedQuotas(NamedTuple):
    error_code: ErrorCode = ErrorCode.NONE
    text: str | None = None
    entries: tuple[tuple[Entity, dict[str, float]], ...] = ()


class Limit(NamedTuple):
    """The quota that applies to a client, and the client ids and users that share it: "" stands for
    all of them."""

    value: float
    user: str
    client_id: str


_NO_NAME: Final = None
_LOOPBACK: Final = ("127.0.0.1", "::1")


class ClientQuotas:
    """The quotas of one cluster."""

    def __init__(self, controller: Controller, release: Release) -> None:
        self._controller = controller
        self.turns = controller.turns
        release.follow(self._use_release)
        self.on_changed: list[Callable[[], None]] = []

    def _use_release(self, release: Release) -> None:
        self._ignores_wrong = not self._controller.keeps_znodes and release.has(
            facts.WRONG_QUOTAS_IGNORED
        )
        self._entity_rows = rows_of_release(ENTITY_ROWS, release)
        self._value_rows = rows_of_release(VALUE_ROWS, release)
        self._reading_rows = rows_of_release(READING_ROWS, release)
        self._component_rows = rows_of_release(COMPONENT_ROWS, release)
        self._filter_rows = rows_of_release(FILTER_ROWS, release)

    @property
    def any(self) -> bool:
        """Whether there is any quota."""
        return bool(self._controller.state.quotas)

    # ---- AlterClientQuotas ---------------------------------------------------------------------

    @step()
    def alter(
        self, alterations: Sequence[Alteration], *, validate_only: bool = False
    ) -> list[AlterationResult]:
        """Change the quotas of each entity entirely or not at all: one result for each entity."""
        results: dict[Entity, AlterationResult] = {}
        accepted: list[Alteration] = []
        for alteration in alterations:
            entity = alteration.entity
            result = self._check(alteration, repeated=entity in results)
            results[entity] = result
            if not result.error_code:
                accepted.append(self._readable(alteration))
        if not validate_only:
            for alteration in accepted:
                self._store(alteration)
        return list(results.values())

    def _check(self, alteration: Alteration, *, repeated: bool) -> AlterationResult:
        entity, values = alteration
        given = dict(entity)
        names = {kind: given[kind] for kind in hash_order(given, len(entity))}
        times = Counter(key for key, _ in values)
        twice = repeated or any(count > 1 for count in times.values())
        shown = ", ".join(f"{kind}={_text(name)}" for kind, name in names.items())
        kraft = not self._controller.keeps_znodes
        checked = EntityCheck(names, twice, f"ClientQuotaEntity(entries={{{shown}}})", kraft)
        apply_first(self._entity_rows, checked, checked)
        if checked.code:
            return AlterationResult(entity, checked.code, checked.text)
        new = dict(values)
        # In ZooKeeper mode each operation is checked, in KRaft mode the entries of a map of them.
        in_order = ((key, new[key]) for key in hash_order(new, len(values))) if kraft else values
        for key, value in in_order:
            quota = self._checked_value(names, key, value)
            if quota is not None and quota.code and not self._ignores_wrong:
                return AlterationResult(entity, quota.code, quota.text)
        return AlterationResult(entity)

    def _checked_value(
        self, names: Mapping[str, str | None], key: str, value: float | None
    ) -> ValueCheck | None:
        """A quota with its error, None if it is removed."""
        if value is None:
            return None
        quota = ValueCheck(names, key, value, not self._controller.keeps_znodes)
        apply_first(self._value_rows, quota, quota)
        return quota

    def _readable(self, alteration: Alteration) -> Alteration:
        """Without quotas that are ignored because they are wrong."""
        if not self._ignores_wrong:
            return alteration
        names = dict(alteration.entity)
        checked = [(key, value, self._checked_value(names, key, value))
                   for key, value in alteration.values]  # fmt: skip
        kept = [(key, value) for key, value, quota in checked if quota is None or not quota.code]
        return alteration._replace(values=kept)

    def _store(self, alteration: Alteration) -> None:
        entity = tuple(sorted(alteration.entity))
        for key, value in alteration.values:
            before = self._controller.state.quotas.get(entity, {}).get(key)
            if before != value:
                change = ClientQuotaChanged(entity, key, before, value)
                self._controller.record("alter_client_quotas", change)
        for call in self.on_changed:
            call()

    # ---- DescribeClientQuotas ------------------------------------------------------------------

    def describe(self, parts: Sequence[FilterPart], *, strict: bool) -> DescribedQuotas:
        """Return the quotas of the entities that fit every part; ``strict``: and have no other
        type."""
        kraft = not self._controller.keeps_znodes
        for rows in (self._reading_rows, self._component_rows):
            known: set[str] = set()
            for part in parts:
                checked = Component(*part, known=known, kraft=kraft)
                apply_first(rows, checked, checked)
                if checked.code:
                    return DescribedQuotas(checked.code, checked.text)
                known.add(part.type)
        names = {part.type: part.match if part.match_type == EXACT else _NO_NAME for part in parts}
        whole = FilterCheck(names, strict, kraft)
        apply_first(self._filter_rows, whole, whole)
        if whole.code:
            return DescribedQuotas(whole.code, whole.text)
        found = [
            (entity, dict(values))
            for entity, values in self._controller.state.quotas.items()
            if all(_fits(dict(entity), part) for part in parts)
            and not (strict and len(entity) != len(parts))
        ]
        return DescribedQuotas(entries=tuple(found))

    # ---- what applies to a client --------------------------------------------------------------

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """Return the quota of a client: the most specific entity that has this quota decides, users
        before client ids."""
        quotas = self._controller.state.quotas
        both, one, other = (user, client_id), (user, ""), ("", client_id)
        for entity, shared in (
            (((CLIENT_ID, client_id), (USER, user)), both),
            (((CLIENT_ID, _NO_NAME), (USER, user)), both),
            (((USER, user),), one),
            (((CLIENT_ID, client_id), (USER, _NO_NAME)), both),
            (((CLIENT_ID, _NO_NAME), (USER, _NO_NAME)), both),
            (((USER, _NO_NAME),), one),
            (((CLIENT_ID, client_id),), other),
            (((CLIENT_ID, _NO_NAME),), other),
        ):
            value = quotas.get(entity, {}).get(key)
            if value is not None:
                return Limit(value, *shared)
        return None

    def connection_limit(self, address: str) -> float | None:
        """Return the connections a second that an address may create on each broker."""
        quotas = self._controller.state.quotas
        names = (address, "localhost") if address in _LOOPBACK else (address,)
        for name in (*names, _NO_NAME):
            value = quotas.get(((IP, name),), {}).get("connection_creation_rate")
            if value is not None:
                return value
        return None


def _fits(names: dict[str, str | None], part: FilterPart) -> bool:
    if part.type not in names:
        return False
    if part.match_type == SPECIFIED:
        return True
    return names[part.type] == (part.match if part.match_type == EXACT else None)


def _text(name: str | None) -> str:
    return "null" if name is None else name
