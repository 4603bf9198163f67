"""What the fixture ``mock_kafka`` is: a cluster on its own thread, and what it heard."""

from __future__ import annotations

from typing import Any

from mockbroker.recorded_requests import RecordedRequests
from mockbroker.serving.limits import Limits
from mockbroker.threaded import ThreadedCluster

__all__ = ["MockKafka"]

_OF_THE_JOURNAL = ("journal_entries", "journal_bytes")


class MockKafka(ThreadedCluster, RecordedRequests):
    """A ``MockCluster`` for any thread, with assertions on what clients asked of it::

    def test_reassignment(mock_kafka):
        admin = KafkaAdminClient(bootstrap_servers=mock_kafka.bootstrap)
        ...
        mock_kafka.assert_requested("AlterPartitionReassignments", times=1, version=0)
    """

    def __init__(self, **options: Any) -> None:
        bounds = {name: options[name] for name in _OF_THE_JOURNAL if name in options}
        options.setdefault("journal", Limits(**bounds).journal())
        ThreadedCluster.__init__(self, **options)
        RecordedRequests.__init__(self, options["journal"])

    def said(self, most: int | None = None) -> str:
        """The journal for eyes, a line a frame."""
        return "\n".join(self.lines(most))
