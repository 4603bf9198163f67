"""A stream's driver that kills itself by ``kill -9`` at a stage: ``python killed_driver.py STAGE
CALL SECONDS ARGUMENT...`` runs ``wiredump ARGUMENT...`` until the stage's function is called for
the ``CALL``-th time; tasks go on for some seconds. ``killed_stream`` does the same without Java."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from typing import Any, Final, NamedTuple

__all__ = ["BATCH_STAGES", "END_STAGES", "Kill", "kill_at", "some_kills"]


class Stage(NamedTuple):
    """``where`` is a function, before which the driver dies, or behind which."""

    where: str
    behind: bool = False


BATCH_STAGES: Final = {
    "query begins": Stage("streaming:Stream.begin", behind=True),
    "tasks": Stage("microbatch:MicroBatch.run"),
    "state": Stage("stream_batch:_Run._keep_state"),
    "before made": Stage("stream_folder:StreamFolder.keep_made"),
    "made": Stage("stream_folder:StreamFolder.keep_made", behind=True),
    "publication": Stage("outputs:put", behind=True),
    "before record": Stage("stream_folder:StreamFolder.commit"),
    "record": Stage("stream_folder:StreamFolder.commit", behind=True),
    "compaction": Stage("stream_folder:StreamFolder.compact"),
}
"""Those of a batch, in their order."""
END_STAGES: Final = {
    "end begins": Stage("stream_folder:StreamFolder.begin_end", behind=True),
    "tables of the end": Stage("outputs:_Folder.conclude"),
    "before end": Stage("stream_folder:StreamFolder.end"),
    "end": Stage("stream_folder:StreamFolder.end", behind=True),
}
"""Those of the end, behind all batches."""


class Kill(NamedTuple):
    """At which call of a stage's function a driver dies; of tasks, after how many seconds."""

    stage: str
    call: str
    seconds: str


def some_kills(rng: random.Random, count: int, seconds: float) -> list[Kill]:
    """Kills at stages of batches, then at those of the end: each stage at least once if there are
    20, and the others at any moment behind the beginning of a batch's tasks."""
    end = list(END_STAGES)[: max(1, count // 5)] if count > 1 else []
    batch = list(BATCH_STAGES)
    stages = rng.sample(batch, min(len(batch), count - len(end)))
    stages += ["tasks"] * (count - len(end) - len(stages))
    if count == 1:
        stages = [rng.choice([*BATCH_STAGES, *END_STAGES])]
    rng.shuffle(stages)
    once = {"query begins", *END_STAGES}
    return [
        Kill(each, str(1 if each in once else rng.randrange(1, 4)), str(rng.random() * seconds))
        for each in [*stages, *end]
    ]


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_at(stage: str, calls: int, seconds: float) -> None:
    """Let this process die at a call of a stage's function."""
    where, behind = (BATCH_STAGES | END_STAGES)[stage]
    module, _, path = where.partition(":")
    owner: Any = __import__(f"wiredump.spark.{module}", fromlist=["*"])
    *outer, name = path.split(".")
    for each in outer:
        owner = getattr(owner, each)
    real, left = getattr(owner, name), calls

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0 and stage == "tasks":
            threading.Timer(seconds, _die).start()
        elif left == 0 and not behind:
            _die()
        result = real(*arguments, **named)
        if left == 0 and behind:
            _die()
        return result

    setattr(owner, name, counted)


def main(stage: str, calls: str, seconds: str, *arguments: str) -> None:
    from wiredump.cli import main

    kill_at(stage, int(calls), float(seconds))
    main(arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
