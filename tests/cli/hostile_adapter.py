"""An adapter whose greeting and answers are hostile; with ``dies`` it ends, and its stderr too."""

import json
import sys

from tests.cli.hostile import JSON, WIRE


def main() -> None:
    """Answer each call with an error."""
    capabilities = ["describe_cluster"]
    greeting = {"client": WIRE, "version": WIRE, "language": WIRE, "capabilities": capabilities,
                "options": {WIRE: WIRE}}  # fmt: skip
    print(json.dumps(greeting), flush=True)
    for line in sys.stdin:
        op = json.loads(line)["op"]
        if op in ("connect", "close"):
            print(json.dumps({"ok": True, "result": None}), flush=True)
        elif "dies" in sys.argv:
            sys.stderr.buffer.write(WIRE.encode() + b"\xff\x9b")
            sys.exit(3)
        else:
            answer = {"ok": False, "error": JSON, "code": None, "message": JSON, "raw": JSON}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
