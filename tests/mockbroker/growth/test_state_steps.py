"""A small request takes as many steps of a cluster that holds much as of one that holds little, but
for what its answer tells and the few requests below."""

from functools import partial
from typing import Final

import pytest

from mockbroker.profiles import profile
from tests.mockbroker.growth.grown_states import STATES, Holder, Probe, probes
from tests.support.steps import steps_of

_COUNT: Final = 60
_LEAST: Final = 0.5
"""Steps for each thing more that the cluster holds: fewer come from searching in what is sorted."""

_GO_OVER_ALL: Final = {
    "ListGroups, every field filled": "groups of a state are looked for",
    "ListTransactions, every field filled": "transactions of a state are looked for",
    "ListConfigResources, every field filled": "resources of a type are looked for",
    "DescribeAcls, every field filled": "rules that a filter meets are looked for",
    "DeleteAcls, every field filled": "rules that a filter meets are looked for",
    "CreateTopics": "controllers with a ZooKeeper list its topics",
    "ConsumerGroupHeartbeat that joins a new group": "each partition of its topics is assigned",
    "ShareGroupHeartbeat that joins a new group": "each partition of its topics gets a state",
    "InitializeShareGroupState, every field filled": "names by id are listed after a change",
    "DeleteRecords, every field filled": "aborted transactions before the new start are removed",
    "OffsetDelete, every field filled": "members that read the topic are looked for",
    "DeleteTopics": "the offsets of each group end with the topic",
    "DeleteTopics, every field filled": "the offsets of each group end with the topic",
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", ["kafka-4.4", "kafka-2.4"])
async def test_steps_do_not_grow_with_what_the_cluster_holds(name: str, state: str) -> None:
    if STATES[state].api not in Holder(profile(name)).newest:
        return
    await _measured(name, state, 4)  # what is imported, compiled or read once is not counted
    few, many = await _measured(name, state, _COUNT), await _measured(name, state, 3 * _COUNT)
    assert few.keys() == many.keys()
    grown = {}
    for probe, (steps, size) in many.items():
        more, longer = steps - few[probe][0], size - few[probe][1]
        if more > 2 * _COUNT * _LEAST and longer < _COUNT and probe not in _GO_OVER_ALL:
            grown[probe] = more / (2 * _COUNT)
    assert not grown


async def _measured(name: str, state: str, count: int) -> dict[str, tuple[int, int]]:
    """Return the steps of each probe, and the bytes of its answer."""
    holder = Holder(profile(name))
    STATES[state].grow(holder, count)
    found = {}
    for probe in probes(holder):
        result: list[object] = []
        steps = steps_of(partial(_run, probe, result)).python
        size = result[0] if isinstance(result[0], int) else 0
        found[probe.name] = (steps, size)
    await holder.end()
    return found


def _run(probe: Probe, result: list[object]) -> None:
    result.append(probe.run())
