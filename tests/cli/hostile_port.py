"""A control port that sends hostile text wherever a string of its answers is free.

``mockbroker ctl`` connects to any URL, so it must not depend on what a mock cluster would permit.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.cli.hostile import JSON

__all__ = ["ACTIONS", "hostile_port"]

_PARTITION: dict[str, Any] = {
    "index": 0, "replicas": [1], "isr": [1], "leader": 1, "leader_epoch": 4, "adding": [],
    "removing": [], "target": JSON,
}  # fmt: skip
_HEAD = {"offset": 1, "at_ms": 0, "cause": JSON}
ACTIONS: list[dict[str, Any]] = [
    {**_HEAD, "kind": "PartitionChanged", "topic": JSON, "before": _PARTITION, "after": _PARTITION},
    {**_HEAD, "kind": "TopicCreated", "name": JSON, "partitions": [JSON]},
    {**_HEAD, "kind": "ConfigChanged", "resource_type": 2, "resource_name": JSON, "name": JSON,
     "before": JSON, "after": JSON},
    {**_HEAD, "kind": "AclAdded", "principal": JSON, "host": JSON},
    {**_HEAD, "kind": "BrokerChanged", "before": {"rack": "a"},
     "after": {"broker_id": 1, "rack": JSON}},
    {**_HEAD, "kind": "ZnodeWritten", "path": f"/{JSON}", "after": JSON},
    {**_HEAD, "kind": "Warned", "text": JSON},
    {**_HEAD, "kind": "LogStartMoved", "topic": JSON, "index": 0, "after": 3},
    {**_HEAD, "kind": "RecordsLost", "topic": JSON, "index": 0, "first_offset": 0,
     "last_offset": 1, "acknowledged": 1},
    {**_HEAD, "kind": JSON, JSON: JSON},
]  # fmt: skip
_ENTRY = {
    "sequence": 1, "broker_id": 1, "direction": "request", "api_key": 3, "api_version": 1,
    "api": JSON, "event": JSON, "note": JSON, "client_id": JSON, "body": {"name": JSON},
}  # fmt: skip
_RECORD = {
    "topic": JSON, "partition": 0, "offset": 1, "timestamp": 2, "key": JSON,
    "headers": [[JSON, JSON], [JSON, None]], "value": JSON,
}  # fmt: skip
_GROUP = {
    "group_id": JSON, "type": "consumer", "state": JSON, "generation": 1, "target_epoch": 1,
    "protocol": JSON, "pinned": True, "held": True, "leader": JSON,
    "members": [{
        "member_id": JSON, "instance_id": JSON, "joining": True, "syncing": True, "epoch": 1,
        "state": JSON, "assignment": [JSON], "revoking": [JSON], "target": [JSON + "2"],
    }],
    "share_partitions": [{"partition": JSON, "start_offset": 1, "in_flight": [{
        "first": 1, "last": 2, "state": JSON, "delivery_count": 1, "member_id": JSON,
        "lock_ends_ms": 1,
    }]}],
}  # fmt: skip
_CLASSIC = {**_GROUP, "type": "classic"}
_TRANSACTION = {
    "transactional_id": JSON, "state": JSON, "producer_id": 1, "epoch": 1, "partitions": [JSON],
    "held": True,
}  # fmt: skip
_CLUSTER = {
    "id": JSON,
    "profile": JSON,
    "brokers": {"1": JSON},
    "bootstrap": JSON,
    "labels": {JSON: JSON},
}
_LOG = {
    "partition": JSON, "start_offset": 0, "end_offset": 1, "high_watermark": 1, "batches": 1,
    "bytes": 10, "highest_remote_offset": 1, "local_start_offset": 0,
    "leader": 1, "leader_epoch": 1,
    "replicas": {"1": {"end_offset": 1, "in_sync": True, "held": True, "log_dir": JSON}},
    "epochs": [{"epoch": JSON, "start_offset": 0}],
}  # fmt: skip
_TELEMETRY = {
    "subscriptions": [{"name": JSON, "metrics": [JSON], "interval_ms": 1, "match": [JSON]}],
    "clients": [{"client_instance_id": JSON, "client_id": JSON, "broker_id": 1,
                 "subscription_id": 1, "terminating": True}],
    "pushes": [{"number": 1, "client_id": JSON, "broker_id": 1, "size": 1, "compression": JSON,
                "terminating": True, "problem": JSON,
                "metrics": [{"name": JSON, "type": JSON,
                             "points": [{"attributes": {JSON: JSON}, "value": JSON}]}]}],
}  # fmt: skip
_WAITING = {
    "fetches": [{"broker": 1, "bytes": 1, "min_bytes": 2, "partitions": [JSON]}],
    "held_produces": 1, "watched_logs": {JSON: 1}, "joins": {JSON: [JSON]}, "syncs": {JSON: [JSON]},
    "commits": {JSON: 1}, "timers": [{"due_ms": 1, "name": JSON}], "next_due_ms": 1, "now_ms": 0,
}  # fmt: skip
_FAULTS = {"faults": [{"name": JSON, "hits": 1, "live": False, "failed": [JSON],
                       "rule": {"name": JSON, JSON: JSON, "client_id": JSON}}]}  # fmt: skip
_SCENARIO = {"name": JSON, "title": JSON, "lines": [JSON, JSON], "facts": 1}

_GET: dict[str, Any] = {
    "/proxy": {"listeners": [{"name": JSON, "address": JSON, "upstream": [JSON], "refused": True,
                              "connections": 1}]},
    "/znode": {"text": JSON, "stat": {JSON: JSON}, "children": [JSON]},
    "/state": {"controller": 1, "controller_epoch": 1,
               "brokers": {JSON: {"live": True}, "2": {"live": False}},
               "topics": {JSON: {"0": _PARTITION}, "foo": {"0": _PARTITION}}},
    "/log": ACTIONS,
    "/logs": _LOG,
    "/records": {"records": [
        _RECORD,
        {"topic": JSON, "partition": 0, "base_offset": 1, "last_offset": 2, "problem": JSON},
    ]},
    "/journal": [_ENTRY, {**_ENTRY, "direction": "event"}],
    "/journal/1": {"entry": _ENTRY, "hex": "00000000", "end": 2, "problem": JSON, "fields": [
        {"leaf": True, "value": JSON, "offset": 0, "length": 2, "path": JSON}]},
    "/telemetry": _TELEMETRY,
    "/groups": {JSON: _GROUP, "classic": _CLASSIC},
    "/group": _GROUP,
    "/tokens": [{"token_id": JSON, "owner": JSON, "requester": JSON + "2", "renewers": [JSON],
                 "expired": True, "expires_ms": 1, "max_ms": 2}],
    "/transactions": {JSON: _TRANSACTION},
    "/transaction": _TRANSACTION,
    "/offsets": {JSON: {"offset": 1, "lag": JSON, "metadata": JSON}},
    "/waiting": _WAITING,
    "/data-actions": {"dropped": 3, "actions": [
        {"number": 1, "kind": JSON, "partition": JSON, "at_ms": 1, JSON: JSON}]},
    "/faults": _FAULTS,
    "/clusters": {"clusters": [_CLUSTER]},
    "/scenarios": {"scenarios": [_SCENARIO]},
}  # fmt: skip
"""Answers to GET by path; ``/group`` and so on are those of one item."""
_POST: dict[str, Any] = {
    "/faults": _FAULTS,
    "/clusters": _CLUSTER,
    "/scenarios": {**_SCENARIO, "ok": True},
}
_STREAMS: dict[str, list[tuple[str, Any]]] = {
    "/log/stream": [("action", each) for each in ACTIONS],
    "/journal/stream": [("entry", _ENTRY), ("gap", {"after": 1, "next": 5})],
}
_ITEMS = {"logs": "/logs", "groups": "/group", "transactions": "/transaction",
          "offsets": "/offsets", "faults": "/faults", "clusters": "/clusters",
          "scenarios": "/scenarios", "journal": "/journal/1"}  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Write no log."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path in _STREAMS:
            self._stream(_STREAMS[path])
        elif path.endswith("/records"):
            self._answer(_GET["/records"])
        else:
            self._answer(_GET.get(path) or _GET.get(_ITEMS.get(path.split("/")[1], "")))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        path = urlsplit(self.path).path
        item = "/" + path.split("/")[1]
        self._answer(_POST.get(item, {"actions": ACTIONS}))

    def do_DELETE(self) -> None:
        item = "/" + urlsplit(self.path).path.split("/")[1]
        self._answer(_POST.get(item, {}))

    def _answer(self, answer: Any) -> None:
        if "denied" in self.path:
            self._send(404, {"error": JSON})
        else:
            self._send(200, answer)

    def _send(self, status: int, answer: Any) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Journal-Dropped", "3")
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: list[tuple[str, Any]]) -> None:
        self.send_response(200)
        self.end_headers()
        for name, data in events:
            self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())


@contextmanager
def hostile_port() -> Iterator[str]:
    """Yield the URL of a port; a path with ``denied`` gets an error."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
