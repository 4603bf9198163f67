"""Follow captures, a file a batch, until all are taken; to be killed before that, or to die at a
stage (``killed_driver``): ``python -m tests.wiredump.spark.killed_stream FOLDER ROOT TABLE...``,
behind ``STAGE CALL SECONDS --`` or without it. Without Java, for speed."""

from __future__ import annotations

import sys

import pytest

from tests.wiredump.spark.fake_session import faked
from tests.wiredump.spark.killed_driver import kill_at
from tests.wiredump.spark.rotating import follow, to_the_end
from wiredump.storage import Location


def main(*arguments: str) -> None:
    rest = list(arguments)
    if "--" in rest:
        stage, calls, seconds, _, *rest = rest
        kill_at(stage, int(calls), float(seconds))
    where, root, *names = rest
    with pytest.MonkeyPatch.context() as patch:
        to_the_end(faked(patch), follow(where, Location(root), tuple(names), max_files=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
