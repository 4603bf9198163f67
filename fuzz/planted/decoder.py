"""``python fuzz/planted/decoder.py [--bug N]``: the sample decoder as a program, with one optional
bug.

It speaks the protocol of docs/explanation/fuzz-differential.md. A bug that raises ends it, as it
would end any user of the decoder.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fuzz.planted.sample_decoder import BadAnswer, answer

BEHIND_THE_ID = 8


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bug", type=int, default=0)
    bug = parser.parse_args().bug
    for line in sys.stdin:
        frame = bytes.fromhex(json.loads(line)["frame"])
        try:
            if len(frame) < BEHIND_THE_ID:
                raise BadAnswer("no correlation id")
            said = {"ok": True, "json": answer(frame[BEHIND_THE_ID:], bug)}
        except BadAnswer as error:
            said = {"ok": False, "error": str(error)}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
