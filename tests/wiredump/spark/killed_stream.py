"""Follow captures, a file a batch, until all are taken; to be killed before that: ``python -m
tests.wiredump.spark.killed_stream FOLDER ROOT TABLE...``. Without Java, for speed."""

from __future__ import annotations

import sys

import pytest

from tests.wiredump.spark.fake_session import faked
from tests.wiredump.spark.rotating import follow, to_the_end
from wiredump.storage import Location


def main(where: str, root: str, *tables: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        to_the_end(faked(patch), follow(where, Location(root), tables, max_files=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
