"""``mockbroker ctl URL produce``, ``consume``, ``log foo-0``, ``group`` and the like: the data."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import cycle
from typing import Any, Final, TextIO
from urllib.parse import quote

import click

from kproto.cli.terminal import echo, echo_json
from kproto.safe_text import json_text
from mockbroker.cli.control_client import ControlClient, shows
from mockbroker.cli.option_types import DURATION, ParsedOption, json_option
from mockbroker.errors import ClusterError
from mockbroker.simulation.log.batches.record_documents import CODECS, RecordDocument, parse_record
from mockbroker.simulation.log.producing.partitioner import partition_of_key
from mockbroker.simulation.state.option_types import name_and_value

__all__ = [
    "consume",
    "data_actions",
    "group",
    "groups",
    "offsets",
    "produce",
    "show_log",
    "telemetry",
    "tokens",
    "transaction",
    "transactions",
    "waiting",
]

_RECORDS_A_BATCH: Final = 500
_RECORDS_A_PAGE: Final = 1000


@click.command("produce")
@click.argument("topic")
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@click.option("--partition", type=click.IntRange(0), help="Append to this partition.")
@click.option("--key", help="The key of every record.")
@click.option("--header", "headers", multiple=True,
              type=ParsedOption("NAME=VALUE", partial(name_and_value, example="trace=7")),
              help="A header of every record. Repeatable.")  # fmt: skip
@click.option("--timestamp", type=int, metavar="MS",
              help="The timestamp of every record, in milliseconds. Default: the simulated time.",
              )  # fmt: skip
@click.option("--codec", type=click.Choice(CODECS), default="none", show_default=True,
              help="How batches are compressed.")  # fmt: skip
@click.option("--json-lines", is_flag=True,
              help="Each VALUE or line is a record as JSON, as `consume --json` prints them.",
              )  # fmt: skip
@click.option("--file", "file", type=click.File(encoding="utf-8"), metavar="FILE|-",
              help="Read lines from this file. Default: stdin, if there is no VALUE.")  # fmt: skip
@json_option
@click.pass_obj
def produce(
    client: ControlClient,
    topic: str,
    values: tuple[str, ...],
    partition: int | None,
    key: str | None,
    headers: tuple[tuple[str, str], ...],
    timestamp: int | None,
    codec: str,
    json_lines: bool,
    file: TextIO | None,
    as_json: bool,
) -> None:
    """Append records to a topic, without a producer.

    Each VALUE, or each line, is a record. A record with a key goes to the partition that Kafka's
    producers choose for it, others to the partitions in turn. The checks of Produce do not apply.
    """
    if values and file is not None:
        raise click.UsageError("give either VALUEs or --file FILE")
    common: dict[str, Any] = {"headers": [list(each) for each in headers]}
    if key is not None:
        common["key"] = key
    if timestamp is not None:
        common["timestamp"] = timestamp
    lines: Iterable[str] = values or (each.rstrip("\n") for each in file or sys.stdin)
    count = _partitions(client, topic)
    turn = cycle(range(count))
    batches: dict[int, list[dict[str, Any]]] = {}
    sent: dict[int, int] = {}

    def send(index: int) -> None:
        body = {"records": batches.pop(index), "codec": codec}
        client.post("/append", {"partition": f"{topic}-{index}", "records": body})

    for line in lines:
        record, parsed = _record(line, common, is_json=json_lines)
        index = _place(record, parsed, partition, count, turn)
        batches.setdefault(index, []).append(record)
        sent[index] = sent.get(index, 0) + 1
        if len(batches[index]) == _RECORDS_A_BATCH:
            send(index)
    for index in sorted(batches):
        send(index)
    if as_json:
        echo_json({f"{topic}-{index}": sent[index] for index in sorted(sent)})
        return
    for index in sorted(sent):
        echo(f"{topic}-{index}  {sent[index]} records")


def _partitions(client: ControlClient, topic: str) -> int:
    known = client.get("/state")["topics"].get(topic)
    if known is None:
        raise click.ClickException(f"there is no topic {topic!r}")
    return len(known)


def _record(
    line: str, common: dict[str, Any], *, is_json: bool
) -> tuple[dict[str, Any], RecordDocument]:
    """Return the JSON object of a record, and the record."""
    own: Any = {"value": line}
    if is_json:
        try:
            own = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise click.ClickException(f"{line!r:.80} is not JSON: {error}") from None
    try:
        parsed = parse_record(own)
    except ClusterError as error:
        raise click.ClickException(f"{line!r:.80}: {error}") from None
    record = {"value": own} if isinstance(own, str) else own
    return {**common, **record}, parsed


def _place(
    record: dict[str, Any],
    parsed: RecordDocument,
    partition: int | None,
    count: int,
    turn: Iterator[int],
) -> int:
    """``--partition`` counts first, then the record's own partition, then its key."""
    requested = record.get("partition") if partition is None else partition
    if isinstance(requested, int):
        return requested
    key = parsed.key
    if key is None and isinstance(record.get("key"), str):
        key = record["key"].encode()
    return next(turn) if key is None else partition_of_key(key, count)


@click.command("consume")
@click.argument("topic")
@click.option("--partition", type=click.IntRange(0), help="Only this partition.")
@click.option("--from", "first", type=click.IntRange(0), default=0, show_default=True,
              help="The first offset.")  # fmt: skip
@click.option("--max", "most", type=click.IntRange(1), help="The most records.")
@click.option("--committed", is_flag=True,
              help="Only the records that a consumer with read_committed gets.")  # fmt: skip
@click.option("--values", type=click.Choice(["text", "hex"]), default="text", show_default=True,
              help="How bytes are printed: as text where they are UTF-8, or always in hex.",
              )  # fmt: skip
@json_option
@click.pass_obj
def consume(
    client: ControlClient,
    topic: str,
    partition: int | None,
    first: int,
    most: int | None,
    committed: bool,
    values: str,
    as_json: bool,
) -> None:
    """Print the records of a topic, without a consumer.

    One record a line, by partition and offset, to the end of the leader's log. With --json, each
    line is an object that `produce --json-lines` reads.
    """
    indexes = range(_partitions(client, topic)) if partition is None else [partition]
    left = most
    for index in indexes:
        options = {"values": values, **({"committed": "true"} if committed else {})}
        for record in _records(client, f"{topic}-{index}", first, options):
            if left == 0:
                return
            left = None if left is None else left - 1
            echo(json_text(record) if as_json else _describe(record))


def _records(
    client: ControlClient, partition: str, first: int, more: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    where = f"/logs/{quote(partition, safe='')}/records"
    options = {"max": _RECORDS_A_PAGE, **more}
    while True:
        found = client.get(where, **{"from": first}, **options)["records"]
        yield from found
        if len(found) < _RECORDS_A_PAGE:
            return
        first = found[-1].get("offset", found[-1].get("last_offset")) + 1


def _describe(record: dict[str, Any]) -> str:
    where = f"{record['topic']}-{record['partition']}"
    if "problem" in record:
        offsets = f"{record['base_offset']} to {record['last_offset']}"
        return f"{where}  offsets {offsets} cannot be decoded: {record['problem']}"
    parts = [f"{where}  {record['offset']:>6}  {record['timestamp']}"]
    if record["key"] is not None:
        parts.append(f"key {_value(record['key'])}")
    parts += [f"{name}={_value(value)}" for name, value in record["headers"]]
    parts.append(_value(record["value"]))
    return "  ".join(parts)


def _value(given: Any) -> str:
    if given is None:
        return "null"
    return f"0x{given['hex']}" if isinstance(given, dict) else json.dumps(given)


def show_log(client: ControlClient, partition: str, *, as_json: bool) -> None:
    """Print where the log of a partition begins and ends, and how far each replica has it."""
    answer = client.get(f"/logs/{quote(partition, safe='')}")
    if as_json:
        echo_json(answer)
        return
    echo(
        f"{answer['partition']}  offsets {answer['start_offset']} to {answer['end_offset']}, "
        f"high watermark {answer['high_watermark']}, {answer['batches']} batches, "
        f"{answer['bytes']} bytes"
    )
    if answer["highest_remote_offset"] >= 0:
        echo(
            f"  remote storage has offsets up to {answer['highest_remote_offset']}, "
            f"brokers from {answer['local_start_offset']} on"
        )
    for broker, replica in answer["replicas"].items():
        facts = [f"end {replica['end_offset']}"]
        if int(broker) == answer["leader"]:
            facts.insert(0, f"leader, epoch {answer['leader_epoch']}")
        facts += [name for name in ("in_sync", "held") if replica[name]]
        echo(f"  broker {broker}  {', '.join(facts).replace('_', ' ')}")
    for each in answer["epochs"]:
        echo(f"  epoch {each['epoch']} from offset {each['start_offset']}")


# ---- telemetry -----------------------------------------------------------------------------------


@shows("telemetry", "/telemetry")
def telemetry(answer: Any) -> None:
    """Show the metrics that clients pushed (KIP-714), and what they are to push."""
    for each in answer["subscriptions"]:
        match = f", clients {' '.join(each['match'])}" if each["match"] else ""
        echo(
            f"subscription {each['name']}  {' '.join(each['metrics']) or 'no metrics'} "
            f"every {each['interval_ms']} ms{match}"
        )
    for each in answer["clients"]:
        last = ", terminating" if each["terminating"] else ""
        echo(
            f"client {each['client_instance_id']}  {each['client_id']} at broker "
            f"{each['broker_id']}, subscription {each['subscription_id']}{last}"
        )
    for each in answer["pushes"]:
        problem = f": {each['problem']}" if each["problem"] else ""
        last = ", the last" if each["terminating"] else ""
        echo(
            f"push {each['number']}  {each['client_id']} to broker {each['broker_id']}, "
            f"{each['size']} bytes, {each['compression']}{last}{problem}"
        )
        for metric in each["metrics"]:
            for point in metric["points"]:
                echo(f"  {_described_point(metric, point)}")


def _described_point(metric: dict[str, Any], point: dict[str, Any]) -> str:
    attributes = ", ".join(f"{name}={value}" for name, value in point["attributes"].items())
    shown = f"{{{attributes}}}" if attributes else ""
    return f"{metric['name']}{shown} {metric['type']} {json.dumps(point['value'])}"


# ---- groups --------------------------------------------------------------------------------------


@shows("groups", "/groups")
def groups(answer: Any) -> None:
    """List the groups."""
    for each in answer.values():
        echo(_describe_group(each))


def _describe_group(each: dict[str, Any]) -> str:
    protocol = f", {each['protocol']}" if each["protocol"] else ""
    members = f"{len(each['members'])} members"
    if each["type"] in ("consumer", "share"):
        pinned = ", target by hand" if each["pinned"] else ""
        held = ", assignment held" if each["held"] else ""
        return (
            f"{each['group_id']}  {each['state']}, epoch {each['generation']}, "
            f"target of epoch {each['target_epoch']}{protocol}, {members}{pinned}{held}"
        )
    held = ", joins held" if each["held"] else ""
    return (
        f"{each['group_id']}  {each['state']}, generation {each['generation']}{protocol}, "
        f"{members}{held}"
    )


@click.command("group")
@click.argument("group_id", metavar="GROUP")
@click.option("--wait", "state", metavar="STATE", help="Wait until the group has this state.")
@click.option("--members", type=click.IntRange(0), help="Wait until it has so many members.")
@click.option("--timeout", type=DURATION, default="10s", show_default=True,
              help="How long to wait.")  # fmt: skip
@json_option
@click.pass_obj
def group(
    client: ControlClient,
    group_id: str,
    state: str | None,
    members: int | None,
    timeout: int,
    as_json: bool,
) -> None:
    """Show a group with its members, perhaps after waiting for it."""
    where = f"/groups/{quote(group_id, safe='')}"
    if state is None and members is None:
        answer = client.get(where)
    else:
        answer = client.get(f"{where}/wait", state=state, members=members, timeout=timeout)
    if as_json:
        echo_json(answer)
        return
    echo(_describe_group(answer))
    for each in answer["members"]:
        echo("  " + "  ".join(_member_facts(each, leads=each["member_id"] == answer["leader"])))
    for each in answer["share_partitions"] or ():
        echo(f"  {each['partition']} from offset {each['start_offset']}")
        for flight in each["in_flight"]:
            echo("    " + "  ".join(_flight_facts(flight)))


def _flight_facts(flight: dict[str, Any]) -> Iterator[str]:
    yield f"{flight['first']} to {flight['last']}"
    yield f"{flight['state']}, delivered {flight['delivery_count']} times"
    if flight["member_id"] is not None:
        yield f"by {flight['member_id']} until {flight['lock_ends_ms']}"


def _member_facts(member: dict[str, Any], *, leads: bool) -> Iterator[str]:
    yield member["member_id"]
    if member["instance_id"] is not None:
        yield f"instance {member['instance_id']}"
    if leads:
        yield "leader"
    for name in ("joining", "syncing"):
        if member[name]:
            yield name
    if member["state"] is not None:
        yield f"epoch {member['epoch']}, {member['state']}"
    if member["assignment"]:
        yield " ".join(member["assignment"])
    if member["revoking"]:
        yield f"revoking {' '.join(member['revoking'])}"
    if member["target"] is not None and sorted(member["target"]) != sorted(member["assignment"]):
        yield f"target {' '.join(member['target']) or 'nothing'}"


@shows("tokens", "/tokens")
def tokens(answer: Any) -> None:
    """List the delegation tokens, without their HMACs."""
    for each in answer:
        facts = [
            each["owner"],
            *([] if each["requester"] == each["owner"] else [f"for {each['requester']}"]),
            *([f"renewers {' '.join(each['renewers'])}"] if each["renewers"] else []),
            f"{'expired' if each['expired'] else 'expires'} at {each['expires_ms']} ms",
            f"at most until {each['max_ms']} ms",
        ]
        echo(f"{each['token_id']}  {', '.join(facts)}")


@shows("transactions", "/transactions")
def transactions(answer: Any) -> None:
    """List the transactional ids with their transactions."""
    for each in answer.values():
        echo(_describe_transaction(each))


def _describe_transaction(each: dict[str, Any]) -> str:
    facts = [
        each["state"],
        f"producer {each['producer_id']} epoch {each['epoch']}",
        *each["partitions"],
        *(["markers held"] if each["held"] else []),
    ]
    return f"{each['transactional_id']}  {', '.join(facts)}"


@click.command("transaction")
@click.argument("transactional_id", metavar="TRANSACTIONAL-ID")
@click.option("--wait", "state", metavar="STATE", help="Wait until it has this state.")
@click.option("--timeout", type=DURATION, default="10s", show_default=True,
              help="How long to wait.")  # fmt: skip
@json_option
@click.pass_obj
def transaction(
    client: ControlClient, transactional_id: str, state: str | None, timeout: int, as_json: bool
) -> None:
    """Show a transaction, perhaps after waiting for it."""
    where = f"/transactions/{quote(transactional_id, safe='')}"
    if state is None:
        answer = client.get(where)
    else:
        answer = client.get(f"{where}/wait", state=state, timeout=timeout)
    echo(json_text(answer) if as_json else _describe_transaction(answer))


@click.command("offsets")
@click.argument("group_id", metavar="GROUP")
@click.option("--wait", "requested", type=(str, click.IntRange(0)),
              metavar="TOPIC-PARTITION OFFSET",
              help="Wait until the group has committed this offset, or a later one.")  # fmt: skip
@click.option("--timeout", type=DURATION, default="10s", show_default=True,
              help="How long to wait.")  # fmt: skip
@json_option
@click.pass_obj
def offsets(
    client: ControlClient,
    group_id: str,
    requested: tuple[str, int] | None,
    timeout: int,
    as_json: bool,
) -> None:
    """Show the committed offsets of a group, and how far it lags."""
    where = f"/offsets/{quote(group_id, safe='')}"
    if requested is None:
        answer = client.get(where)
    else:
        partition, offset = requested
        answer = client.get(f"{where}/wait", partition=partition, offset=offset, timeout=timeout)
    if as_json:
        echo_json(answer)
        return
    for partition, each in answer.items():
        lag = "" if each["lag"] is None else f"  lag {each['lag']}"
        metadata = f"  {each['metadata']}" if each["metadata"] else ""
        echo(f"{partition}  {each['offset']}{lag}{metadata}")


@shows("waiting", "/waiting")
def waiting(answer: Any) -> None:
    """Show the requests that wait, and for what."""
    for each in answer["fetches"]:
        requested = (
            f"{each['bytes']} of {each['min_bytes']} bytes of {' '.join(each['partitions'])}"
        )
        echo(f"fetch at broker {each['broker']}: {requested}")
    if answer["held_produces"]:
        echo(f"produce: {answer['held_produces']} answers held")
    for partition, count in answer["watched_logs"].items():
        echo(f"{partition}: {count} requests wait for its log")
    for what in ("joins", "syncs"):
        for name, members in answer[what].items():
            echo(f"group {name}: {what} of {' '.join(members)}")
    for name, count in answer["commits"].items():
        echo(f"group {name}: {count} commits")
    for each in answer["timers"]:
        echo(f"timer at {each['due_ms']} ms: {each['name']}")
    due = "none" if answer["next_due_ms"] is None else f"at {answer['next_due_ms']} ms"
    echo(f"simulated time {answer['now_ms']} ms, next timer {due}")


@click.command("data-actions")
@click.option("--since", type=click.IntRange(0), default=0, help="Start at this number.")
@json_option
@click.pass_obj
def data_actions(client: ControlClient, since: int, as_json: bool) -> None:
    """Show what happened to logs: appends, compactions and the like.

    The action log has what a tester has to see of them, such as records that are lost; these are
    too many for it, and a bounded ring keeps the newest.
    """
    answer = client.get("/data-actions", since=since)
    if as_json:
        echo_json(answer)
        return
    if answer["dropped"] > since:
        echo(f"{answer['dropped']} earlier ones are dropped", err=True)
    for each in answer["actions"]:
        known = ("number", "kind", "partition", "at_ms")
        facts = "  ".join(f"{name} {value}" for name, value in each.items() if name not in known)
        echo(f"{each['number']:>5}  {each['kind']}  {each['partition']}  {facts}")
