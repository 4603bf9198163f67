"""sarama's functional tests: five brokers behind Toxiproxy, which cuts connections."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kproto.builds import built
from kproto.builds import run as run_installer
from kspec.runner import toolchains
from tests.suites.golang import GoSuite
from tests.suites.model import ClusterNeeds, Run

__all__ = ["Sarama"]

BROKERS: Final = 5
FIRST_PROXY: Final = 29091
"""The port of the first broker's proxy, fixed in the tests."""
FIRST_BROKER: Final = 39091
TOXIPROXY: Final = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0"
TOXIPROXY_PORT: Final = 8474
_TEST: Final = re.compile(r"^func (Test\w+)\(", re.M)


class Sarama(GoSuite):
    name = "sarama"
    module = "github.com/IBM/sarama"
    version = "v1.61.1"
    package = f"Go {module}@{version}, tests with the tag functional"
    build_flags = ("-tags=functional",)
    private_network = True
    needs = ClusterNeeds(
        brokers=BROKERS,
        port=FIRST_BROKER,
        advertised=("localhost", FIRST_PROXY),
        configs={
            "auto.create.topics.enable": "false",
            "default.replication.factor": "2",
            "offsets.topic.replication.factor": "2",
            "transaction.state.log.replication.factor": "2",
        },
    )
    seconds = 3000.0
    program_seconds = 1500.0
    quick = (
        "TestConsumerHighWaterMarkOffset", "TestConsumerPartialBatchRecovery",
        "TestFuncAdminDeleteRecords", "TestFuncAdminListOffsets", "TestFuncClientMetadata",
        "TestFuncConnectionFailure", "TestFuncJoinGroupVersionSelection",
        "TestFuncMultiPartitionProduce",
    )  # fmt: skip

    def install(self) -> Path:
        _toxiproxy()
        return super().install()

    def tests(self, program: Path) -> list[str]:
        """Only the functional tests: the others bring brokers of their own."""
        files = sorted(program.parent.glob("functional_*_test.go"))
        return [name for file in files for name in _TEST.findall(file.read_text("utf-8"))]

    def environment(self, run: Run) -> dict[str, str]:
        return {
            "TOXIPROXY_ADDR": f"http://127.0.0.1:{TOXIPROXY_PORT}",
            "KAFKA_VERSION": run.target.version,
        }

    def run(self, run: Run) -> None:
        with _proxies(run.output):
            super().run(run)


def _toxiproxy() -> Path:
    """The command that serves proxies, built once."""

    def build(folder: Path) -> None:
        run_installer(["go", "install", TOXIPROXY], cwd=folder, environment={"GOBIN": str(folder)})

    made_of = [TOXIPROXY, toolchains.find("go") or ""]
    return built("suites/toxiproxy", made_of, build) / "server"


@contextmanager
def _proxies(folder: Path) -> Iterator[None]:
    """Serve a proxy for each broker until the caller is done."""
    proxies = [
        {
            "name": f"kafka{place + 1}",
            "listen": f"127.0.0.1:{FIRST_PROXY + place}",
            "upstream": f"127.0.0.1:{FIRST_BROKER + place}",
            "enabled": True,
        }
        for place in range(BROKERS)
    ]
    (folder / "proxies.json").write_text(json.dumps(proxies), "utf-8")
    with open(folder / "toxiproxy.log", "wb") as log:
        process = subprocess.Popen(
            [_toxiproxy(), "-config", folder / "proxies.json"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()
