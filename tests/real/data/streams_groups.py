"""Sessions over streams groups (KIP-1071): StreamsGroupHeartbeat (88), StreamsGroupDescribe (89)
and StreamsGroupTopologyDescriptionUpdate (93).

Kafka takes members in the order of hash tables, so groups are such that it does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kproto.messages import streams_group_heartbeat_request as request
from kproto.messages.delete_groups_request import DeleteGroupsRequest
from kproto.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kproto.messages.describe_groups_request import DescribeGroupsRequest
from kproto.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.list_groups_request import ListGroupsRequest
from kproto.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kproto.messages.streams_group_heartbeat_request import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from kproto.messages.streams_group_topology_description_update_request import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
)
from tests.real.data.consumer_groups import GROUP, config_of, until
from tests.real.data.group_log import note_group_records
from tests.real.data.registry import session
from tests.real.data.requests import commit, heartbeat, join, leave
from tests.real.data.side import CLOSED, Side

QUICK = {"streams.initial.rebalance.delay.ms": "0", "streams.assignment.interval.ms": "0"}


def plain(k: Side, epoch: int = 0) -> Topology:
    return Topology(
        epoch=epoch, subtopologies=[Subtopology(subtopology_id="0", source_topics=[k.topic])]
    )


def counting(k: Side) -> Topology:
    repartition, changelog = f"{k.topic}-by-key", f"{k.topic}-counts"
    return Topology(
        subtopologies=[
            Subtopology(
                subtopology_id="0", source_topics=[k.topic], repartition_sink_topics=[repartition]
            ),
            Subtopology(
                subtopology_id="1",
                repartition_source_topics=[TopicInfo(name=repartition)],
                state_changelog_topics=[
                    TopicInfo(
                        name=changelog,
                        topic_configs=[request.KeyValue(key="cleanup.policy", value="compact")],
                    )
                ],
            ),
        ]
    )


def tasks(*names: str) -> list[TaskIds]:
    """Tasks by names such as ``0_2``, those of one subtopology in a row."""
    found: dict[str, list[int]] = {}
    for each in names:
        subtopology, partition = each.split("_")
        found.setdefault(subtopology, []).append(int(partition))
    return [TaskIds(subtopology_id=name, partitions=each) for name, each in found.items()]


def beat(
    k: Side, member: str = "a", epoch: int = 0, *, owned: Iterable[str] | None = None, **fields: Any
) -> StreamsGroupHeartbeatRequest:
    """A heartbeat; at epoch 0 it joins, with the session's topic unless a topology is given."""
    if epoch == 0:
        fields.setdefault("rebalance_timeout_ms", 60_000)
        fields.setdefault("topology", plain(k))
        fields.setdefault("process_id", f"process-{member}")
        owned = () if owned is None else owned
    if owned is not None:
        fields.setdefault("active_tasks", tasks(*owned))
        fields.setdefault("standby_tasks", [])
        fields.setdefault("warmup_tasks", [])
    return StreamsGroupHeartbeatRequest(
        group_id=fields.pop("group_id", k.group), member_id=member, member_epoch=epoch, **fields
    )


def describe(*groups: str) -> StreamsGroupDescribeRequest:
    return StreamsGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=True)


async def quick(k: Side, partitions: int = 2, **more: str) -> None:
    """A topic with these partitions, and targets at once."""
    await k.create(*([1] for _ in range(partitions)))
    configs = {**QUICK, **more}
    resource = AlterConfigsResource(
        resource_type=GROUP, resource_name=k.group,
        configs=[
            AlterableConfig(name=name, config_operation=0, value=each)
            for name, each in configs.items()
        ],
    )  # fmt: skip
    answer = await k.ask(IncrementalAlterConfigsRequest(resources=[resource]), quiet=True)
    if answer is CLOSED or answer.responses[0].error_code:
        return
    for name, value in configs.items():
        await until(k, config_of(k, name), lambda found, value=value: found == value)


async def ready(k: Side, member: str, epoch: int) -> int:
    """Send heartbeats until the topics of the group are there. Returns the member's epoch."""

    async def look() -> Any:
        nonlocal epoch
        answer = await k.ask(beat(k, member, epoch), quiet=True)
        epoch = answer.member_epoch or epoch
        return answer

    await until(k, look, lambda answer: answer.error_code or not answer.status)
    return epoch


@session(88)
async def beat_streams_wrongly(k: Side) -> None:
    await quick(k)
    await k.ask(beat(k, ""))
    await k.ask(beat(k, group_id=""))
    await k.ask(beat(k, rack_id=" "))
    await k.ask(beat(k, instance_id=""))
    await k.ask(beat(k, rebalance_timeout_ms=-1))
    await k.ask(beat(k, owned=["0_0"]))
    await k.ask(beat(k, standby_tasks=tasks("0_0")))
    await k.ask(beat(k, warmup_tasks=tasks("0_0")))
    await k.ask(beat(k, topology=None))
    await k.ask(beat(k, standby_tasks=None))
    await k.ask(beat(k, epoch=-2))
    await k.ask(beat(k, epoch=-3))
    await k.ask(beat(k, epoch=1))
    await k.ask(beat(k, epoch=-1))
    await k.ask(beat(k, epoch=2, topology=plain(k)))
    await k.ask(beat(k), broker=k.other_broker)
    sized = plain(k)
    sized.subtopologies[0].state_changelog_topics = [TopicInfo(name="log", partitions=3)]
    await k.ask(beat(k, topology=sized))
    regex = plain(k)
    regex.subtopologies[0].source_topic_regex = ["f.*"]
    await k.ask(beat(k, topology=regex))
    for name in ("__consumer_offsets", "a b"):
        wrong = Topology(subtopologies=[Subtopology(subtopology_id="0", source_topics=[name])])
        await k.ask(beat(k, topology=wrong))


@session(88)
async def invalid_topologies(k: Side) -> None:
    await quick(k)
    loop = Subtopology(
        subtopology_id="0",
        repartition_sink_topics=["r"],
        repartition_source_topics=[TopicInfo(name="r")],
    )
    await k.ask(beat(k, topology=Topology(subtopologies=[loop])))
    unfilled = plain(k).subtopologies[0]
    unfilled.repartition_source_topics = [TopicInfo(name="r")]
    await k.ask(beat(k, topology=Topology(subtopologies=[unfilled])))
    await k.ask(beat(k, topology=Topology(subtopologies=[Subtopology(subtopology_id="0")])))
    fixed = plain(k).subtopologies[0]
    fixed.repartition_source_topics = [TopicInfo(name="r", partitions=9)]
    fixed.copartition_groups = [
        request.CopartitionGroup(source_topics=[0], repartition_source_topics=[0])
    ]
    await k.ask(beat(k, topology=Topology(subtopologies=[fixed])))
    broken = plain(k).subtopologies[0]
    broken.copartition_groups = [request.CopartitionGroup(source_topics=[7])]
    await k.ask(beat(k, group_id=f"{k.group}", topology=Topology(subtopologies=[broken])))
    missing = Subtopology(
        subtopology_id="0", source_topics=[f"{k.topic}-{each}" for each in "dcba"]
    )
    await k.ask(beat(k, topology=Topology(subtopologies=[missing])))


@session(88, needs=(89,))
async def members_of_streams_groups(k: Side) -> None:
    await quick(k, 4)
    await k.ask(beat(k, "a"))
    await k.ask(beat(k, "a", 2))
    await k.ask(describe(k.group))
    await k.ask(beat(k, "a", 3))
    await k.ask(beat(k, "a", 1))
    await k.ask(beat(k, "b", 1))
    await k.ask(beat(k, "a", 2, owned=["1_0"]))
    await k.ask(beat(k, "a", 2, owned=["0_9"]))
    await k.ask(beat(k, "b"))
    await k.ask(beat(k, "a", 2))
    await k.ask(beat(k, "a", 2, owned=["0_0", "0_1", "0_2", "0_3"]))
    await k.ask(beat(k, "b", 3))
    await k.ask(describe(k.group))
    await k.ask(beat(k, "a", 2, owned=["0_0", "0_1"]))
    await k.ask(beat(k, "b", 3))
    await k.ask(describe(k.group))
    await k.ask(beat(k, "a", 2, owned=["0_0", "0_1"]))
    await k.ask(beat(k, "a", 3, rack_id="r"))
    await k.ask(beat(k, "a", 4, owned=["0_0", "0_1"], shutdown_application=True))
    await k.ask(beat(k, "b", 4))
    await k.ask(beat(k, "a", -1))
    await k.ask(beat(k, "b", 4, owned=["0_2", "0_3"]))
    await k.ask(beat(k, "b", -1))
    await k.ask(beat(k, "b", -1))
    await k.ask(describe(k.group))
    await note_group_records(k)


@session(88, needs=(89,))
async def topologies_of_streams_groups(k: Side) -> None:
    await quick(k)
    answer = await k.ask(beat(k, topology=counting(k)))
    await k.ask(describe(k.group))
    epoch = await ready(k, "a", answer.member_epoch or 2)
    await k.ask(beat(k, "a", epoch))
    await k.ask(describe(k.group))
    await k.ask(beat(k, "b"))
    await k.ask(beat(k, "b", topology=plain(k, epoch=1)))
    await k.ask(beat(k, "a", epoch, owned=["2_0"]))
    await note_group_records(k)


@session(88, needs=(89,))
async def static_members_of_streams_groups(k: Side) -> None:
    await quick(k)
    await k.ask(beat(k, "a", instance_id="i"))
    await k.ask(beat(k, "b", instance_id="i"))
    await k.ask(beat(k, "b", 2, instance_id="i"))
    await k.ask(beat(k, "a", 2, instance_id="j"))
    await k.ask(beat(k, "a", -2, instance_id="i"))
    await k.ask(describe(k.group))
    await k.ask(beat(k, "b", instance_id="i", process_id="process-a"))
    await k.ask(describe(k.group))
    await k.ask(beat(k, "b", -2, instance_id="i"))
    await k.ask(beat(k, "c", instance_id="i", process_id="other"))
    await k.ask(beat(k, "c", -1, instance_id="i"))
    await note_group_records(k)


@session(88, needs=(89,))
async def endpoints_of_streams_groups(k: Side) -> None:
    await quick(k)
    endpoint = request.Endpoint(host="here", port=80)
    await k.ask(beat(k, "a", user_endpoint=endpoint, endpoint_information_epoch=-1))
    await k.ask(beat(k, "a", 2, endpoint_information_epoch=0))
    await k.ask(beat(k, "b", endpoint_information_epoch=-1))
    await k.ask(beat(k, "a", 2, owned=["0_0"], endpoint_information_epoch=0))
    await k.ask(beat(k, "b", 3, endpoint_information_epoch=1))
    await k.ask(beat(k, "b", 3, endpoint_information_epoch=0))
    await k.ask(beat(k, "a", endpoint_information_epoch=0))
    await note_group_records(k)


@session(88, needs=(8, 11, 12, 13, 15, 16, 42))
async def other_apis_and_streams_groups(k: Side) -> None:
    await quick(k)
    await k.ask(beat(k, "a"))
    await k.ask(commit(k, (0, 1, ""), member="a", generation=2))
    await k.ask(commit(k, (0, 1, ""), member="a", generation=1))
    await k.ask(commit(k, (0, 1, ""), member="b", generation=2))
    await k.ask(commit(k, (0, 1, "")))
    await k.ask(join(k))
    await k.ask(heartbeat(k, "a", 2))
    await k.ask(leave(k, ("a", None)))
    await k.ask(ListGroupsRequest(types_filter=["streams"], states_filter=["nothing"]))
    await k.ask(DescribeGroupsRequest(groups=[k.group]))
    await k.ask(DeleteGroupsRequest(groups_names=[k.group]))
    await k.ask(beat(k, "a", -1))
    await k.ask(DeleteGroupsRequest(groups_names=[k.group]))
    await k.ask(describe(k.group))
    await note_group_records(k)


@session(88, needs=(32, 44, 89))
async def standbys_of_streams_groups(k: Side) -> None:
    more = {"streams.num.standby.replicas": "1", "streams.rack.aware.assignment.tags": "zone"}
    await quick(k, 2, **more)
    tagged = [[request.KeyValue(key="zone", value=each)] for each in ("here", "there")]
    joining = beat(k, "a", topology=counting(k), process_id="a", client_tags=tagged[0])
    answer = await k.ask(joining, quiet=True)
    epoch = await ready(k, "a", answer.member_epoch)
    await k.ask(beat(k, "b", topology=counting(k), process_id="b", client_tags=tagged[1]))
    await k.ask(beat(k, "a", epoch, owned=["0_0", "0_1", "1_0", "1_1"]))
    await k.ask(beat(k, "a", epoch, owned=["0_0", "1_0"]))
    await k.ask(beat(k, "b", epoch + 1, owned=[]))
    await k.ask(describe(k.group))
    await k.ask(beat(k, "a", -1))
    await k.ask(beat(k, "b", -1))
    await note_group_records(k)


@session(93)
async def describe_topologies(k: Side) -> None:
    await quick(k)
    await k.ask(beat(k, "a"))
    await k.ask(
        StreamsGroupTopologyDescriptionUpdateRequest(
            group_id=k.group, member_id="a", topology_description=TopologyDescription()
        )
    )


# ---- configs ---------------------------------------------------------------------------------


@session(44, needs=(32, 88))
async def configs_of_streams_groups(k: Side) -> None:
    heartbeats, sessions = "streams.heartbeat.interval.ms", "streams.session.timeout.ms"
    standbys, delay = "streams.num.standby.replicas", "streams.initial.rebalance.delay.ms"
    interval, tags = "streams.assignment.interval.ms", "streams.rack.aware.assignment.tags"
    assignor, lag = "streams.assignor.name", "streams.acceptable.recovery.lag"
    warmups, offsets = "streams.num.warmup.replicas", "streams.task.offset.interval.ms"
    for name, value in (
        (heartbeats, "4999"), (heartbeats, "15001"), (heartbeats, "x"), (heartbeats, "0"),
        (sessions, "44999"), (sessions, "60001"), (sessions, "0"), (interval, "-1"),
        (interval, "15001"), (standbys, "-1"), (standbys, "3"), (standbys, "2"), (delay, "-1"),
        (delay, "3600000"), (assignor, "unknown"), (assignor, ""), (assignor, "sticky"),
        (tags, "zone,zone"), (tags, "zone,"), (tags, "zone, rack"), (tags, ""),
        (tags, ","), (tags, "zone,,zone"), (lag, "-1"), (lag, "x"), (warmups, "-1"),
        (lag, "7"), (warmups, "21"), (warmups, "1"), (offsets, "14999"), (offsets, "16000"),
        ("streams.assignor.offload.enable", "x"), ("streams.assignor.offload.enable", "false"),
        ("streams.unknown", "1"),
    ):  # fmt: skip
        await k.ask(_alter(k.group, (name, value)))
    await k.ask(_alter(k.group, (sessions, "60001"), (heartbeats, "4999")))
    await k.ask(_alter(k.group, (standbys, "3"), (interval, "15001")))
    await k.ask(_alter(k.group, (tags, "a,a"), (heartbeats, "x")))
    await k.ask(_alter(k.group, (sessions, "46000"), (heartbeats, "15000")))
    await until(k, config_of(k, heartbeats), lambda found: found in ("15000", None))
    await k.create([1])
    await k.ask(beat(k))
    await k.ask(
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=GROUP, resource_name=k.group)],
            include_synonyms=True,
        )
    )


def _alter(group: str, *values: tuple[str, str]) -> Any:
    return IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=GROUP, resource_name=group, configs=[
                    AlterableConfig(name=name, config_operation=0, value=value)
                    for name, value in values
                ],
            )
        ]
    )  # fmt: skip
