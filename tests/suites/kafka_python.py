"""kafka-python's integration tests, of its source distribution.

The distribution lacks two modules that the tests import: a package file, without which ``test`` is
the standard library's, and the module that starts brokers, of which only the stand-in for brokers
that run already is used.
"""

import json
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Final

from kproto.builds import built, run
from tests.suites.model import ClusterNeeds, Run, Status, Suite
from tests.suites.processes import lines_of
from tests.suites.pytest_events import PREFIX

__all__ = ["KafkaPython"]

PLUGIN: Final = Path(__file__).with_name("pytest_events.py")
TESTS: Final = "test/integration/"
RELEASE: Final = "3.0.12"
NEWEST_KNOWN: Final = "4.3.0"
"""The newest broker that this release of kafka-python recognises."""

SERVICES: Final = '''"""Processes that the fixtures of the tests use; brokers run already."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port


class SpawnedService:
    def __init__(self, args, env):
        raise RuntimeError("the suite starts no brokers")
'''


class KafkaPython(Suite):
    name = "kafka-python"
    package = f"PyPI kafka-python=={RELEASE}, test/integration"
    needs = ClusterNeeds(
        first_id=0,
        configs={
            "num.partitions": "4",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
        },
    )
    seconds = 600.0
    quick = (
        "test_admin_integration.py::test_alter_replica_log_dirs",
        "test_admin_integration.py::test_delete_groups_with_errors",
        "test_admin_integration.py::test_describe_metadata_quorum",
        "test_admin_integration.py::test_describe_topic_partitions_pagination",
        "test_admin_integration.py::test_list_config_resources",
        "test_consumer_integration.py::test_kafka_consumer_max_bytes_simple",
        "test_consumer_integration.py::test_kafka_consumer_offsets_for_time",
        "test_producer_integration.py::test_end_to_end[gzip]",
        "test_producer_integration.py::test_idempotent_producer_max_in_flight[5]",
    )

    def install(self) -> Path:
        return built(
            f"suites/{self.name}", [self.package, SERVICES, PLUGIN.read_text("utf-8")], self._build
        )

    def _build(self, folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        run(
            [*pip, "download", "-q", "--no-deps", "--no-binary=:all:", f"kafka-python=={RELEASE}"],
            cwd=folder,
        )
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        archive.unlink()
        (sources,) = folder.glob("kafka_python-*")
        sources.rename(folder / "sources")
        tests = folder / "sources" / "test"
        (tests / "__init__.py").touch()
        (tests / "service.py").write_text(SERVICES, "utf-8")
        shutil.copy(PLUGIN, folder / "sources")

    def run(self, run: Run) -> None:
        sources = run.folder / "sources"
        left_out = [word for name in run.left_out for word in ("--deselect", TESTS + name)]
        tests = [TESTS] if run.chosen is None else [TESTS + name for name in sorted(run.chosen)]
        version = min(run.target.version, NEWEST_KNOWN)
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "pytest_timeout", "-p", "pytest_events",
            "-p", "no:cacheprovider", "-W", "ignore", "-o", "addopts=", "--timeout=60",
            "--timeout-method=signal", "--show-capture=no", *left_out, *tests,
        ]  # fmt: skip
        environment = {
            "KAFKA_URI": f"kafka://{run.bootstrap}",
            "KAFKA_VERSION": version,
            "KAFKA_ROOT": str(sources),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        with open(run.output / "output.log", "wb") as log:
            for line in lines_of(
                command, cwd=sources, environment=environment, seconds=run.seconds, log=log
            ):
                if line.startswith(PREFIX):
                    event = json.loads(line.removeprefix(PREFIX))
                    name = event["name"].removeprefix(TESTS)
                    run.report(name, Status(event["status"]), event["output"])
