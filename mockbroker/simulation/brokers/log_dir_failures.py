"""Log directories that fail and are mended (JBOD; KIP-112, KIP-858): what a broker and its
controller do then, as one table.

The broker serves no replica of a failed directory any more. In ZooKeeper mode it writes
``/log_dir_event_notification``, and the controller asks it for its replicas with LeaderAndIsr; in
KRaft mode its heartbeat names the directory. A directory comes back only when its broker restarts.

A broker whose every directory has failed halts in Kafka. Here it lives on without replicas, so that
a broker with one directory can show the error; ``stop_broker`` is the other case.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kproto.znodes.kafka_znodes import LOG_DIR_EVENT_PREFIX, encode_log_dir_event
from mockbroker.errors import ClusterError
from mockbroker.simulation.brokers.brokers import Brokers
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, always, apply_first, rows_of_release
from mockbroker.simulation.state.actions import LogDirFailed, LogDirMended, LogDirReported
from mockbroker.simulation.state.cluster_parts import Broker, TopicPartition
from mockbroker.simulation.state.controller import Controller

__all__ = ["ON_FAILURE", "LogDirFailures"]

_FAIL: Final = "fail_log_dir"
_MEND: Final = "mend_log_dir"
_KIP_112: Final = (1, 0)
_KIP_858: Final = (3, 7)


class _Failure(msgspec.Struct, frozen=True):
    """Directories of one broker that fail: context and subject of the rows."""

    controller: Controller
    brokers: Brokers
    broker: Broker
    directories: tuple[str, ...]

    @property
    def keeps_znodes(self) -> bool:
        return self.controller.keeps_znodes

    def halt(self) -> None:
        self.fail()
        self.brokers.stop(self.broker.broker_id)

    def fail(self) -> None:
        for directory in self.directories:
            self.controller.record(_FAIL, LogDirFailed(self.broker.broker_id, directory))

    def write_znode(self) -> None:
        text = encode_log_dir_event(self.broker.broker_id).decode()
        self.controller.znodes.append(_FAIL, LOG_DIR_EVENT_PREFIX, text)

    def report(self) -> None:
        report(self.controller, self.brokers, _FAIL, self.broker.broker_id)

    def drop_followers(self) -> None:
        """Let the leaders of other brokers drop the replicas, which fetch no more."""
        state, broker_id = self.controller.state, self.broker.broker_id
        self.brokers.leave_isrs(
            broker_id,
            _FAIL,
            lambda tp: (
                state.replica_dirs.is_failed(broker_id, tp)
                and self.controller.partition(tp).leader != broker_id
            ),
        )


ON_FAILURE: Final[tuple[Row[_Failure, _Failure], ...]] = (
    Row("DP-CTL-16", always, (_Failure.halt,), until=_KIP_112),
    Row(
        "DP-CTL-16",
        lambda failure: failure.keeps_znodes,
        (_Failure.fail, _Failure.write_znode),
        since=_KIP_112,
    ),
    Row("DP-CTL-16", always, (_Failure.fail, _Failure.report), since=_KIP_858),
    Row("DP-CTL-16", always, (_Failure.fail, _Failure.drop_followers), until=_KIP_858),
)
"""What happens when a directory of a live broker fails. It is not reported to KRaft controllers
before 3.7, so leaders stay where they are."""


def report(controller: Controller, brokers: Brokers, cause: str, broker_id: int) -> None:
    """Let the controller learn which directories of a broker have failed: their replicas are
    offline."""
    dirs = controller.state.replica_dirs
    new = dirs.failed.get(broker_id, frozenset()) - dirs.reported.get(broker_id, frozenset())
    for directory in controller.broker(broker_id).log_dirs:
        if directory in new:
            controller.record(cause, LogDirReported(broker_id, directory))

    def is_concerned(tp: TopicPartition) -> bool:
        return dirs.is_reported(broker_id, tp) and dirs.directory(broker_id, tp) in new

    if new:
        brokers.leave_isrs(broker_id, cause, is_concerned)


class LogDirFailures:
    """The failures of log directories in one cluster, by the rules of its release."""

    def __init__(self, controller: Controller, brokers: Brokers, release: Release) -> None:
        self._controller = controller
        self._brokers = brokers
        release.follow(self._use_release)

    def _use_release(self, release: Release) -> None:
        self._rows = rows_of_release(ON_FAILURE, release)

    def fail(self, broker_id: int, directory: str | None) -> None:
        """Let a directory of a live broker fail; None: every one that works."""
        broker, failed = self._broker(broker_id, directory)
        if not broker.live:
            raise ClusterError(f"broker {broker_id} is stopped; its log directories cannot fail")
        chosen = broker.log_dirs if directory is None else (directory,)
        failing = tuple(each for each in chosen if each not in failed)
        if not failing:
            raise ClusterError(f"{_named(directory)} of broker {broker_id} has already failed")
        failure = _Failure(self._controller, self._brokers, broker, failing)
        apply_first(self._rows, failure, failure)

    def mend(self, broker_id: int, directory: str | None) -> None:
        """Let a failed directory work again, None: every one, and restart its broker if it is
        live."""
        broker, failed = self._broker(broker_id, directory)
        mended = tuple(each for each in broker.log_dirs if each in failed)
        if directory is not None:
            mended = tuple(each for each in mended if each == directory)
        if not mended:
            raise ClusterError(f"{_named(directory)} of broker {broker_id} has not failed")
        if broker.live:
            self._brokers.stop(broker_id)
        for each in mended:
            self._controller.record(_MEND, LogDirMended(broker_id, each))
        if broker.live:
            self._brokers.start(broker_id)

    def report(self, cause: str, broker_id: int) -> None:
        """As the function ``report``."""
        report(self._controller, self._brokers, cause, broker_id)

    def _broker(self, broker_id: int, directory: str | None) -> tuple[Broker, frozenset[str]]:
        broker = self._controller.broker(broker_id)
        if directory is not None and directory not in broker.log_dirs:
            raise ClusterError(
                f"broker {broker_id} has no log directory {directory!r}; it has "
                f"{', '.join(broker.log_dirs)}"
            )
        return broker, self._controller.state.replica_dirs.failed.get(broker_id, frozenset())


def _named(directory: str | None) -> str:
    return "every log directory" if directory is None else f"the log directory {directory}"
