"""Operations on brokers: their processes, log directories, listeners and software."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from mockbroker.simulation.brokers.inter_broker.software_versions import own_apis
from mockbroker.simulation.operations.arguments import (
    ADDRESS,
    Argument,
    BrokerArgument,
    DirectoryArgument,
    LevelArgument,
    ReleaseArgument,
)
from mockbroker.simulation.operations.operation import RunningCluster, operation


@operation
async def stop_broker(running: RunningCluster, broker_id: BrokerArgument) -> None:
    """Stop a broker and close its connections.

    The broker leaves its ISRs, and its partitions get other leaders. Its port refuses connections
    until `start-broker`.
    """
    await running.change(running.cluster.brokers.stop, broker_id)
    await running.then(partial(running.sockets.close, broker_id))


@operation
async def start_broker(running: RunningCluster, broker_id: BrokerArgument) -> None:
    """Restart a stopped broker on the same port."""
    running.cluster.controller.broker(broker_id)
    await running.then(partial(running.sockets.reopen, broker_id))
    await running.change(running.cluster.brokers.start, broker_id)


@operation
async def fail_log_dir(
    running: RunningCluster, broker_id: BrokerArgument, directory: DirectoryArgument = None
) -> None:
    """Fail a log directory of a broker.

    Requests for the replicas in it have error 56, and DescribeLogDirs shows the error. The broker
    reports the failure to the controller: leaders move, ISRs shrink, and Metadata lists the
    replicas as offline. Brokers in KRaft mode report it since Kafka 3.7; before, leaders stay.
    Before Kafka 1.0 the broker stops. A broker lives on when all its directories have failed, where
    Kafka's halts; use `stop-broker` for that.
    """
    await running.change(running.cluster.log_dir_failures.fail, broker_id, directory)
    if not running.cluster.controller.broker(broker_id).live:
        await running.then(partial(running.sockets.close, broker_id))


@operation
async def mend_log_dir(
    running: RunningCluster, broker_id: BrokerArgument, directory: DirectoryArgument = None
) -> None:
    """Repair a log directory and restart its broker.

    A broker takes a directory back only when it starts. Its replicas join their ISRs again by
    `join-isr` or auto-progress.
    """
    await running.change(running.cluster.log_dir_failures.mend, broker_id, directory)
    await running.then(partial(running.sockets.hang_up, broker_id))


@operation
async def close_listener(running: RunningCluster, broker_id: BrokerArgument) -> None:
    """Close the listener of a live broker.

    The broker's connections break and its port refuses new ones, but the cluster still considers
    the broker live.
    """
    running.cluster.controller.broker(broker_id)
    await running.then(partial(running.sockets.close, broker_id))


@operation
async def open_listener(running: RunningCluster, broker_id: BrokerArgument) -> None:
    """Reopen a broker's listener on the same port."""
    running.cluster.controller.broker(broker_id)
    await running.then(partial(running.sockets.reopen, broker_id))


@operation
async def break_connections(running: RunningCluster, broker_id: BrokerArgument) -> None:
    """Break the connections to a broker.

    It accepts new ones at once. This is what a client sees when a load balancer or a firewall drops
    its connections.
    """
    running.cluster.controller.broker(broker_id)
    await running.then(partial(running.sockets.hang_up, broker_id))


@operation
async def set_level(
    running: RunningCluster, broker_id: BrokerArgument, level: LevelArgument
) -> None:
    """Narrow the API versions of a broker.

    LEVEL is an older release such as kafka-2.3; or the API versions that differ from the other
    brokers', such as 4=0-2,45=off; or `cluster`, which makes the broker like the others. Use
    `upgrade` for a broker that behaves as another release in all respects. The broker's
    connections break. The controller resends nothing to the broker. If the broker is the
    controller, it is elected again.
    """
    software = own_apis(running.software(level))
    await running.change(running.cluster.brokers.set_software, broker_id, software)
    running.sockets.hang_up(broker_id)


@operation
async def upgrade(
    running: RunningCluster, broker_id: BrokerArgument, release: ReleaseArgument
) -> None:
    """Restart a broker with another release of Kafka.

    The broker stops, so that its connections break and its partitions get other leaders. It starts
    with the API versions, texts, configs and features of the release, newer or older, and its
    replicas join their ISRs again. The controller, the coordinators and the logs follow the release
    of the broker that is the controller. Refused if the release does not support the finalized
    levels of the cluster's features, and from ZooKeeper to KRaft before `migrate-to-kraft`. A
    stopped broker stays stopped.
    """
    software = running.release(release)
    cluster = running.cluster
    cluster.upgrades.check(broker_id, software)
    live = cluster.controller.broker(broker_id).live
    if live:
        await running.change(cluster.brokers.stop, broker_id)
        await running.then(partial(running.sockets.close, broker_id))
    await running.change(cluster.upgrades.change, broker_id, software)
    if live:
        await running.then(partial(running.sockets.reopen, broker_id))
        await running.change(cluster.brokers.start, broker_id)
        await running.change(cluster.brokers.catch_up, broker_id, "upgrade")


@operation
async def migrate_to_kraft(running: RunningCluster) -> None:
    """Let KRaft controllers take over from ZooKeeper (KIP-866).

    All brokers need a release from 3.4 to 3.9. They keep their API versions, and forward requests
    to the controller from now on, so that clients no longer get NOT_CONTROLLER(41) and see any
    broker as the controller. Then `upgrade` each broker to the same release without `-zk`.
    """
    upgrades = running.cluster.upgrades
    kraft = running.release(upgrades.current.name.removesuffix("-zk"))
    await running.change(upgrades.migrate, kraft)


@operation
def advertise(
    running: RunningCluster,
    broker_id: BrokerArgument,
    address: Annotated[str, Argument(ADDRESS, "Where clients reach the broker.")],
) -> None:
    """Change the address of a broker in Metadata.

    The broker keeps listening where it does. This is for clients that reach it through a forwarded
    port that is known only once the cluster runs, such as a port that a container publishes. Of
    several listeners it is the first one's address; `EXTERNAL://HOST:PORT` is that of another.
    """
    running.sockets.advertise(broker_id, address)
