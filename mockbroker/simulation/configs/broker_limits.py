"""What brokers refuse of their own configs, as rows in the order in which they check.

``ON_BROKER_NAMES`` look at which configs change, ``ON_BROKER_VALUES`` at values that are right each
by itself: a number of threads changes to half or to double of what it is, at most. ``changes``
checks types and ranges between the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from mockbroker.simulation.configs.values import items_of
from mockbroker.simulation.releases.rows import Row, with_arguments
from mockbroker.simulation.state.java_maps import hash_order

__all__ = [
    "ON_BROKER_DEFAULTS",
    "ON_BROKER_NAMES",
    "ON_BROKER_VALUES",
    "BrokerConfigCheck",
    "is_of_one_broker",
]

_LISTENER_PREFIX: Final = re.compile(r"listener\.name\.[^.]*\.")
_STORES: Final = re.compile(r"ssl\.(key\.password|keystore\..*|truststore\..*)")
_OF_ONE_BROKER: Final = re.compile(
    r"(sasl|ssl)\..*|listeners|advertised\.listeners|listener\.security\.protocol\.map"
    r"|principal\.builder\.class"
)

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_CLEANER_THREADS: Final = "log.cleaner.threads"
_DEDUPE: Final = "log.cleaner.dedupe.buffer.size"
_DEDUPE_OF_THREAD: Final = 1 << 20
_RETENTION: Final = "log.retention.ms"
_ROLL: Final = "log.roll.ms"
_JITTER: Final = "log.roll.jitter.ms"
_LOCAL: Final = "log.local.retention.ms"
_REPORTERS: Final = "metric.reporters"
_PER_ADDRESS: Final = "max.connections.per.ip"
_OVERRIDES: Final = "max.connections.per.ip.overrides"
_PROTOCOLS: Final = "listener.security.protocol.map"
_CORDONED: Final = "cordoned.log.dirs"
_LISTENERS: Final = "listeners"
_ADVERTISED: Final = "advertised.listeners"
_ENDPOINT: Final = re.compile(r"(.*)://\[?[0-9a-zA-Z\-%._:]*\]?:-?[0-9]+")
_CODEC: Final = "compression.type"
_CODECS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_CODECS_BEFORE_ZSTD: Final = ("uncompressed", "snappy", "lz4", "gzip", "producer")
_CONNECTIONS: Final = ("max.connections", "max.connection.creation.rate")
_THREADS: Final = (
    "num.io.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "num.network.threads",
    "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
)


class BrokerConfigCheck(msgspec.Struct):
    """A change of a broker's configs, or of the defaults of all brokers. ``kept`` has the names of
    configs that brokers of Kafka can change while they run, but not those of the mock.

    ``changed`` has the values that the request sets, ``static`` the names of those that a running
    broker cannot change. ``in_use`` returns the value that the broker follows; ``set_text`` is how
    the release writes a set of names. ``text`` is the refusal.
    """

    changed: Mapping[str, str]
    is_default: bool
    static: Sequence[str]
    kept: Sequence[str]
    in_use: Callable[[str], str | None]
    set_text: str
    text: str = ""
    unknown: Collection[str] = ()
    """Configs that no broker of the release has."""

    @property
    def stores(self) -> list[str]:
        """Key stores and trust stores that are not those of a listener."""
        return [
            name for name in self.changed if name not in self.unknown and _STORES.fullmatch(name)
        ]

    @property
    def of_one_broker(self) -> list[str]:
        return [
            name for name in self.changed if name not in self.unknown and is_of_one_broker(name)
        ]

    def refuse_names(self, problem: str, names: Iterable[str], set_text: str = "") -> None:
        listed = (set_text or self.set_text).format(names=", ".join(hash_order(names)))
        self.text = f"{problem}: {listed}"

    def refuse_values(self, problem: str) -> None:
        self.text = (
            f"Invalid value org.apache.kafka.common.config.ConfigException: {problem} for "
            "configuration Invalid dynamic configuration"
        )

    def number(self, name: str) -> int:
        """The number that the broker would follow after the change."""
        return int(self.changed.get(name) or self.in_use(name) or 0)

    def present(self, name: str) -> int:
        return int(self.in_use(name) or 0)

    def unpaired(self, name: str) -> str | None:
        """The first item of a list of pairs that has no colon."""
        items = (each.strip() for each in self.changed.get(name, "").split(","))
        return next((each for each in items if each and ":" not in each), None)

    @property
    def bad_override(self) -> str | None:
        """The first limit of an address that is not a number."""
        items = (each.strip() for each in self.changed.get(_OVERRIDES, "").split(","))
        limits = (each.rpartition(":")[2].strip() for each in items if each)
        return next((each for each in limits if not _INTEGER.fullmatch(each)), None)

    @property
    def unreadable_listener(self) -> str | None:
        """The first advertised listener that has no name, host and port."""
        listeners = _items(self.changed.get(_ADVERTISED, ""))
        return next((each for each in listeners if not _ENDPOINT.fullmatch(each)), None)

    @property
    def advertises_nothing(self) -> bool:
        return _ADVERTISED in self.changed and not _items(self.changed[_ADVERTISED])

    def unknown_codec(self, codecs: Sequence[str]) -> bool:
        """Whether the codec is none of ``codecs``."""
        codec = self.changed.get(_CODEC)
        return codec is not None and codec.strip().lower() not in codecs

    @property
    def foreign_dirs(self) -> list[str]:
        """Cordoned log directories that the broker does not have."""
        cordoned = _items(self.changed.get(_CORDONED, ""))
        own = {*_items(self.in_use("log.dirs") or "")}
        return [] if cordoned == ["*"] else [each for each in cordoned if each not in own]

    @property
    def thread_problem(self) -> str:
        """Why the first wrong number of threads is refused; empty if none is."""
        for name in _THREADS:
            if name not in self.changed:
                continue
            wanted, present = self.number(name), self.present(name)
            start = f"Dynamic thread count update validation failed for {name}={wanted}, value"
            if wanted <= 0:
                return f"{start} should be at least 1"
            if wanted > 2 * present:
                return f"{start} should not be greater than double the current value {present}"
            if wanted < present // 2:
                return f"{start} should be at least half the current value {present}"
        return ""

    @property
    def cleaner_problem(self) -> str:
        if _CLEANER_THREADS not in self.changed:
            return ""
        wanted, present = self.number(_CLEANER_THREADS), self.present(_CLEANER_THREADS)
        if wanted > 2 * present:
            how = "increased to more than double"
        elif wanted < present // 2:
            how = "reduced to less than half"
        else:
            return ""
        return f"Log cleaner threads cannot be {how} the current value {present}"

    @property
    def bad_connections(self) -> str | None:
        """The first limit of connections that would admit no client."""
        return next((n for n in _CONNECTIONS if n in self.changed and not self.number(n)), None)


def is_of_one_broker(name: str) -> bool:
    """Whether the config has no default for all brokers."""
    return _OF_ONE_BROKER.fullmatch(_LISTENER_PREFIX.sub("", name, count=1)) is not None


def _items(text: str) -> list[str]:
    return [each for each in items_of(text) if each]


_STATIC: Final = "Cannot update these configs dynamically"


def _refuse_static(check: BrokerConfigCheck) -> None:
    check.refuse_names(_STATIC, check.static)


def _refuse_kept(check: BrokerConfigCheck) -> None:
    check.refuse_names(_STATIC, check.kept)


@with_arguments
def _refuse_stores(check: BrokerConfigCheck, set_text: str) -> None:
    check.refuse_names(
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix",
        check.stores,
        set_text,
    )


_NEEDS_ID: Final = (
    "Cannot update these configs at default cluster level, broker id must be specified"
)


def _refuse_default(check: BrokerConfigCheck) -> None:
    check.refuse_names(_NEEDS_ID, check.of_one_broker)


def _refuse_cordoned(check: BrokerConfigCheck) -> None:
    check.refuse_names(_NEEDS_ID, [_CORDONED])


@with_arguments
def _refuse_unpaired(check: BrokerConfigCheck, name: str) -> None:
    length = len(check.unpaired(name) or "")
    check.text = f"Error parsing configuration property '{name}': begin 0, end -1, length {length}"


def _refuse_override(check: BrokerConfigCheck) -> None:
    check.text = f'For input string: "{check.bad_override}"'


def _refuse_zero_cleaners(check: BrokerConfigCheck) -> None:
    check.text = "/ by zero"


def _refuse_small_buffer(check: BrokerConfigCheck) -> None:
    check.text = f"requirement failed: {_DEDUPE} must be at least 1MB per cleaner thread."


@with_arguments
def _refuse_roll(check: BrokerConfigCheck, name: str, least: int) -> None:
    check.text = f"requirement failed: {name} must be greater than or equal to {least}"


def _is_less(name: str, least: int) -> Callable[[BrokerConfigCheck], bool]:
    return lambda check: check.changed.get(name) is not None and check.number(name) < least


def _admits_no_address(check: BrokerConfigCheck) -> bool:
    """Whether no address may connect."""
    return (
        check.changed.get(_PER_ADDRESS) is not None
        and not int(check.changed[_PER_ADDRESS])
        and not check.changed.get(_OVERRIDES, check.in_use(_OVERRIDES))
    )


def _refuse_no_address(check: BrokerConfigCheck) -> None:
    check.text = (
        f"requirement failed: {_PER_ADDRESS} can be set to zero only if {_OVERRIDES} property is "
        "set."
    )


def _retention(check: BrokerConfigCheck) -> int:
    """How long logs are kept, in milliseconds, by whichever config says so."""
    for name, unit in ((_RETENTION, 1), ("log.retention.minutes", 60_000)):
        value = check.changed.get(name) or check.in_use(name)
        if value is not None:
            return int(value) * unit
    return int(check.in_use("log.retention.hours") or 168) * 3_600_000


def _keeps_more_at_brokers(check: BrokerConfigCheck) -> bool:
    """Whether tiered logs would stay at brokers for ever, but not elsewhere."""
    return check.changed.get(_LOCAL, "").strip() == "-1" and _retention(check) != -1


def _refuse_local(check: BrokerConfigCheck) -> None:
    check.refuse_values(
        f"Invalid value -1 for configuration {_LOCAL}: Value must not be -1 as {_RETENTION} value "
        f"is set as {_retention(check)}."
    )


def _has_unknown_reporter(check: BrokerConfigCheck) -> bool:
    """Whether a reporter is none of those that come with Kafka."""
    reporters = items_of(check.changed.get(_REPORTERS, ""))
    return not all(each.startswith("org.apache.kafka.") for each in reporters)


def _refuse_reporter(check: BrokerConfigCheck) -> None:
    check.refuse_values(
        f"Validation of dynamic config update of Set({_REPORTERS}) failed with class class "
        "kafka.server.DynamicMetricsReporters"
    )


def _refuse_retention(check: BrokerConfigCheck) -> None:
    check.text = (
        f"requirement failed: {_RETENTION} must be unlimited (-1) or, greater than or equal to 1"
    )


@with_arguments
def _refuse_codec(check: BrokerConfigCheck, codecs: Sequence[str]) -> None:
    check.text = (
        f"requirement failed: {_CODEC} : {check.changed[_CODEC].strip()} is not valid. "
        f"Valid options are {','.join(codecs)}"
    )


def _refuse_listener(check: BrokerConfigCheck) -> None:
    check.text = (
        f"Error creating broker listeners from '{check.changed[_ADVERTISED].strip()}': Unable to "
        f"parse {check.unreadable_listener} to a broker endpoint"
    )


def _refuse_no_listener(check: BrokerConfigCheck) -> None:
    check.text = (
        "requirement failed: inter.broker.listener.name must be a listener name defined in "
        f"{_ADVERTISED}. The valid options based on currently configured listeners are "
    )


def _refuse_foreign_dirs(check: BrokerConfigCheck) -> None:
    check.text = (
        f"requirement failed: All entries in {_CORDONED} must be present in log.dirs or log.dir. "
        f"Missing entries : {', '.join(check.foreign_dirs)}"
    )


def _changes_cleaner(check: BrokerConfigCheck) -> bool:
    return _CLEANER_THREADS in check.changed or _DEDUPE in check.changed


_JAVA_SETS_SINCE: Final = (4, 3)
_CORDONED_SINCE: Final = (4, 3)
_LISTED_SINCE: Final = (4, 2)
"""Since then the config is a list."""
_ZSTD_SINCE: Final = (2, 1)

ON_BROKER_NAMES: Final[tuple[Row[BrokerConfigCheck, BrokerConfigCheck], ...]] = (
    Row("CONFIG-01", lambda check: bool(check.static), (_refuse_static,)),
    Row(
        "CONFIG-02",
        lambda check: bool(check.stores),
        (_refuse_stores("HashSet({names})"),),
        since=(1, 1),
        until=_JAVA_SETS_SINCE,
    ),
    Row(
        "CONFIG-02",
        lambda check: bool(check.stores),
        (_refuse_stores("[{names}]"),),
        since=_JAVA_SETS_SINCE,
    ),
)


def _refuse_empty_listeners(check: BrokerConfigCheck) -> None:
    check.text = (
        f"Configuration '{_LISTENERS}' must not be empty. Valid values include: any non-empty value"
    )


ON_BROKER_DEFAULTS: Final[tuple[Row[BrokerConfigCheck, BrokerConfigCheck], ...]] = (
    Row(
        "CONFIG-26",
        lambda check: _LISTENERS in check.changed and not _items(check.changed[_LISTENERS]),
        (_refuse_empty_listeners,),
        since=_LISTED_SINCE,
    ),
    Row(
        "CONFIG-03",
        lambda check: check.is_default and bool(check.of_one_broker),
        (_refuse_default,),
        since=(1, 1),
    ),
    Row(
        "CONFIG-03",
        lambda check: check.is_default and _CORDONED in check.changed,
        (_refuse_cordoned,),
        since=_CORDONED_SINCE,
    ),
)
"""These follow the checks of types and ranges."""

ON_BROKER_VALUES: Final[tuple[Row[BrokerConfigCheck, BrokerConfigCheck], ...]] = (
    Row(
        "CONFIG-04",
        lambda check: check.unpaired(_OVERRIDES) is not None,
        (_refuse_unpaired(_OVERRIDES),),
    ),
    Row("CONFIG-04", lambda check: check.bad_override is not None, (_refuse_override,)),
    Row(
        "CONFIG-04",
        lambda check: check.unpaired(_PROTOCOLS) is not None,
        (_refuse_unpaired(_PROTOCOLS),),
    ),
    Row("CONFIG-26", _is_less(_ROLL, 1), (_refuse_roll(_ROLL, 1),)),
    Row("CONFIG-26", _is_less(_JITTER, 0), (_refuse_roll(_JITTER, 0),)),
    Row(
        "CONFIG-09",
        lambda check: check.changed.get(_RETENTION) is not None and not check.number(_RETENTION),
        (_refuse_retention,),
    ),
    Row(
        "CONFIG-05",
        lambda check: bool(check.foreign_dirs),
        (_refuse_foreign_dirs,),
        since=_CORDONED_SINCE,
    ),
    Row(
        "CONFIG-06",
        lambda check: _CLEANER_THREADS in check.changed and not check.number(_CLEANER_THREADS),
        (_refuse_zero_cleaners,),
    ),
    Row(
        "CONFIG-06",
        lambda check: (
            _changes_cleaner(check)
            and check.number(_DEDUPE) // check.number(_CLEANER_THREADS) <= _DEDUPE_OF_THREAD
        ),
        (_refuse_small_buffer,),
    ),
    Row(
        "CONFIG-22",
        lambda check: check.unknown_codec(_CODECS),
        (_refuse_codec(_CODECS),),
        since=_ZSTD_SINCE,
    ),
    Row(
        "CONFIG-22",
        lambda check: check.unknown_codec(_CODECS_BEFORE_ZSTD),
        (_refuse_codec(_CODECS_BEFORE_ZSTD),),
        until=_ZSTD_SINCE,
    ),
    Row("CONFIG-26", _admits_no_address, (_refuse_no_address,)),
    Row("CONFIG-23", lambda check: check.unreadable_listener is not None, (_refuse_listener,)),
    Row("CONFIG-23", lambda check: check.advertises_nothing, (_refuse_no_listener,)),
    Row(
        "CONFIG-08",
        lambda check: check.bad_connections is not None,
        (lambda check: check.refuse_values(f"Invalid {check.bad_connections} 0"),),
    ),
    Row(
        "CONFIG-07",
        lambda check: bool(check.thread_problem),
        (lambda check: check.refuse_values(check.thread_problem),),
    ),
    Row(
        "CONFIG-07",
        lambda check: bool(check.cleaner_problem),
        (lambda check: check.refuse_values(check.cleaner_problem),),
    ),
    Row("CONFIG-26", _keeps_more_at_brokers, (_refuse_local,)),
    Row("CONFIG-26", _has_unknown_reporter, (_refuse_reporter,)),
    Row("CONFIG-01", lambda check: bool(check.kept), (_refuse_kept,)),
)
