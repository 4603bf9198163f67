"""A KRaft cluster whose controllers are processes of their own, so that any broker, and the active
controller, can be stopped.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.real.kafka import (
    BROKER_IDS,
    START_SECONDS,
    KafkaFailed,
    RealKafka,
    properties_of,
)
from tests.support.ports import free_ports

__all__ = ["CONTROLLER_IDS", "QuorumKafka"]

_PATIENCE: Final = {"controller.quorum.fetch.timeout.ms": "10000"}
"""On a busy machine voters would take an active controller for dead, and elect another."""

CONTROLLER_IDS: Final = (101, 102, 103)


class QuorumKafka(RealKafka):
    """As ``RealKafka`` of a KRaft release, with controllers beside the brokers."""

    def __init__(
        self,
        release: str,
        folder: Path,
        *,
        broker_ids: Sequence[int] = BROKER_IDS,
        controller_ids: Sequence[int] = CONTROLLER_IDS,
    ) -> None:
        super().__init__(release, folder, zookeeper=False, broker_ids=broker_ids)
        self._quorum = dict(zip(controller_ids, free_ports(len(controller_ids)), strict=True))

    @property
    def controllers(self) -> str:
        """What ``--bootstrap-controller`` takes."""
        return ",".join(f"127.0.0.1:{port}" for port in self._quorum.values())

    def _format(self) -> None:
        """By Kafka's own tool for the first; the others take over what it wrote, as all of them
        have to begin with the same levels of features."""
        first, *others = self._quorum
        for controller_id in self._quorum:
            self._write(properties_of(controller_id), self._controller_configs(controller_id))
        self._start(
            "format", "kafka.tools.StorageTool", "format", "--cluster-id", self._cluster_id,
            "--config", properties_of(first),
            *(option for option in self._format_options() if option != "--standalone"),
        )  # fmt: skip
        tool = self._processes.pop("format")
        if tool.wait(START_SECONDS) != 0:
            raise KafkaFailed(self._story("format", "could not format storage"))
        for controller_id in others:
            shutil.copytree(
                self.logs(first),
                self.logs(controller_id),
                ignore=shutil.ignore_patterns("meta.properties"),
            )
        for broker_id in self.ports:
            self._write(properties_of(broker_id), self._kraft_configs(broker_id))
            self.logs(broker_id).mkdir()
        for node_id in [*others, *self.ports]:
            self._identify(node_id)

    def _start_controllers(self) -> None:
        for controller_id in self._quorum:
            self._start_broker(controller_id)
        for controller_id in self._quorum:
            self.wait_for(controller_id)

    def _port(self, node_id: int) -> int:
        return self._quorum.get(node_id) or super()._port(node_id)

    def _voters(self) -> str:
        return ",".join(f"{i}@127.0.0.1:{port}" for i, port in self._quorum.items())

    def _kraft_configs(self, broker_id: int) -> dict[str, str]:
        configs = super()._kraft_configs(broker_id)
        configs.pop("controller.quorum.bootstrap.servers", None)
        return {
            **configs,
            **_PATIENCE,
            "process.roles": "broker",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[broker_id]}",
            "controller.quorum.voters": self._voters(),
        }

    def _controller_configs(self, controller_id: int) -> dict[str, str]:
        configs = super()._kraft_configs(1)
        configs.pop("controller.quorum.bootstrap.servers", None)
        return {
            **configs,
            **_PATIENCE,
            "node.id": str(controller_id),
            "process.roles": "controller",
            "listeners": f"CONTROLLER://127.0.0.1:{self._quorum[controller_id]}",
            "controller.quorum.voters": self._voters(),
            "log.dirs": str(self.logs(controller_id)),
        }
