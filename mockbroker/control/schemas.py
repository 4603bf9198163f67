"""JSON schemas of what the control port takes and answers, by name; what is a class of ours is
described by that class. No route is known here."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kproto.journal import Entry
from mockbroker.control.routes import TEXT, WHOLE, Schema
from mockbroker.faults import Fault

__all__ = ["COMPONENTS", "array_of", "map_of", "object_of", "ref"]


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def array_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def map_of(values: Schema, **more: Any) -> Schema:
    return {"type": "object", "additionalProperties": values, **more}


def object_of(optional: tuple[str, ...] = (), **members: Schema) -> Schema:
    """An object of exactly these members; those of ``optional`` may be absent."""
    return {
        "type": "object",
        "properties": members,
        "required": [name for name in members if name not in optional],
        "additionalProperties": False,
    }


def _or_null(schema: Schema) -> Schema:
    return {"oneOf": [schema, {"type": "null"}]}


_INTEGER: Final[Schema] = {"type": "integer"}
_IDS: Final = array_of(_INTEGER)
_FLAG: Final[Schema] = {"type": "boolean"}


def _of_classes() -> dict[str, Schema]:
    _, found = msgspec.json.schema_components(
        (Entry, Fault), ref_template="#/components/schemas/{name}"
    )
    return found


def _journal_entry(entry: Schema) -> Schema:
    """As the journal's file has it, with what is read out of its bytes."""
    members = {
        **entry["properties"],
        "api": {**TEXT, "description": "The api's name, as in AlterPartitionReassignments."},
        "raw": {
            **TEXT,
            "description": "The whole frame, size included: base64, unless asked for as hex.",
        },
        "body": {"description": "The body as Kafka's JsonConverter writes it."},
        "error": {**TEXT, "description": "Why there is no body: what no codec reads."},
    }
    return {
        "type": "object",
        "description": "A frame or an event. Members at their defaults are left out.",
        "properties": members,
        "required": list(entry["required"]),
        "additionalProperties": False,
    }


_CLASSES: Final = _of_classes()

COMPONENTS: Final[dict[str, Schema]] = {
    "Error": object_of(error={**TEXT, "description": "One line that says what is wrong."}),
    "Fault": {**_CLASSES["Fault"], "description": "A rule; docs/faults.md explains each member."},
    "ClientSoftware": _CLASSES["ClientSoftware"],
    "JournalEntry": _journal_entry(_CLASSES["Entry"]),
    "FrameField": object_of(
        offset={**WHOLE, "description": "From the first byte of the frame's size."},
        length=WHOLE,
        path={**TEXT, "description": "As in topics[0].partitions[3].replicas."},
        type=TEXT,
        value={},
        leaf={**_FLAG, "description": "Leaves follow one another without a gap."},
    ),
    "Frame": object_of(
        optional=("problem",),
        entry=ref("JournalEntry"),
        hex={**TEXT, "description": "The whole frame, size included; empty where there is none."},
        fields=array_of(ref("FrameField")),
        end={**WHOLE, "description": "Bytes from here on are in no field."},
        problem={**TEXT, "description": "Why."},
    ),
    "Partition": object_of(
        optional=("original",),
        replicas=_IDS,
        isr=_IDS,
        leader={**_INTEGER, "description": "-1: none."},
        leader_epoch=_INTEGER,
        adding=_IDS,
        removing=_IDS,
        target=_or_null(_IDS),
        original={**_or_null(_IDS), "description": "Of the drafts of KIP-236 only."},
    ),
    "State": object_of(
        controller=_INTEGER,
        controller_epoch=_INTEGER,
        brokers=map_of(object_of(live=_FLAG)),
        topics=map_of(map_of(ref("Partition"))),
    ),
    "Action": {
        "type": "object",
        "properties": {
            "offset": WHOLE,
            "at_ms": {**_INTEGER, "description": "The cluster's clock."},
            "cause": {**TEXT, "description": "The call or the step that led to it."},
            "kind": {
                **TEXT,
                "description": "As in PartitionChanged; it says which other members there are.",
            },
        },
        "required": ["offset", "at_ms", "cause", "kind"],
    },
    "Actions": object_of(actions=array_of(ref("Action"))),
    "Rule": object_of(
        name=TEXT,
        hits=WHOLE,
        matched=WHOLE,
        live={**_FLAG, "description": "Whether it may be hit again."},
        rule=ref("Fault"),
    ),
    "Rules": object_of(faults=array_of(ref("Rule"))),
    "Znode": object_of(
        path=TEXT,
        text=TEXT,
        stat=map_of({"type": ["integer", "string", "boolean", "null"]}),
        children=array_of(TEXT),
    ),
    "Cluster": object_of(
        id=TEXT,
        bootstrap={**TEXT, "description": "host:port of every broker, comma-separated."},
        brokers=map_of(TEXT),
        profile=TEXT,
        dialect=TEXT,
        clock={"type": "string", "enum": ["wall", "manual"]},
    ),
    "Clusters": object_of(clusters=array_of(ref("Cluster"))),
    "Scenario": object_of(name=TEXT, title=TEXT, requirements=array_of(TEXT)),
    "Scenarios": object_of(scenarios=array_of(ref("Scenario"))),
    "Telling": object_of(
        optional=("error",),
        name=TEXT,
        title=TEXT,
        ok={**_FLAG, "description": "Whether it came out as it has to."},
        facts={**WHOLE, "description": "How many claims held."},
        lines=array_of(TEXT),
        error=TEXT,
    ),
}
"""``$ref`` -> schema."""
