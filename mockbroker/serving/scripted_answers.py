"""Answers a test puts in the place of a running mock cluster's own. ``MockCluster`` has these as
its own; what a script is, and which is asked when, is for ``scripts``.
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
    _dispatcher: Dispatcher

    def on(self, api_key: int, *, times: int | None = None) -> Callable[[Script], Script]:
        """Let the decorated function answer an api key before the broker does::

            @mock.on(3)
            def metadata(call):
                return None if call.broker_id == 1 else MetadataResponse(...)

        It returns a response message, or its JSON, or None to leave it to the broker; what it
        raises is answered with UNKNOWN_SERVER_ERROR(-1) and journalled. ``times`` bounds how many
        requests it answers. A later one is asked first.
        """
        self._check_served(api_key)

        def keep(script: Script) -> Script:
            self._dispatcher.add_script(api_key, script, times)
            return script

        return keep

    def script(self, api_key: int, reply: Scripted, *, times: int | None = None) -> None:
        """Answer an api key with this response: a message, or its JSON for the version asked."""
        self._check_served(api_key)
        self._dispatcher.add_script(api_key, lambda _call: reply, times)

    def clear_scripts(self, api_key: int | None = None) -> None:
        """Back to the broker's own answers, for one api key or all."""
        self._dispatcher.scripts.clear(api_key)

    def replay(self, transcript: Transcript, *, latency: bool = False) -> None:
        """Answer out of a transcript wherever it has an answer, scripts and the broker elsewhere;
        what it has none for is journalled as ``replay-miss``. ``latency``: as late as recorded.

        For connections that begin from now on: call it before ``start``.
        """
        dispatcher = self._dispatcher
        dispatcher.replay(Replay(transcript, dispatcher.cluster, latency=latency, sleep=sleep))

    def _check_served(self, api_key: int) -> None:
        if api_key not in self._dispatcher.served:
            raise ClusterError(f"api key {api_key} is not served; requests of it never arrive")
