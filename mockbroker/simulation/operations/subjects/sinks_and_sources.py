"""Operations that turn topics into sinks and sources, for measuring clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.errors import ClusterError
from mockbroker.simulation.log.batches.record_documents import parse_batch
from mockbroker.simulation.operations.arguments import RecordsArgument, TopicNameArgument
from mockbroker.simulation.operations.operation import operation
from mockbroker.simulation.state.cluster_parts import INTERNAL_TOPICS

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster


@operation
def make_sink(cluster: Cluster, topic: TopicNameArgument) -> None:
    """Turn a topic into a sink that stores no records.

    For measuring producers: they get the usual answers and offsets advance, while the log start
    offset follows the high watermark. It lasts until the topic is deleted.
    """
    _check_topic(cluster, topic)
    cluster.logs.make_sink(topic)


@operation
def make_source(cluster: Cluster, topic: TopicNameArgument, records: RecordsArgument) -> None:
    """Turn a topic into a source that serves one batch without end.

    For measuring consumers: every partition holds the batch 2^40 times at consecutive offsets, in
    place of its records. RECORDS is as in `append`. Records produced to the topic are dropped. It
    lasts until the topic is deleted.
    """
    from mockbroker.simulation.log.seeding import batch_of  # imports codecs

    _check_topic(cluster, topic)
    append_time = cluster.logs.settings(topic).append_time
    data, header = batch_of(parse_batch(records), cluster.timers.now_ms, append_time=append_time)
    if header.producer_id >= 0 or header.is_control:
        raise ClusterError("the batch of a source has no producer and no markers")
    cluster.logs.make_source(topic, data, header)


def _check_topic(cluster: Cluster, topic: str) -> None:
    """Raises ClusterError for a topic that can be no sink and no source."""
    cluster.controller.partition((topic, 0))
    if topic in INTERNAL_TOPICS:
        raise ClusterError(f"{topic} holds the state of coordinators")
