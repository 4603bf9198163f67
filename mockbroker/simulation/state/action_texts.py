"""Entries of the action log as text, for `ctl log` and scenarios. An entry is its JSON object.

This module needs no other of the package: `ctl` reads entries of another process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

__all__ = ["action_text", "is_about"]

Entry: TypeAlias = Mapping[str, Any]

_HEAD: Final = frozenset({"offset", "at_ms", "cause", "kind"})
_TOPIC: Final = 2
"""The resource type of a topic."""


def action_text(entry: Entry) -> str:
    """Return what changed: ``foo-0  R 1,2,3  I 1,2  leader 1 epoch 4``."""
    write = _TEXTS.get(entry["kind"])
    if write is not None:
        return write(entry)
    members = {name: value for name, value in entry.items() if name not in _HEAD}
    before, after = members.get("before"), members.get("after")
    if isinstance(before, dict) and isinstance(after, dict):
        del members["before"], members["after"]
        if "broker_id" in after:
            members["broker_id"] = after["broker_id"]
        members |= {
            name: f"{_short(before.get(name))} -> {_short(value)}"
            for name, value in after.items()
            if before.get(name) != value
        }
    texts = (
        f"{name} {value if isinstance(value, str) else _short(value)}"
        for name, value in members.items()
    )
    return "  ".join([entry["kind"], *texts])


def is_about(entry: Entry, topic: str, index: int | None = None) -> bool:
    """Whether the entry is about a topic, or about one of its partitions."""
    kind = entry["kind"]
    if kind == "ZnodeWritten":
        return _is_znode_of(entry["path"].split("/"), topic, index)
    if kind == "ElectionEnqueued":
        chosen: Iterable[Any] = entry["topics"] or ()
        return any(name == topic and index in (None, *indexes) for name, indexes in chosen)
    if kind == "ConfigChanged":
        named = entry["resource_name"] if entry["resource_type"] == _TOPIC else None
    else:
        named = entry.get("topic", entry.get("name"))
        named = named["name"] if isinstance(named, dict) else named
    if named != topic:
        return False
    after = entry.get("after")
    of = after.get("index") if isinstance(after, dict) else entry.get("index")
    return index is None or index == of


def _is_znode_of(path: Sequence[str], topic: str, index: int | None) -> bool:
    # /brokers/topics/T/partitions/P/state, /admin/reassignments/T/P, /config/topics/T
    if topic not in path[3:4]:
        return False
    return index is None or str(index) in (*path[5:6], *path[4:5])


def _partition_changed(entry: Entry) -> str:
    before, after = entry["before"], entry["after"]
    parts = [
        f"R {_ids(after['replicas'])}",
        f"I {_ids(after['isr'])}",
        f"leader {after['leader']} epoch {after['leader_epoch']}",
    ]
    target = _target(after)
    if target is not None:
        parts.insert(2, f"T {_ids(target) or '(empty)'}")
    elif _target(before) is not None:
        parts.append("no longer reassigning")
    return f"{entry['topic']}-{after['index']}  {'  '.join(parts)}"


def _target(partition: Entry) -> list[int] | None:
    """The replicas once the reassignment completes, as ``Partition.target``."""
    for name in ("target_replicas", "new_replicas", "planned"):  # of drafts and before Kafka 2.4
        if name in partition:
            return list(partition[name])
    adding, removing = partition["adding"], partition["removing"]
    if not (adding or removing):
        return None
    return [replica for replica in partition["replicas"] if replica not in removing]


def _leader_and_isr(entry: Entry) -> str:
    versions = dict(zip(entry["to"], entry["versions"], strict=False))
    groups: dict[int | None, list[int]] = {}
    for broker in entry["to"]:
        groups.setdefault(versions.get(broker), []).append(broker)
    parts = []
    for version, brokers in groups.items():
        name = "LeaderAndIsr" if version is None else f"LeaderAndIsr v{version}"
        parts.append(f"{_ids(brokers)}  {name}")
    fields = [f"R {_ids(entry['replicas'])}", f"I {_ids(entry['isr'])}"]
    if entry["target_replicas"] is not None:
        fields.append(f"TargetReplicas {_ids(entry['target_replicas'])} (v3 and later)")
    if entry["adding"] or entry["removing"]:
        fields.append(f"adding {_ids(entry['adding'])} removing {_ids(entry['removing'])}")
    return f"controller -> {'; '.join(parts)}  {'  '.join(fields)}"


def _stop_replica(entry: Entry) -> str:
    data = "deleted" if entry["delete"] else "kept"
    return f"controller -> {_ids(entry['to'])}  StopReplica, data {data}"


def _update_metadata(entry: Entry) -> str:
    return f"controller -> {_ids(entry['to'])}  UpdateMetadata"


def _znode(entry: Entry) -> str:
    text = entry["after"]
    return f"znode {entry['path']}  {'deleted' if text is None else text or '(empty)'}"


def _controller(entry: Entry) -> str:
    return f"broker {entry['after']} is the controller, epoch {entry['epoch']}"


def _warned(entry: Entry) -> str:
    return f"controller warns: {entry['text']}"


def _log_start(entry: Entry) -> str:
    return f"{entry['topic']}-{entry['index']}  log starts at {entry['after']}"


def _remote_storage(entry: Entry) -> str:
    highest, local = entry["highest_remote_offset"], entry["local_start_offset"]
    held = "no records" if highest < 0 else f"records up to {highest}"
    return f"{entry['topic']}-{entry['index']}  remote storage has {held}, brokers from {local} on"


def _records_lost(entry: Entry) -> str:
    first, last = entry["first_offset"], entry["last_offset"]
    lost = f"{entry['topic']}-{entry['index']}  records {first} to {last} are lost"
    return f"{lost}, {entry['acknowledged']} of them acknowledged"


def _events_dropped(entry: Entry) -> str:
    return f"events of logs are dropped; the newest {entry['kept']} are kept"


_TEXTS: Final[Mapping[str, Callable[[Entry], str]]] = {
    "PartitionChanged": _partition_changed,
    "LeaderAndIsrSent": _leader_and_isr,
    "StopReplicaSent": _stop_replica,
    "UpdateMetadataSent": _update_metadata,
    "ZnodeWritten": _znode,
    "ControllerChanged": _controller,
    "Warned": _warned,
    "LogStartMoved": _log_start,
    "RemoteStorageChanged": _remote_storage,
    "RecordsLost": _records_lost,
    "DataActionsDropped": _events_dropped,
}


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _short(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
