"""When a topic may have tiered storage (KIP-405), and give it up (KIP-950), as rows.

The rows are those of Kafka's ``LogConfig``, which sees all configs of a topic and the brokers'
defaults, not only those that a request changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from mockbroker.simulation.releases.rows import Row, with_arguments

__all__ = ["ON_TIERED_TOPICS", "TieredCheck"]

_COPY_DISABLED: Final = "remote.log.copy.disable"
_DELETES: Final = "remote.log.delete.on.disable"
_UNLIMITED: Final = -1
_AS_WHOLE_LOG: Final = -2
"""The local retention that stands for that of the whole log."""

_KIP_405: Final = (3, 6)
_KIP_950: Final = (3, 9)
_POLICY_NAMED: Final = (4, 1)
_POLICY_MAY_BE_EMPTY: Final = (4, 2)
_COPY_LAGS: Final = (4, 4)


class TieredCheck(msgspec.Struct):
    """``values`` are the configs that the topic would follow, ``was_enabled`` says whether it has
    tiered storage now. ``text`` is the refusal; ``names_resource``: controllers in ZooKeeper's time
    put the name of the topic before it."""

    values: Mapping[str, str]
    was_enabled: bool
    brokers_enabled: bool
    in_zookeeper: bool
    text: str = ""
    names_resource: bool = True

    @property
    def is_enabled(self) -> bool:
        return self.is_true("remote.storage.enable")

    @property
    def policies(self) -> list[str]:
        policies = self.values["cleanup.policy"].split(",")
        return [each.strip() for each in policies if each.strip()]

    def is_true(self, name: str) -> bool:
        return self.values.get(name, "").strip().lower() == "true"

    def number(self, name: str) -> int:
        return int(self.values[name])


class _Limit(NamedTuple):
    """A config whose value exceeds what another one allows."""

    name: str
    problem: str


class _Retention(msgspec.Struct, frozen=True):
    """The retention by time or by size; ``least_limit`` is the least that limits the log."""

    unit: str
    least_limit: int | None = None

    @property
    def local_name(self) -> str:
        return f"local.retention.{self.unit}"

    def whole(self, check: TieredCheck) -> int:
        return check.number(f"retention.{self.unit}")

    def local(self, check: TieredCheck) -> int:
        return check.number(self.local_name)

    def excess(self, check: TieredCheck) -> _Limit | None:
        """Return what is wrong if brokers would keep records longer than the log does."""
        whole, local, name = self.whole(check), self.local(check), f"retention.{self.unit}"
        is_limited = whole != _UNLIMITED if self.least_limit is None else whole >= self.least_limit
        if not is_limited or local == _AS_WHOLE_LOG:
            return None
        if local == _UNLIMITED:
            return _Limit(
                self.local_name, f"Value must not be -1 as {name} value is set as {whole}."
            )
        if local > whole:
            return _Limit(
                self.local_name, f"Value must not be more than {name} property value: {whole}"
            )
        return None

    def late_copy(self, check: TieredCheck) -> _Limit | None:
        """Return what is wrong if records would be copied later than brokers delete them."""
        local, name = self.local(check), f"remote.copy.lag.{self.unit}"
        local = self.whole(check) if local == _AS_WHOLE_LOG else local
        if 0 <= local < check.number(name) and check.number(name) > 0:
            return _Limit(
                name, f"Value must not exceed {self.local_name} (effective value: {local})"
            )
        return None

    def differs(self, check: TieredCheck) -> bool:
        return check.is_true(_COPY_DISABLED) and self.local(check) not in (
            _AS_WHOLE_LOG,
            self.whole(check),
        )


_SIZE: Final = _Retention("bytes", least_limit=0)
_TIME: Final = _Retention("ms")


@with_arguments
def _refuse(check: TieredCheck, text: str, names_resource: bool = True) -> None:
    check.text, check.names_resource = text, names_resource


@with_arguments
def _refuse_excess(check: TieredCheck, retention: _Retention) -> None:
    _name_limit(check, retention.excess(check))


@with_arguments
def _refuse_late_copy(check: TieredCheck, retention: _Retention) -> None:
    _name_limit(check, retention.late_copy(check))


def _name_limit(check: TieredCheck, limit: _Limit | None) -> None:
    assert limit is not None, "the row's condition found it"
    value = check.number(limit.name)
    check.text = f"Invalid value {value} for configuration {limit.name}: {limit.problem}"


def _retention_row(retention: _Retention) -> Row[TieredCheck, TieredCheck]:
    return Row(
        "CONFIG-15",
        lambda check: check.is_enabled and retention.excess(check) is not None,
        (_refuse_excess(retention),),
        since=_KIP_405,
    )


def _copy_lag_row(retention: _Retention) -> Row[TieredCheck, TieredCheck]:
    return Row(
        "CONFIG-15",
        lambda check: check.is_enabled and retention.late_copy(check) is not None,
        (_refuse_late_copy(retention),),
        since=_COPY_LAGS,
    )


def _read_only_row(retention: _Retention) -> Row[TieredCheck, TieredCheck]:
    text = (
        "When `remote.log.copy.disable` is set to true, the "
        f"`local.retention.{retention.unit}` and `retention.{retention.unit}` must be set to the "
        "identical value because there will be no more logs copied to the remote storage."
    )
    return Row(
        "CONFIG-16",
        lambda check: check.is_enabled and retention.differs(check),
        (_refuse(text, names_resource=False),),
        since=_KIP_950,
    )


ON_TIERED_TOPICS: Final[tuple[Row[TieredCheck, TieredCheck], ...]] = (
    Row(
        "CONFIG-16",
        lambda check: (
            check.in_zookeeper and (check.is_true(_DELETES) or check.is_true(_COPY_DISABLED))
        ),
        (
            _refuse(
                "It is invalid to set `remote.log.delete.on.disable` or "
                "`remote.log.copy.disable` under Zookeeper's mode.",
                names_resource=False,
            ),
        ),
        since=_KIP_950,
        until=(4, 0),
    ),
    Row(
        "CONFIG-13",
        lambda check: check.is_enabled and not check.brokers_enabled,
        (
            _refuse(
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage."
            ),
        ),
        since=_KIP_405,
    ),
    Row(
        "CONFIG-15",
        lambda check: check.is_enabled and "compact" in check.policies,
        (_refuse("Remote log storage is unsupported for the compacted topics"),),
        since=_KIP_405,
        until=_POLICY_NAMED,
    ),
    Row(
        "CONFIG-15",
        lambda check: check.is_enabled and set(check.policies) != {"delete"},
        (_refuse("Remote log storage only supports topics with cleanup.policy=delete"),),
        since=_POLICY_NAMED,
        until=_POLICY_MAY_BE_EMPTY,
    ),
    Row(
        "CONFIG-15",
        lambda check: check.is_enabled and check.policies not in ([], ["delete"]),
        (
            _refuse(
                "Remote log storage only supports topics with cleanup.policy=delete or "
                "cleanup.policy being an empty list."
            ),
        ),
        since=_POLICY_MAY_BE_EMPTY,
    ),
    _retention_row(_SIZE),
    _retention_row(_TIME),
    _copy_lag_row(_SIZE),
    _copy_lag_row(_TIME),
    _read_only_row(_SIZE),
    _read_only_row(_TIME),
    Row(
        "CONFIG-16",
        lambda check: check.was_enabled and not check.is_enabled and not check.is_true(_DELETES),
        (
            _refuse(
                "It is invalid to disable remote storage without deleting remote data. If you want "
                "to keep the remote data and turn to read only, please set "
                "`remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable "
                "remote storage and delete all remote data, please set "
                "`remote.storage.enable=false,remote.log.delete.on.disable=true`.",
                names_resource=False,
            ),
        ),
        since=_KIP_950,
    ),
)
