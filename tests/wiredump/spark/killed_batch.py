"""A batch whose driver kills itself at its ``AT``-th change of a file or folder: ``python
killed_batch.py AT CAPTURE OUT RUN COLUMN,COLUMN``. Prints the number of changes."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import pytest

from tests.wiredump.spark.fake_session import faked
from wiredump.rows.schema import TABLES
from wiredump.spark.connections import Options
from wiredump.spark.job import Job
from wiredump.spark.sinks import Layout
from wiredump.storage import Location

CHANGES = ("publish", "replace_bytes", "write_bytes", "remove", "unlink", "mkdir", "rmdir")
count = 0


def counted(name: str, at: int) -> Any:
    real = getattr(Location, name)

    def change(self: Location, *arguments: Any, **more: Any) -> Any:
        global count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, *arguments, **more)

    return change


def main(at: str, capture: str, out: str, run: str, by: str) -> None:
    patch = pytest.MonkeyPatch()
    session = faked(patch)
    for name in CHANGES:
        patch.setattr(Location, name, counted(name, int(at)))
    tables = tuple(name for name in TABLES if name != "packets")
    options = Options(out=out, paths={0: capture}, tables=tables, run=run)
    keys = tuple(filter(None, by.split(",")))
    layout = Layout(partition_by=keys)
    job = Job(options=options, split_bytes=20_000, partitions=2, mode="append", layout=layout)
    job.run(session)  # type: ignore[arg-type]
    print(count)


if __name__ == "__main__":
    main(*sys.argv[1:])
