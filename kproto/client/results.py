"""Outcomes by key: one future for each partition, topic or resource."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from kproto.client.errors import ConnectionClosedError

__all__ = ["KeyedResult", "derive"]

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


def derive(call: asyncio.Future[T], pick: Callable[[T], V]) -> asyncio.Future[V]:
    """Return a future of what ``pick`` returns or raises for the outcome of ``call``. Each caller
    gets a future of its own, so cancelling one does not affect the others."""
    future: asyncio.Future[V] = call.get_loop().create_future()

    def settle(done: asyncio.Future[T]) -> None:
        if future.done():
            return
        try:
            future.set_result(pick(done.result()))
        except asyncio.CancelledError:
            future.cancel()
        except Exception as error:
            future.set_exception(error)

    call.add_done_callback(settle)
    future.add_done_callback(_look)
    return future


def _look(future: asyncio.Future[V]) -> None:
    """Retrieve the error, so that the event loop does not report it."""
    if not future.cancelled():
        future.exception()


class KeyedResult(Generic[K, V]):
    """``values`` maps each key of the call to its future."""

    def __init__(self, keys: Iterable[K]) -> None:
        loop = asyncio.get_running_loop()
        futures: dict[K, asyncio.Future[V]] = {key: loop.create_future() for key in keys}
        for future in futures.values():
            future.add_done_callback(_look)
        self.values: Mapping[K, asyncio.Future[V]] = MappingProxyType(futures)

    async def all(self) -> dict[K, V]:
        """Return all values once all are available. Raises the first error, in the order of the
        keys. Cancelling this does not cancel the call."""
        pending = [future for future in self.values.values() if not future.done()]
        if pending:
            await asyncio.wait(pending)
        return {key: future.result() for key, future in self.values.items()}

    def resolve(self, key: K, outcome: V | BaseException) -> None:
        """Set the outcomes. Only the first outcome of a key counts."""
        future = self.values[key]
        if future.done():
            return
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    def follow(
        self,
        call: asyncio.Future[Mapping[K, V | BaseException]],
        keys: Iterable[K],
        missing: Callable[[K], Exception],
    ) -> None:
        """Resolve ``keys`` from ``call``. Its error applies to all of them; a key without an
        outcome gets ``missing``."""
        all_keys = list(keys)

        def settle(done: asyncio.Future[Mapping[K, V | BaseException]]) -> None:
            error = ConnectionClosedError("cancelled") if done.cancelled() else done.exception()
            for key in all_keys:
                if error is not None:
                    self.resolve(key, error)
                else:
                    found = done.result()
                    self.resolve(key, found[key] if key in found else missing(key))

        call.add_done_callback(settle)
