"""``python fuzz/planted/client.py [--bug N]``: a sample client with one optional bug.

It has one call, ``list_reassignments``, on blocking sockets, and speaks the protocol of
docs/reference/adapters.md. It imports only the standard library and the decoder beside it.
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import sys
from pathlib import Path
from typing import Any, Final

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fuzz.planted.sample_decoder import BadAnswer, answer

__all__ = ["BUGS"]

BUGS: Final = {
    1: "allocates an array by its count before looking at the data",
    2: "waits for a frame with a positive size, and reads the same size for ever",
    3: "reads tagged fields recursively without checking for the end of the data",
    4: "ignores the correlation id",
    5: "iterates over a null array",
    6: "treats a truncated answer as an empty one",
    7: "reads a length above 2147483647 as negative, and so as null",
    8: "treats an unknown error code as success",
    9: "waits for ever for the rest of a frame",
    10: "keeps a megabyte for every answer",
}
_OF_THE_DECODER: Final = {1: 1, 3: 2, 5: 5, 7: 6}
"""The decoder's bugs that are bugs of the client too."""

LARGEST: Final = 1 << 20
HIGHEST_CODE: Final = 133


class Client:
    """One connection."""

    def __init__(self, call: dict[str, Any], bug: int) -> None:
        host, _, port = call["bootstrap"].split(",")[0].rpartition(":")
        seconds = call["timeout_ms"] / 1000
        self.bug = bug
        self.kept: list[bytes] = []
        self.last = 0
        self.socket = socket.create_connection((host, int(port)), timeout=seconds)
        if bug == 9:
            self.socket.settimeout(None)

    def list_reassignments(self) -> dict[str, Any]:
        """Make the call. Raises BadAnswer, OSError, or RuntimeError for an error code."""
        self.last += 1
        request = struct.pack(">hhih", 46, 0, self.last, -1) + b"\0" + struct.pack(">i", 500)
        request += b"\0\0"  # all topics, no tagged fields
        self.socket.sendall(struct.pack(">i", len(request)) + request)
        frame = self.frame()
        if self.bug == 10:
            KEPT.append(bytearray(1 << 20))
        if len(frame) < 4:
            raise BadAnswer("no correlation id")
        (correlation_id,) = struct.unpack_from(">i", frame)
        if correlation_id != self.last and self.bug != 4:
            raise BadAnswer(f"correlation id {correlation_id}")
        try:
            body = answer(frame[4:], _OF_THE_DECODER.get(self.bug, 0))
        except BadAnswer:
            if self.bug == 6:
                return {}
            raise
        self.check(body["errorCode"])
        return _by_partition(body)

    def frame(self) -> bytes:
        size = struct.unpack(">i", self.exactly(4))[0]
        while size == 0 and self.bug == 2:
            continue
        if not 0 <= size <= LARGEST:
            if self.bug == 9 and size > 0:
                return self.exactly(size)
            raise BadAnswer(f"a frame of {size} bytes")
        return self.exactly(size)

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(min(65536, size - len(data)))
            if not more:
                raise BadAnswer("the end of the connection")
            data += more
        return data

    def check(self, code: int) -> None:
        known = -1 <= code <= HIGHEST_CODE
        if code and (known or self.bug != 8):
            raise RuntimeError(f"error {code}")


KEPT: Final[list[bytearray]] = []


def _by_partition(body: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{topic['name']}-{row['partitionIndex']}": {
            "replicas": row["replicas"],
            "adding": row["addingReplicas"],
            "removing": row["removingReplicas"],
        }
        for topic in body["topics"]
        for row in topic["partitions"]
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bug", type=int, default=0)
    bug = parser.parse_args().bug
    client: Client | None = None
    _say({"client": "planted", "version": str(bug), "capabilities": ["list_reassignments"]})
    for line in sys.stdin:
        call = json.loads(line)
        try:
            if call["op"] == "connect":
                client = Client(call, bug)
                _say({"ok": True, "result": None})
            elif call["op"] == "close":
                if client is not None:
                    client.socket.close()
                client = None
                _say({"ok": True, "result": None})
            elif call["op"] == "list_reassignments" and client is not None:
                _say({"ok": True, "result": client.list_reassignments()})
            else:
                _say({"unsupported": f"no call for {call['op']}"})
        except BadAnswer as error:
            _say({"ok": False, "error": "BadAnswer", "code": None, "message": f"decode: {error}"})
        except (OSError, RuntimeError) as error:
            _say({"ok": False, "error": type(error).__name__, "code": None, "message": str(error)})


def _say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
