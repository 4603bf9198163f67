"""Short programs in a client's own language that make the calls of a case.

A program prints a line for each call, with the case's name for it and what came of it. Its options
are those of the client's adapter. Each template writes out the calls that released clients fail; a
call without a line here raises KspecError, and the report then names the command of kspec.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import Any, Final, TypeAlias

import msgspec

from kspec.errors import KspecError
from kspec.model import Case
from kspec.produced_records import produced_records

__all__ = ["LANGUAGES", "Action", "Command", "Language", "Made", "Pause", "program_of"]


@dataclass(frozen=True, slots=True)
class Made:
    """A call of the client."""

    name: str
    call: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Command:
    """A command line for the mock cluster."""

    line: str


@dataclass(frozen=True, slots=True)
class Pause:
    milliseconds: int


Action: TypeAlias = Made | Command | Pause


@dataclass(frozen=True, slots=True)
class Language:
    """``run`` is the command that runs the program, after what it needs is installed."""

    name: str
    file: str
    run: str


LANGUAGES: Final[Mapping[str, Language]] = {
    "kafka-python": Language(
        "python", "repeat.py", 'pip install "kafka-python=={release}"\npython repeat.py'
    ),
    "confluent-kafka": Language(
        "python", "repeat.py", 'pip install "confluent-kafka=={release}"\npython repeat.py'
    ),
    "franz-go": Language(
        "go",
        "main.go",
        "go mod init repeat\n"
        "go get github.com/twmb/franz-go@{release} github.com/twmb/franz-go/pkg/kadm\n"
        "go run .",
    ),
}
"""The clients that have a template, by their names."""


def program_of(client: str, case: Case, actions: Sequence[Action], bootstrap: str) -> str:
    """Return the program. Raises KspecError if the template lacks one of the calls."""
    if "tokens" in (case.client.sasl or {}):
        raise KspecError("the template gives no tokens")
    return _TEMPLATES[client](case, actions, bootstrap)


def _given(options: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(options)
    return {name: value for name, value in found.items() if value is not None}


def _split(partition: str) -> tuple[str, int]:
    topic, _, index = partition.rpartition("-")
    return topic, int(index)


def _lacks(call: str) -> KspecError:
    return KspecError(f"the template has no call of {call}")


def _renamed(options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    unknown = set(options) - set(names)
    if unknown:
        raise KspecError(f"the template lacks {', '.join(sorted(unknown))}")
    return {names[name]: value for name, value in options.items()}


# ---- Python --------------------------------------------------------------------------------------

_PYTHON: Final = """\
import os
import time
from functools import cache

{imports}

OPTIONS = {options}


def attempt(name, call):
    started = time.monotonic()
    try:
        result = call()
    except Exception as error:
        result = repr(error)
    print(f"{{name}}, {{time.monotonic() - started:.1f}} s: {{result}}", flush=True)


{clients}


{calls}
"""


def _python(
    imports: str, options: Mapping[str, Any], clients: Sequence[str], calls: Sequence[str]
) -> str:
    text = _PYTHON.format(
        imports=imports,
        options=_literal(options),
        clients="\n\n\n".join(clients),
        calls="\n".join(calls),
    )
    return text if "os." in text else text.replace("import os\n", "")


def _literal(value: Mapping[str, Any]) -> str:
    inner = "".join(f"    {_value(key)}: {_value(each)},\n" for key, each in value.items())
    return f"{{\n{inner}}}"


def _value(value: Any) -> str:
    """Return a literal as Python formatters write it."""
    return repr(value).replace("'", '"')


def _python_calls(actions: Sequence[Action], call: Callable[[Made], str]) -> Iterator[str]:
    for each in actions:
        if isinstance(each, Made):
            yield f"attempt({each.name!r}, lambda: {call(each)})".replace("'", '"')
        elif isinstance(each, Command):
            quote = "'" if '"' in each.line else '"'
            line = each.line.replace("\\", "\\\\").replace(quote, f"\\{quote}")
            yield f"os.system({quote}{line}{quote})"
        else:
            yield f"time.sleep({each.milliseconds / 1000})"


_KAFKA_PYTHON_PRODUCER: Final = {
    "acks": "acks",
    "idempotence": "enable_idempotence",
    "compression": "compression_type",
    "linger_ms": "linger_ms",
    "batch_bytes": "batch_size",
    "max_in_flight": "max_in_flight_requests_per_connection",
    "delivery_timeout_ms": "delivery_timeout_ms",
}


def _kafka_python(case: Case, actions: Sequence[Action], bootstrap: str) -> str:
    timeout = case.client.timeout_ms
    options: dict[str, Any] = {
        "bootstrap_servers": bootstrap.split(","),
        "request_timeout_ms": timeout,
        "bootstrap_timeout_ms": timeout,
    }
    sasl = case.client.sasl
    if sasl is not None:
        options |= {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": sasl["mechanism"],
            "sasl_plain_username": sasl["username"],
            "sasl_plain_password": sasl["password"],
        }
    made = {each.call for each in actions if isinstance(each, Made)}
    names, clients = [], []
    if made - {"produce"}:
        names.append("from kafka.admin import KafkaAdminClient")
        clients.append("@cache\ndef admin():\n    return KafkaAdminClient(**OPTIONS)")
    if "alter_reassignments" in made:
        names.append("from kafka import TopicPartition")
    if "produce" in made:
        producer = _renamed(_given(case.client.producer), _KAFKA_PYTHON_PRODUCER)
        if producer.get("compression_type") == "none":
            producer["compression_type"] = None
        producer["max_block_ms"] = timeout
        names.append("from kafka import KafkaProducer")
        clients.append(
            "@cache\ndef producer():\n    return KafkaProducer(\n        **OPTIONS,\n"
            + "".join(f"        {key}={_value(value)},\n" for key, value in producer.items())
            + "    )"
        )
        clients.append(
            "def produce(records):\n"
            "    futures = [producer().send(**record) for record in records]\n"
            f"    return [future.get({_outcome_ms(case) / 1000:g}) for future in futures]"
        )
    return _python(
        "\n".join(sorted(names)), options, clients,
        list(_python_calls(actions, lambda made: _kafka_python_call(made, timeout))),
    )  # fmt: skip


def _outcome_ms(case: Case) -> int:
    """How long to wait for a record's outcome: longer than the client may take."""
    return case.client.producer.delivery_timeout_ms + case.client.timeout_ms + 4_000


def _by_topic(partitions: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for each in partitions:
        topic, index = _split(each)
        found.setdefault(topic, []).append(index)
    return found


def _kafka_python_call(made: Made, timeout: int) -> str:
    given = made.arguments
    if made.call in ("list_topics", "describe_cluster"):
        return f"admin().{made.call}()"
    if made.call == "describe_topics":
        return f"admin().describe_topics({given['topics']!r})"
    if made.call == "list_reassignments":
        named = given.get("partitions")
        wanted = None if named is None else _by_topic(named)
        return f"admin().list_partition_reassignments({wanted!r}, timeout_ms={timeout})"
    if made.call == "alter_reassignments" and set(given) == {"assignments"}:
        rows = ", ".join(
            "TopicPartition({!r}, {}): {!r}".format(*_split(key), value)
            for key, value in given["assignments"].items()
        )
        return f"admin().alter_partition_reassignments({{{rows}}}, timeout_ms={timeout})"
    if made.call == "elect_leaders":
        named = given.get("partitions")
        wanted = None if named is None else _by_topic(named)
        kind = int(given.get("type") == "unclean")
        return f"admin().elect_leaders({kind}, {wanted!r}, timeout_ms={timeout})"
    if made.call == "produce":
        return f"produce({_records(given, _kafka_python_record)})"
    raise _lacks(made.call)


def _records(given: Mapping[str, Any], shown: Callable[[Mapping[str, Any]], str]) -> str:
    return f"[{', '.join(shown(each) for each in produced_records(given))}]"


def _python_bytes(text: str | None) -> str:
    if text is None:
        return "None"
    short = text.rstrip(" ")
    return f'b"{short}".ljust({len(text)})' if len(text) - len(short) > 8 else f'b"{text}"'


def _kafka_python_record(record: Mapping[str, Any]) -> str:
    members = [f'topic="{record["topic"]}"', f"value={_python_bytes(record.get('value'))}"]
    if record.get("partition") is not None:
        members.append(f"partition={record['partition']}")
    if record.get("key") is not None:
        members.append(f"key={_python_bytes(record['key'])}")
    return f"dict({', '.join(members)})"


def _confluent(case: Case, actions: Sequence[Action], bootstrap: str) -> str:
    timeout = case.client.timeout_ms
    options: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "socket.timeout.ms": timeout,
        "socket.connection.setup.timeout.ms": timeout,
    }
    sasl = case.client.sasl
    if sasl is not None:
        options |= {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": sasl["mechanism"],
            "sasl.username": sasl["username"],
            "sasl.password": sasl["password"],
        }
    made = {each.call for each in actions if isinstance(each, Made)}
    names, clients = [], []
    if made & {"assign", "poll"}:
        consumer = {"group.id": "repeat", "enable.auto.commit": False, **_confluent_consumer(case)}
        names.append("from confluent_kafka import Consumer, TopicPartition")
        clients.append(
            "@cache\ndef consumer():\n    return Consumer({\n        **OPTIONS,\n"
            + "".join(f'        "{key}": {_value(value)},\n' for key, value in consumer.items())
            + "    })"
        )
        clients.append(
            "def poll(count, seconds):\n"
            "    found, until = [], time.monotonic() + seconds\n"
            "    while len(found) < count and time.monotonic() < until:\n"
            "        message = consumer().poll(0.1)\n"
            "        if message is not None:\n"
            "            found.append(message.error() or message.value())\n"
            "    return found"
        )
    if made - {"assign", "poll"}:
        new = ", NewTopic" if "create_topics" in made else ""
        names.append(f"from confluent_kafka.admin import AdminClient{new}")
        clients.append("@cache\ndef admin():\n    return AdminClient(OPTIONS)")
    if "elect_leaders" in made:
        names.append("from confluent_kafka import ElectionType, TopicPartition")
    return _python(
        "\n".join(sorted(names)), options, clients,
        list(_python_calls(actions, lambda made: _confluent_call(made, timeout / 1000))),
    )  # fmt: skip


def _confluent_consumer(case: Case) -> dict[str, Any]:
    names = {
        "group": "group.id",
        "offset_reset": "auto.offset.reset",
        "isolation": "isolation.level",
        "max_wait_ms": "fetch.wait.max.ms",
        "partition_max_bytes": "max.partition.fetch.bytes",
    }
    return _renamed(_given(case.client.consumer), names)


def _confluent_call(made: Made, seconds: float) -> str:
    given = made.arguments
    if made.call == "list_topics":
        return f"list(admin().list_topics(timeout={seconds:g}).topics)"
    if made.call == "create_topics" and "validate_only" not in made.arguments:
        topics = ", ".join(
            f"NewTopic({name!r}, {each.get('partitions', 1)}, {each.get('replication_factor', 1)})"
            for name, each in given["topics"].items()
        )
        futures = f"admin().create_topics([{topics}], request_timeout={seconds:g})"
        return f"[future.result() for future in {futures}.values()]"
    if made.call == "elect_leaders":
        named = given.get("partitions")
        rows = ", ".join("TopicPartition({!r}, {})".format(*_split(each)) for each in named or ())
        wanted = "None" if named is None else f"[{rows}]"
        kind = f"ElectionType.{str(given['type']).upper()}"
        return f"admin().elect_leaders({kind}, {wanted}).result()"
    if made.call == "assign":
        offsets = ", ".join(
            "TopicPartition({!r}, {}, {})".format(*_split(key), value)
            for key, value in given["offsets"].items()
        )
        return f"consumer().assign([{offsets}])"
    if made.call == "poll":
        return f"poll({given['records']}, {given['ms'] / 1000:g})"
    raise _lacks(made.call)


# ---- Go ------------------------------------------------------------------------------------------

_GO: Final = """\
package main

import (
{imports}
)

func attempt[T any](name string, call func(context.Context) (T, error)) {{
	ctx, cancel := context.WithTimeout(context.Background(), {limit})
	defer cancel()
	started := time.Now()
	result, err := call(ctx)
	fmt.Printf("%s, %.1f s: %+v, error %v\\n", name, time.Since(started).Seconds(), result, err)
}}

func main() {{
	client, err := kgo.NewClient(
{options}
	)
	if err != nil {{
		panic(err)
	}}
{body}
}}
"""
_GO_PACKAGES: Final = {
    "kadm.": "github.com/twmb/franz-go/pkg/kadm",
    "kgo.": "github.com/twmb/franz-go/pkg/kgo",
    "scram.": "github.com/twmb/franz-go/pkg/sasl/scram",
}
_GO_STANDARD: Final = {"context.": "context", "fmt.": "fmt", "exec.": "os/exec", "time.": "time"}


def _franz_go(case: Case, actions: Sequence[Action], bootstrap: str) -> str:
    timeout = f"{case.client.timeout_ms}*time.Millisecond"
    made = {each.call for each in actions if isinstance(each, Made)}
    options = [f"kgo.SeedBrokers({', '.join(json.dumps(each) for each in bootstrap.split(','))})"]
    limits = ("DialTimeout", "RequestTimeoutOverhead", "RetryTimeout")
    options += [f"kgo.{name}({timeout})" for name in limits]
    if "produce" in made:
        options += list(_franz_go_producer(case))
    if case.client.sasl is not None:
        raise KspecError("the template has no SASL")
    body = list(_franz_go_lines(case, actions))
    if made - {"produce"}:
        body.insert(0, f"admin.SetTimeoutMillis({case.client.timeout_ms})")
        body.insert(0, "admin := kadm.NewClient(client)")
    limit = f"{_outcome_ms(case)}*time.Millisecond" if "produce" in made else timeout
    text = _GO.format(
        imports="{imports}",
        limit=limit,
        options="\n".join(f"\t\t{each}," for each in options),
        body=indent("\n".join(body), "\t"),
    )
    standard = [f'\t"{path}"' for word, path in _GO_STANDARD.items() if word in text]
    others = [f'\t"{path}"' for word, path in _GO_PACKAGES.items() if word in text]
    return text.replace("{imports}", "\n".join([*standard, "", *others]))


def _franz_go_producer(case: Case) -> Iterator[str]:
    given = _given(case.client.producer)
    acks = {"all": "kgo.AllISRAcks()", 1: "kgo.LeaderAck()", 0: "kgo.NoAck()"}
    for name, value in given.items():
        if name == "acks":
            yield f"kgo.RequiredAcks({acks[value]})"
        elif name == "idempotence":
            yield from () if value else ("kgo.DisableIdempotentWrite()",)
        elif name == "delivery_timeout_ms":
            yield f"kgo.RecordDeliveryTimeout({value}*time.Millisecond)"
        elif name == "linger_ms":
            yield f"kgo.ProducerLinger({value}*time.Millisecond)"
        elif name == "max_in_flight":
            yield f"kgo.MaxProduceRequestsInflightPerBroker({value})"
        else:
            raise KspecError(f"the template lacks {name}")
    yield "kgo.RecordPartitioner(kgo.ManualPartitioner())"


def _franz_go_lines(case: Case, actions: Sequence[Action]) -> Iterator[str]:
    for each in actions:
        if isinstance(each, Made):
            yield from _franz_go_call(each)
        elif isinstance(each, Command):
            yield f'exec.Command("sh", "-c", {json.dumps(each.line)}).Run()'
        else:
            yield f"time.Sleep({each.milliseconds} * time.Millisecond)"


def _franz_go_call(made: Made) -> Iterator[str]:
    given, name = made.arguments, json.dumps(made.name)
    if made.call == "list_topics":
        yield _attempt(name, "kadm.TopicDetails", "admin.ListTopics(ctx)")
    elif made.call == "describe_cluster":
        yield _attempt(name, "kadm.Metadata", "admin.BrokerMetadata(ctx)")
    elif made.call == "list_reassignments" and given.get("partitions") is not None:
        lines = f"{_go_set(given)}return admin.ListPartitionReassignments(ctx, set)"
        yield _attempt(name, "kadm.ListPartitionReassignmentsResponses", lines)
    elif made.call == "alter_reassignments":
        guard = given.get("allow_replication_factor_change") is False
        rows = "".join(
            'request.Assign("{}", {}, {})\n'.format(*_split(key), _go_replicas(value))
            for key, value in given["assignments"].items()
        )
        ctx = "kadm.ForbidAlterRf(ctx)" if guard else "ctx"
        lines = (
            f"var request kadm.AlterPartitionAssignmentsReq\n{rows}"
            f"return admin.AlterPartitionAssignments({ctx}, request)"
        )
        yield _attempt(name, "kadm.AlterPartitionAssignmentsResponses", lines)
    elif made.call == "elect_leaders":
        kind = "ElectPreferredReplica" if given["type"] == "preferred" else "ElectLiveReplica"
        everywhere = given.get("partitions") is None
        lines = f"return admin.ElectLeaders(ctx, kadm.{kind}, {'nil' if everywhere else 'set'})"
        lines = lines if everywhere else _go_set(given) + lines
        yield _attempt(name, "kadm.ElectLeadersResults", lines)
    elif made.call == "produce":
        yield _attempt(name, "int", _go_produce(given))
    else:
        raise _lacks(made.call)


def _go_set(given: Mapping[str, Any]) -> str:
    rows = "".join('set.Add("{}", {})\n'.format(*_split(each)) for each in given["partitions"])
    return f"set := kadm.TopicsSet{{}}\n{rows}"


def _go_replicas(value: Sequence[int] | None) -> str:
    return "nil" if value is None else f"[]int32{{{', '.join(map(str, value))}}}"


def _go_produce(given: Mapping[str, Any]) -> str:
    rows = "".join(
        f"\t{{Topic: {json.dumps(each['topic'])}, Partition: {each.get('partition') or 0},"
        f" Value: []byte({json.dumps(str(each.get('value')).rstrip(' '))})}},\n"
        for each in produced_records(given)
    )
    return (
        f"records := []*kgo.Record{{\n{rows}}}\n"
        "results := client.ProduceSync(ctx, records...)\nreturn len(results), results.FirstErr()"
    )


def _attempt(name: str, result: str, lines: str) -> str:
    if "return " not in lines:
        lines = f"return {lines}"
    inner = indent(lines, "\t")
    return f"attempt({name}, func(ctx context.Context) ({result}, error) {{\n{inner}\n}})"


_TEMPLATES: Final[Mapping[str, Callable[[Case, Sequence[Action], str], str]]] = {
    "kafka-python": _kafka_python,
    "confluent-kafka": _confluent,
    "franz-go": _franz_go,
}
