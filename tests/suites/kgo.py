"""franz-go's client, the package ``kgo``: producers, consumers, groups and transactions."""

import os

from tests.suites.golang import GoSuite
from tests.suites.model import Run

__all__ = ["Kgo"]


class Kgo(GoSuite):
    name = "kgo"
    module = "github.com/twmb/franz-go"
    version = "v1.22.2"
    package = f"Go {module}@{version}, pkg/kgo"
    packages = ("pkg/kgo",)
    program_seconds = 240.0
    # They take turns by one semaphore, so that one that hangs would stop the others.
    alone = split = ("TestGroupETL", "TestTxnEtl", "TestShareGroupETL")
    quick = (
        "Test848RegexBrokerResolves", "TestClient_ProduceLargeMessages", "TestConsumeRegex",
        "TestGroupSimple", "TestIssue325", "TestIssue648", "TestIssue810", "TestIssue865",
        "TestIssueFetchLargerThanBrokerMaxReadBytes", "TestPauseIssue489", "TestTxnEtl/range",
    )  # fmt: skip

    def environment(self, run: Run) -> dict[str, str]:
        return {
            "KGO_SEEDS": run.bootstrap,
            "KGO_TEST_RF": "1",
            "KGO_TEST_RECORDS": "10000",
            "KGO_LOG_LEVEL": os.environ.get("KGO_LOG_LEVEL", "none"),
        }
