"""An adapter that behaves, one that dies, one that hangs, one that babbles: a verdict each, and no
process left behind."""

from __future__ import annotations

import sys

import pytest

from kspec.adapters.python.lines import outcome
from kspec.answers import Answer
from kspec.errors import AdapterError, AdapterFault
from kspec.runner import adapters
from kspec.runner.adapters import ProcessAdapter
from kspec.runner.memory import MemoryGauge

GREETING = 'print(\'{"client": "c", "version": "1"}\', flush=True)\n'


async def started(folder, source: str) -> ProcessAdapter:
    path = folder / "adapter.py"
    path.write_text("import sys\n" + source)
    command = [sys.executable, "-I", str(path)]
    return await ProcessAdapter.start(command, folder, answer_seconds=1.0)


async def test_calls_are_answered_in_order(tmp_path):
    echo = """print('{"ok": true, "result": %s}' % line.strip(), flush=True)"""
    adapter = await started(tmp_path, f"{GREETING}for line in sys.stdin: {echo}")
    assert adapter.greeting.version == "1"
    for number in range(3):
        answer = await adapter.call("echo", {"number": number})
        assert answer == Answer(result={"op": "echo", "number": number})
    await adapter.stop()
    assert adapter._process.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from Linux's /proc")
async def test_memory_that_was_given_back_is_in_the_peak(tmp_path):
    take = "len(b'x' * (64 * 2**20)); print('{\"ok\": true}', flush=True)"
    adapter = await started(tmp_path, f"{GREETING}for line in sys.stdin: {take}")
    assert adapter.pid is not None
    first = MemoryGauge(adapter.pid)
    await adapter.call("take", {})
    assert 60 * 2**20 < (first.growth() or 0) < 80 * 2**20
    assert (MemoryGauge(adapter.pid).growth() or 0) < 2**20, "a new gauge begins anew"
    await adapter.stop()
    assert first.growth() is None, "it has ended"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "words"),
    [
        (GREETING + 'sys.exit("out of luck")', "out of luck"),
        (GREETING + "[][1]", "IndexError: list index out of range"),
        (GREETING + "sys.stdin.read()", "hung"),
    ],
)
async def test_a_process_that_ends_or_is_silent_is_the_clients_and_is_ended(
    tmp_path, monkeypatch, source, words
):
    monkeypatch.setattr(adapters, "STOP_SECONDS", 0.3)
    adapter = await started(tmp_path, source)
    with pytest.raises(AdapterError, match=words):
        await adapter.call("describe_cluster", {})
    await adapter.stop()
    assert adapter._process.returncode is not None


@pytest.mark.parametrize(
    "line", ["Hello", "[1]", "{}", '{"adapter_error": {"error": "KeyError", "message": "foo"}}']
)
async def test_what_the_adapter_does_wrong_is_its_own_fault(tmp_path, line):
    adapter = await started(tmp_path, f"{GREETING}print({line!r}, flush=True); sys.stdin.read()")
    with pytest.raises(AdapterFault, match=r"not a line of the protocol|KeyError: foo"):
        await adapter.call("describe_cluster", {})
    await adapter.stop()


@pytest.mark.parametrize("said", ["[]", "{}", "Hello"])
async def test_who_does_not_greet_is_ended(tmp_path, said):
    with pytest.raises(AdapterFault, match=r"(greeting|protocol).*kspec help adapters"):
        await started(tmp_path, f"print({said!r}, flush=True); sys.stdin.read()")


async def test_a_silent_adapter_is_referred_to_the_protocol(tmp_path, monkeypatch):
    monkeypatch.setattr(adapters, "GREETING_SECONDS", 0.3)
    with pytest.raises(AdapterFault, match=r"no greeting in 0 s; `kspec help adapters`"):
        await started(tmp_path, "sys.stdin.read()")


def test_errors_that_cause_each_other_are_described_once():
    """``raise error from error``, and longer circles: a client may raise them."""
    error, other = ValueError("a"), KeyError("b")
    error.__cause__ = error
    assert "cause" not in outcome(error)
    error.__cause__, other.__cause__ = other, error
    told = outcome(error)
    assert (told["error"], told["cause"]["error"]) == ("ValueError", "KeyError")
    assert "cause" not in told["cause"]


async def test_a_command_that_is_not_there_is_an_error():
    with pytest.raises(AdapterFault, match="cannot be started: No such file"):
        await ProcessAdapter.start(["./no-such-adapter"])


@pytest.mark.slow
async def test_an_adapter_that_ignores_the_end_of_input_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(adapters, "STOP_SECONDS", 0.2)
    source = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    adapter = await started(tmp_path, source + GREETING + "time.sleep(60)")
    await adapter.stop()
    assert adapter._process.returncode is not None
