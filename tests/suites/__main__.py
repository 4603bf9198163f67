"""Run suites and compare the results with the lists in ``tests/suites/expected``::

    make suites                                              # every suite on the mock
    make suites ARGS="--suite kgo --on kafka:4.4.0"          # one suite on real Kafka
    make suites ARGS="--suite kgo --test TestGroupETL"       # one test
    make suites ARGS="--suite kgo --write"                   # take over the results

The exit status is 1 if a test is in no list, or its result is not that of its list, or if a list
gives no reason; 2 if a suite cannot run here. Output is kept in .cache/suites/SUITE/TARGET.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from kproto.errors import AbsentError
from tests.suites.catalog import SUITES
from tests.suites.expectations import Expectations
from tests.suites.model import Run, Status, Suite
from tests.suites.targets import MOCK, ProxiedTarget, Target, target_of

ROOT: Final = Path(__file__).resolve().parents[2]
KEPT: Final = ROOT / ".cache" / "suites"
SHOWN_LINES: Final = 20
"""The last lines of a failed test's output that are printed."""
APART: Final = "KPROTO_SUITES_APART"
"""Set in the process that has a network of its own."""
ABSENT: Final = 2


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make suites", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--suite", action="append", choices=[*SUITES], help="repeatable; all")
    parser.add_argument("--on", action="append", metavar="TARGET", help=f"repeatable; {MOCK}")
    parser.add_argument("--test", action="append", metavar="NAME", help="repeatable; all")
    parser.add_argument("--quick", action="store_true", help="the tests that `make test` runs")
    parser.add_argument("--proxied", action="store_true", help="put a proxy in front of the target")
    parser.add_argument("--write", action="store_true", help="update the lists; keep the reasons")
    parser.add_argument("--install", action="store_true", help="install the suites, run nothing")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    code = 0
    for suite in (SUITES[name] for name in options.suite or SUITES):
        if options.quick and suite.only_whole:
            _say(f"{suite.name} has no quick tests: {suite.only_whole}")
            continue
        try:
            folder = suite.install()
            for target in map(target_of, options.on or [MOCK]):
                if options.proxied:
                    target = ProxiedTarget(target)
                if not options.install:
                    code = max(code, _run(suite, folder, target, options))
        except AbsentError as error:
            _say(f"{suite.name} cannot run: {error}")
            code = ABSENT
    return code


def _run(suite: Suite, folder: Path, target: Target, options: argparse.Namespace) -> int:
    if suite.private_network and not os.environ.get(APART):
        return _run_apart(suite, target, options)
    expectations = Expectations.read(suite.name)
    chosen: Collection[str] | None = options.test
    if options.quick:
        chosen = suite.quick
    began = time.monotonic()
    results = _results(suite, folder, target, expectations, chosen)
    counts = Counter(results.values())
    _say(
        f"{suite.name} on {target.name}: "
        + ", ".join(f"{counts[status]} {status}" for status in Status)
        + f" in {time.monotonic() - began:.0f} s"
    )
    if options.write:
        expectations = Expectations.read(suite.name)  # another run may have written it
        expectations.update(target.name, results, chosen)
        expectations.write()
    if target.name == "nothing":
        return 0
    problems = [*expectations.problems(target.name, results, chosen)]
    for problem in problems:
        _say(f"{suite.name} on {target.name}: {problem}")
    return int(bool(problems))


def _results(
    suite: Suite,
    folder: Path,
    target: Target,
    expectations: Expectations,
    chosen: Collection[str] | None,
) -> Mapping[str, Status]:
    """Run the suite and print each test as it ends, with the output of those that fail though their
    list says otherwise."""
    expected = expectations.targets.get(target.name)
    known = {} if expected is None else expected.statuses()
    results: dict[str, Status] = {}
    output = KEPT / suite.name / target.name.replace(":", "-")
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)

    def report(name: str, status: Status, text: str) -> None:
        results[name] = status
        _say(f"{suite.name} on {target.name}: {len(results)}. {name} {status}")
        if status is Status.FAILED:
            (output / f"{name.replace('/', '_')[:200]}.log").write_text(text, "utf-8")
            if known.get(name) is not Status.FAILED:
                _say(*(f"    {line}" for line in text.splitlines()[-SHOWN_LINES:]))

    # A target without brokers shows which of the tests left out ask no broker.
    left_out = () if target.name == "nothing" else expectations.left_out
    with tempfile.TemporaryDirectory() as files:
        needs = suite.needs
        if needs is None:
            suite.run(Run(folder, "", target, chosen, left_out, output, suite.seconds, report))
        else:
            with target.start(needs, Path(files)) as bootstrap:
                suite.run(
                    Run(folder, bootstrap, target, chosen, left_out, output, suite.seconds, report)
                )
    return results


def _run_apart(suite: Suite, target: Target, options: argparse.Namespace) -> int:
    """Run it in a process with a network of its own, whose loopback has every port free."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        raise AbsentError("the commands unshare and ip are absent (Debian: util-linux, iproute2)")
    apart = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode != 0:
        raise AbsentError("network namespaces need root or user namespaces")
    script = 'ip link set lo up && exec "$@"'
    command = [*apart, "sh", "-c", script, "sh", sys.executable, "-m", "tests.suites"]
    command += ["--suite", suite.name, "--on", target.name]
    command += [word for name in options.test or () for word in ("--test", name)]
    command += [f"--{name}" for name in ("quick", "proxied", "write") if getattr(options, name)]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, APART: "1"})
    try:
        return process.wait()
    finally:
        process.terminate()
        process.wait()


def _say(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
