"""Run a task in several processes, each with a share, and collect the results.

This module knows neither tables nor captures: a task is called with its share and a function that
reports progress. A process with a single thread on Linux is forked. Others are forked from a server
that has imported what tasks need, where the platform allows that, and else spawned; a task and its
result must be picklable.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkContext, ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import TypeAlias, TypeVar

from kproto.errors import KprotoError
from wiredump.readers.share import Share

__all__ = ["Progress", "WorkerError", "prepare", "share_out"]

AnswerT = TypeVar("AnswerT")
Progress: TypeAlias = Callable[[int], object]


class WorkerError(KprotoError):
    """A process failed to read its share; the message has the reason."""


def share_out(
    task: Callable[[Share, Progress], AnswerT], jobs: int, progress: Progress
) -> list[AnswerT]:
    """Return the result of each process, in the order of shares. No process is left when this
    returns or raises. Raises WorkerError for an exception of a task, and for a process that
    died."""
    context = _context()
    processes: list[BaseProcess] = []
    pipes: dict[Connection, int] = {}
    try:
        for number in range(jobs):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(
                target=_run, args=(task, Share(number, jobs), theirs), daemon=True
            )
            process.start()
            theirs.close()
            processes.append(process)
            pipes[ours] = number
        return _gather(pipes, jobs, progress)
    finally:
        for each in processes:
            each.terminate()
        for each in processes:
            each.join()
        for pipe in pipes:
            pipe.close()


def prepare() -> None:
    """Start importing what tasks need, if processes will be forked."""
    if isinstance(_context(), ForkServerContext):
        forkserver.ensure_running()


def _context() -> ForkContext | ForkServerContext | SpawnContext:
    """Return how processes are started. Importing pyarrow takes a quarter of a second, so that is
    done once for all of them, and if possible by this process."""
    if _has_one_thread():
        return multiprocessing.get_context("fork")
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["wiredump.tables.jobs"])
    return context


def _has_one_thread() -> bool:
    """Whether nothing can be locked by another thread when this process is forked; only Linux shows
    threads of libraries."""
    return sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1


def _run(task: Callable[[Share, Progress], object], share: Share, pipe: Connection) -> None:
    """Run in a process of its own, which leaves SIGINT to its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    try:
        pipe.send(task(share, pipe.send))
    except (KprotoError, OSError) as error:
        pipe.send(f"{error}")
    except BrokenPipeError:
        os._exit(1)  # the parent is gone


def _gather(pipes: dict[Connection, int], jobs: int, progress: Progress) -> list[AnswerT]:
    counts = [0] * jobs
    done: dict[int, AnswerT] = {}
    waiting = set(pipes)
    while waiting:
        for each in wait(list(waiting)):
            assert isinstance(each, Connection)
            number = pipes[each]
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
