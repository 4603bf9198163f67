"""Operations on the whole state of a cluster, for tests that share one."""

from __future__ import annotations

from mockbroker.simulation.operations.operation import RunningCluster, operation


@operation
async def snapshot(running: RunningCluster) -> None:
    """Remember the state of the cluster for `reset`.

    This is everything that the cluster knows: brokers and their releases, topics, records, offsets,
    groups, transactions, configs, users, quotas, what is held or throttled, latencies, the clock,
    fault rules and scripts. All connections break, so that no request is being answered.
    """
    running.saved.check_snapshot()
    await running.then(running.saved.snapshot)


@operation
async def reset(running: RunningCluster) -> None:
    """Return the cluster to the last `snapshot`.

    All connections break, and clients find the cluster at the same addresses. A clock that follows
    real time goes on from now. The journal is emptied. Refused before the first snapshot.
    """
    running.saved.check_reset()
    await running.then(running.saved.reset)
