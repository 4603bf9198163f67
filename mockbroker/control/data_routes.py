"""What can be read of the data: logs and their records."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from mockbroker.control.errors import RefusedError
from mockbroker.control.routes import WHOLE, ControlRequest, Member, Route, choice, query_integer
from mockbroker.control.schemas import map_of, ref
from mockbroker.errors import UnknownPartitionError
from mockbroker.log.descriptions import describe_log, summarize_log
from mockbroker.log.record_documents import record_json
from mockbroker.log.seeding import read_records
from mockbroker.state.model import Partition
from mockbroker.topics.spec import parse_topic_partition

__all__ = ["DATA_ROUTES"]

_MOST_RECORDS: Final = 10_000
_USUAL_RECORDS: Final = 100


async def _logs(request: ControlRequest) -> dict[str, Any]:
    request.mock.follow_clock()
    cluster = request.mock.cluster
    known = dict(cluster.logs)
    return {
        f"{name}-{each.index}": summarize_log(known.get((name, each.index)), each)
        for name, topic in sorted(cluster.topics.items())
        for each in topic.partitions
    }


def _partition(request: ControlRequest) -> tuple[str, Partition]:
    """Raises RefusedError (404)."""
    topic, index = parse_topic_partition(request.path["partition"])
    try:
        return topic, request.mock.cluster.partition(topic, index)
    except UnknownPartitionError as error:
        raise RefusedError(404, str(error)) from None


async def _log(request: ControlRequest) -> dict[str, Any]:
    request.mock.follow_clock()
    return describe_log(request.mock.cluster.logs, *_partition(request))


async def _records(request: ControlRequest) -> dict[str, Any]:
    request.mock.follow_clock()
    topic, partition = _partition(request)
    tp = (topic, partition.index)
    log = request.mock.cluster.logs.log(tp)
    most = min(request.query.get("max", _USUAL_RECORDS), _MOST_RECORDS)
    found = list(islice(read_records(tp, log, request.query.get("from", 0)), most))
    as_hex = request.query.get("values") == "hex"
    return {
        "partition": f"{topic}-{partition.index}",
        "start_offset": log.start_offset,
        "high_watermark": log.high_watermark,
        "end_offset": log.end_offset,
        "records": [record_json(each, as_hex=as_hex) for each in found],
    }


_NO_PARTITION: Final = {404: "There is no cluster of this id, or no such partition."}
_VALUES: Final = choice("text", "hex")

DATA_ROUTES: Final = (
    Route("GET", "/logs", "Show where the log of each partition begins and ends.", _logs,
          map_of(ref("LogSummary"))),
    Route("GET", "/logs/{partition}", "Show the log of a partition.", _log, ref("LogDescription"),
          refusals=_NO_PARTITION),
    Route("GET", "/logs/{partition}/records", "Show the records of a partition.", _records,
          ref("Records"),
          query=(
              Member("from", {**WHOLE, "default": 0}, query_integer, "The first offset."),
              Member("max", {**WHOLE, "default": _USUAL_RECORDS, "maximum": _MOST_RECORDS},
                     query_integer, "The most records."),
              Member("values", *_VALUES,
                     'Bytes as text where they are UTF-8, or always as {"hex": ...}.'),
          ),
          refusals=_NO_PARTITION,
          details="Control records are left out. A batch that cannot be decoded has the member "
          "`problem`."),
)  # fmt: skip
