"""Answers that a test substitutes for a running cluster's own: scripts, fixed replies and replayed
transcripts. ``scripts`` defines what a script is and when it is called.
"""

from __future__ import annotations

from collections.abc import Callable

from kproto.transcript import Transcript
from mockbroker.errors import ClusterError
from mockbroker.serving.dispatch import Dispatcher
from mockbroker.serving.replay_stage import Replay
from mockbroker.serving.scripts import Script, Scripted
from mockbroker.timers import sleep

__all__ = ["ScriptedAnswers"]


class ScriptedAnswers:
    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def on(self, api_key: int, times: int | None) -> Callable[[Script], Script]:
        self._check_served(api_key)

        def register(script: Script) -> Script:
            self._dispatcher.scripts.add(api_key, script, times)
            return script

        return register

    def reply(self, api_key: int, reply: Scripted, times: int | None) -> None:
        self._check_served(api_key)
        self._dispatcher.scripts.add(api_key, lambda _call: reply, times)

    def clear(self, api_key: int | None) -> None:
        self._dispatcher.scripts.clear(api_key)

    def replay(self, transcript: Transcript, *, latency: bool) -> None:
        dispatcher = self._dispatcher
        dispatcher.replay(Replay(transcript, dispatcher.cluster, latency=latency, sleep=sleep))

    def _check_served(self, api_key: int) -> None:
        if api_key not in self._dispatcher.served:
            raise ClusterError(f"API key {api_key} is not served; its requests never arrive")
