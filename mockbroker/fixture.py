"""The object behind the fixture ``mock_kafka``: a cluster on its own thread, with assertions on the
requests of its clients."""

from __future__ import annotations

import warnings
from dataclasses import replace

from mockbroker.cluster_options import ClusterOptions
from mockbroker.recorded_requests import RecordedRequests
from mockbroker.threaded import ThreadedCluster

__all__ = ["MockKafka"]


class MockKafka(ThreadedCluster, RecordedRequests):
    """A ``MockCluster`` for any thread, with assertions on its clients' requests::

    def test_reassignment(mock_kafka):
        admin = KafkaAdminClient(bootstrap_servers=mock_kafka.bootstrap)
        ...
        mock_kafka.assert_requested("AlterPartitionReassignments", times=1, version=0)
    """

    def _set_up(self, options: ClusterOptions) -> None:
        journal = options.limits.journal() if options.journal is None else options.journal
        ThreadedCluster._set_up(self, replace(options, journal=journal))
        RecordedRequests.__init__(self, journal)

    def journal_text(self, most: int | None = None) -> str:
        """The newest ``most`` entries of the journal, one line a frame."""
        return "\n".join(self.lines(most))

    def said(self, most: int | None = None) -> str:
        """Deprecated: use ``journal_text``."""
        warnings.warn("said is deprecated; use journal_text", DeprecationWarning, stacklevel=2)
        return self.journal_text(most)
