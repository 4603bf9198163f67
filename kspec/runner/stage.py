"""The mock cluster of one play, set up by the case and changed by its steps."""

from __future__ import annotations

import asyncio
import importlib
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from kproto.schema.versions import Versions
from kspec.access_rules import access_rule
from kspec.api_keys import api_key
from kspec.errors import KspecError
from kspec.model import (
    Case,
    ClientTlsSpec,
    ClusterSpec,
    Rule,
    ServerCertificate,
    TelemetrySpec,
    mark_of,
    without_mark,
)
from kspec.partition_rows import batches
from kspec.runner.bearer_tokens import lacks_token
from kspec.steps import take_step
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.faults import faults_of
from mockbroker.faults.matching import ActiveFault
from mockbroker.simulation.security.authorizer import Authorizer
from mockbroker.simulation.state.cluster_parts import INTERNAL_TOPICS
from mockbroker.simulation.state.cluster_state import CLIENT_METRICS, GROUP
from mockbroker.simulation.state.results import AclFilter

__all__ = ["Stage", "cluster_of"]

_ATTEMPTS_AT_A_PORT: Final = 60
_PORT_SECONDS: Final = 0.1
_MOST_QUEUED: Final = 16
_CONFIGS_OF: Final = {"topic": (2, 1), "broker": (4, 2)}
"""Types of resources and sources of values that were set on them, by DescribeConfigs' codes."""
_AUTHORIZER: Final = Authorizer(allow_everyone_if_no_acl_found=True)
_ANY_RULE: Final = AclFilter()
_SUBSCRIPTION: Final = "kspec"


def cluster_of(case: Case, tls: ssl.SSLContext | None = None) -> MockCluster:
    """Return a cluster that is not yet started. Raises KprotoError if the case asks for the
    impossible."""
    spec = case.cluster
    return MockCluster(
        brokers=spec.brokers,
        topics=spec.topics,
        profile=case.profile,
        apis=_apis(spec),
        implemented_only=spec.implemented_only,
        auto_progress_ms=spec.auto_progress_ms,
        clock=spec.clock,
        auto_create_topics=spec.auto_create_topics,
        broker_configs=spec.broker_configs,
        reply35=spec.reply35,
        sasl=spec.sasl,
        authorizer=None if spec.acls is None else _AUTHORIZER,
        client_telemetry=spec.telemetry is not None,
        tls=tls,
        scram_iterations=spec.scram_iterations,
        scram_first=spec.scram_first,
        scram_final=spec.scram_final,
        propagation_ms=spec.propagation_ms,
        named_controller=None if spec.controller is None else "leader",
    )


def _apis(spec: ClusterSpec) -> dict[int, Versions | None]:
    found: dict[int, Versions | None] = {}
    for name, versions in spec.apis.items():
        key = api_key(int(name) if name.isdigit() else name)
        if key is None:
            raise KspecError(f"cluster.apis: {name!r} is not an API of Kafka")
        found[key] = None if versions in (False, "off") else Versions.parse(str(versions))
    return found


def _certificates() -> Any:
    """Return the module, which needs a package that only cases of TLS need."""
    return importlib.import_module("kspec.runner.certificates")


class Stage:
    """A started cluster, its steps and its faults.

    ``shows_attempts`` is False if a client's attempt to connect may leave no entry in the journal:
    to a broker that is unreachable or silent, with another version of TLS than the brokers have, or
    without a token to authenticate with.
    """

    def __init__(self, case: Case) -> None:
        self._tls: ssl.SSLContext | None = None
        has_same_tls = case.cluster.tls is None or case.cluster.tls.version is None
        self.shows_attempts = has_same_tls and not lacks_token(case.client.sasl or {})
        if case.cluster.tls is not None:
            self._tls = _certificates().server_context(case.cluster.tls)
            self._tls.sni_callback = self._note_handshake
        self.mock = cluster_of(case, self._tls)
        self._case = case
        self._faults: list[ActiveFault] = []
        self._marks: dict[str, str | None] = {}
        self._kept: dict[str, socket.socket] = {}
        self._fillers: list[socket.socket] = []

    async def start(self) -> None:
        """Start the cluster and bring it into the case's state. It is stopped on an error."""
        await self.mock.start()
        try:
            controller = self._case.cluster.controller
            if controller is not None and controller != self.mock.cluster.state.controller_id:
                self.mock.failover(controller)
            self.set_acls(self._case.cluster.acls or ())
            for group, configs in self._case.cluster.group_configs.items():
                self._set_configs(GROUP, group, configs)
            if self._case.cluster.telemetry is not None:
                self.set_telemetry(self._case.cluster.telemetry)
            self.add_faults(self._case.faults)
        except BaseException:
            await self.mock.stop()
            raise

    async def stop(self) -> None:
        for broker in list(self._kept):
            self._give_back(broker)
        for filler in self._fillers:
            filler.close()
        await self.mock.stop()

    @property
    def bootstrap(self) -> str:
        """The client's bootstrap addresses: every broker, or those the case names."""
        named = self._case.client.bootstrap
        addresses = self.mock.addresses
        return ",".join(addresses[each] for each in named or addresses)

    def state(self) -> Mapping[str, Any]:
        """Return the cluster, and the configs that were set on its topics and brokers."""
        cluster = self.mock.cluster
        topics = [name for name in cluster.topics if name not in INTERNAL_TOPICS]
        resources = [("topic", name) for name in topics]
        resources += [("broker", str(each)) for each in self.mock.addresses]
        configs = {}
        for kind, name in resources:
            number, source = _CONFIGS_OF[kind]
            entries = cluster.configs.describe(number, name).configs
            own = {each.name: each.value for each in entries if each.source == source}
            configs[f"{kind}:{name}"] = own
        return {**cluster.describe(), "configs": configs}

    def logs(self) -> Mapping[str, Any]:
        """Return the logs of the leaders, by partition: the values in order, and the batches."""
        cluster = self.mock.cluster
        found = {}
        for name, topic in cluster.topics.items():
            for index in range(len(topic.partitions)) if name not in INTERNAL_TOPICS else ():
                log = cluster.logs.log((name, index))
                held = [bytes(each.data) for each in log.storage.batches(0)]
                rows = [row for data in held for row in batches(data)]
                found[f"{name}-{index}"] = {
                    "start": log.start_offset,
                    "values": [each for row in rows for each in row.get("values", ())],
                    "batches": rows,
                }
        return found

    def groups(self) -> Mapping[str, Any]:
        """Return the groups by id: their members and committed offsets."""
        found: dict[str, Any] = {}
        for name, group in self.mock.groups().items():
            found[name] = {
                "state": group.state,
                "generation": group.generation,
                "protocol": group.protocol,
                "members": [
                    {
                        "client": each.client_id,
                        "instance": each.instance_id,
                        "partitions": sorted(
                            f"{topic}-{index}" for topic, index in each.assignment or ()
                        ),
                    }
                    for each in group.members
                ],
                "shared": {
                    f"{each.partition[0]}-{each.partition[1]}": {
                        "start": each.start_offset,
                        "in_flight": [
                            f"{one.first}-{one.last} {one.state} {one.delivery_count}"
                            for one in each.in_flight
                        ],
                    }
                    for each in group.share_partitions or ()
                },
                "offsets": {
                    f"{topic}-{index}": offset
                    for (topic, index), offset in self.mock.committed(name).items()
                },
            }
        return found

    async def step(self, text: str) -> None:
        """Take a step. Raises KprotoError for an unknown or impossible one."""
        verb, *words = text.split()
        if verb == "start-broker":
            self._give_back(words[0])
        await self._take(text)
        if verb == "stop-broker":
            self._keep(words[0])

    async def _take(self, text: str) -> None:
        """Take a step. A broker comes back on its old port.

        If another process's outgoing connection has that port, wait for it.
        """
        for _ in range(_ATTEMPTS_AT_A_PORT):
            try:
                return await take_step(self.mock, text)
            except OSError as error:
                problem = error.strerror or str(error)
                await asyncio.sleep(_PORT_SECONDS)
        raise KspecError(f"{text}: {problem}")

    # ---- the ports of stopped brokers ------------------------------------------------------------

    def _keep(self, broker: str) -> None:
        """Bind the port without listening: it refuses connections, and no other cluster can
        get it."""
        host, _, port = self.mock.addresses[int(broker)].rpartition(":")
        kept = socket.socket()
        self._kept[broker] = kept
        with suppress(OSError):  # another process was quicker
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            kept.bind((host, int(port)))

    async def make_unreachable(self, broker: int) -> None:
        """Stop a broker so that its address neither accepts nor refuses a connection, as with a
        host that is gone: its queue of connections is full, and the system drops every SYN.
        """
        self.shows_attempts = False
        await self.step(f"stop-broker {broker}")
        kept = self._kept[str(broker)]
        kept.listen(0)
        loop = asyncio.get_running_loop()
        for _ in range(_MOST_QUEUED):
            filler = socket.socket()
            filler.setblocking(False)
            self._fillers.append(filler)
            try:
                async with asyncio.timeout(_PORT_SECONDS):
                    await loop.sock_connect(filler, kept.getsockname())
            except TimeoutError:
                return
        raise KspecError(f"broker {broker}: the system does not limit its queue of connections")

    async def make_silent(self, broker: int) -> None:
        """Stop a broker so that its port accepts connections, whose bytes are not read."""
        self.shows_attempts = False
        await self.step(f"stop-broker {broker}")
        self._kept[str(broker)].listen()

    # ---- TLS -------------------------------------------------------------------------------------

    def _note_handshake(self, *_about: object) -> None:
        """Note a ClientHello, as a connection whose handshake fails leaves no other trace."""
        self.mock.journal.record(
            time.time_ns(), broker_id=0, connection_id=0, direction="event", event="client-hello"
        )

    def use_certificate(self, kind: ServerCertificate) -> None:
        """Let the listeners have another certificate for the handshakes to come."""
        if self._tls is None:
            raise KspecError("the cluster has no TLS")
        _certificates().use_certificate(self._tls, kind)

    @staticmethod
    def client_files(spec: ClientTlsSpec) -> dict[str, str]:
        """Return the paths of a client's trusted authority, certificate and key."""
        files: dict[str, str] = _certificates().client_files(spec)
        return files

    def _give_back(self, broker: str) -> None:
        kept = self._kept.pop(broker, None)
        if kept is not None:
            kept.close()

    # ---- access rules ------------------------------------------------------------------------

    def set_acls(self, rules: Sequence[str]) -> None:
        """Let the cluster have these access rules and no others."""
        self.mock.cluster.acls.delete([_ANY_RULE])
        self.mock.cluster.acls.create([access_rule(each) for each in rules])

    # ---- telemetry ---------------------------------------------------------------------------

    def set_telemetry(self, spec: TelemetrySpec) -> None:
        """Let the cluster want these metrics of its clients and no others. Raises ClusterError."""
        wanted = {
            "metrics": ",".join(spec.metrics),
            "interval.ms": str(spec.interval_ms),
            "match": ",".join(spec.match),
        }
        given = bool(spec.metrics)
        configs = {name: value if given else "" for name, value in wanted.items()}
        self._set_configs(CLIENT_METRICS, _SUBSCRIPTION, configs)

    def _set_configs(self, kind: int, name: str, configs: Mapping[str, str]) -> None:
        """Set the configs of a resource, or delete those without a value. Raises ClusterError."""
        operations = [(each, 0 if value else 1, value) for each, value in configs.items()]
        resource = (kind, name, operations)
        (result,) = self.mock.cluster.config_changes.alter_incrementally([resource])
        if result.error_code:
            raise ClusterError(f"configs of {name}: {result.error_message}")

    # ---- faults ----------------------------------------------------------------------------------

    def add_faults(self, rules: Sequence[Rule]) -> None:
        added = self.mock.load_faults(faults_of([without_mark(each) for each in rules]))
        self._faults += added
        marks = [mark_of(each) for each in rules]
        self._marks |= {fault.name: mark for fault, mark in zip(added, marks, strict=True)}

    def clear_faults(self) -> None:
        for fault in self._faults:
            if fault.live:
                self.mock.remove_fault(fault)

    def unhit(self) -> list[str]:
        """Return the faults that no request triggered: those without a mark, and those that are
        optional if no fault was triggered at all. Rules that only observe are not among them."""
        is_any_hit = any(each.hits or each.fault.observe for each in self._faults)
        marks = (None,) if is_any_hit else (None, "optional")
        return [
            each.fault.describe()
            for each in self._marked(*marks)
            if not each.hits and not each.fault.observe
        ]

    def inapplicable(self) -> list[str]:
        """Return what shows that the case does not apply to the client: the faults marked so that
        no request triggered, or whose requests did not allow them."""
        return [
            f"no request triggered {each.fault.describe()}"
            if not each.hits
            else f"{each.fault.describe()}: {each.failed[0]}"
            for each in self._marked("applies")
            if not each.hits or (each.is_broken and not each.failed_steps)
        ]

    def failed_faults(self) -> list[str]:
        """Return what faults could not do: any of their steps, and a change of a response that no
        hit of a fault without a mark could make."""
        found = []
        for each in self._faults:
            is_broken = each.is_broken and self._marks[each.name] is None
            problems = each.failed if is_broken else each.failed_steps
            found += [f"the fault {each.fault.describe()} failed: {text}" for text in problems]
        return found

    def _marked(self, *marks: str | None) -> list[ActiveFault]:
        return [each for each in self._faults if self._marks[each.name] in marks]
