"""A share of something to each of several processes, and what they answer.

Knows no tables and no captures: a task is called with its share and with whom to tell how far it
is. Processes are started anew (spawn), so that a task and its answer have to be picklable.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TypeAlias, TypeVar

from kproto.errors import KprotoError
from wiredump.readers.share import Share

__all__ = ["Progress", "WorkerError", "share_out", "usable_cores"]

AnswerT = TypeVar("AnswerT")
Progress: TypeAlias = Callable[[int], object]


class WorkerError(KprotoError):
    """A process failed to read its share; the message has the reason."""


def share_out(
    task: Callable[[Share, Progress], AnswerT], jobs: int, progress: Progress
) -> list[AnswerT]:
    """What each process answered, in the order of their shares. None is left when this returns or
    raises; raises WorkerError for what a task raised, and for a process that died."""
    context = multiprocessing.get_context("spawn")
    processes: list[BaseProcess] = []
    told: dict[Connection, int] = {}
    try:
        for number in range(jobs):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(
                target=_run, args=(task, Share(number, jobs), theirs), daemon=True
            )
            process.start()
            theirs.close()
            processes.append(process)
            told[ours] = number
        return _gather(told, jobs, progress)
    finally:
        for each in processes:
            each.terminate()
        for each in processes:
            each.join()
        for pipe in told:
            pipe.close()


def _run(task: Callable[[Share, Progress], object], share: Share, told: Connection) -> None:
    """In a process of its own. Interrupting is for the one that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    try:
        told.send(task(share, told.send))
    except (KprotoError, OSError) as error:
        told.send(f"{error}")
    except BrokenPipeError:
        os._exit(1)  # nobody is there any more


def _gather(told: dict[Connection, int], jobs: int, progress: Progress) -> list[AnswerT]:
    counts = [0] * jobs
    done: dict[int, AnswerT] = {}
    waiting = set(told)
    while waiting:
        for each in wait(list(waiting)):
            assert isinstance(each, Connection)
            number = told[each]
            try:
                answer = each.recv()
            except EOFError:
                raise WorkerError(f"process {number + 1} of {jobs} ended before its work") from None
            if isinstance(answer, int):
                counts[number] = answer
                progress(sum(counts) // jobs)
                continue
            if isinstance(answer, str):
                raise WorkerError(answer)
            done[number] = answer
            waiting.remove(each)
    return [done[number] for number in range(jobs)]


def usable_cores() -> int:
    """How many processors this process may use."""
    with suppress(AttributeError):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
