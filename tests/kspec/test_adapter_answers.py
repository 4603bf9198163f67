"""What each adapter, with the released client it drives, reports of answers that are fixed:
success, partial, null, error. And what it reports of its own errors.

``fixed_answers.json`` holds the lines, without ``raw`` and ``at``.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kspec.client_catalog import Client
from tests.kspec.fixed_answers import play_fixed, stripped
from tests.kspec.which import params, program

EXPECTED = json.loads(Path(__file__).with_name("fixed_answers.json").read_text())

RAW_CALLS = {
    "@platformatic/kafka": {"alter_reassignments", "list_reassignments"},
    "@platformatic/kafka-2": {"alter_reassignments", "list_reassignments"},
    "kafka-ts": {"alter_reassignments", "create_topics", "elect_leaders", "list_reassignments"},
}


OF_THE_COORDINATOR = {
    ("kafka-go", "describe groups: unknown"): {
        "ok": True,
        "result": {"g": {"state": "Dead", "members": 0}},
    }
}
"""kafka-go asks any broker to describe a group. ``fixed_answers.json`` has what it makes of one
that does not coordinate the group."""


@pytest.mark.slow
@pytest.mark.parametrize("which", params())
async def test_an_adapter_reports_what_its_client_did_and_nothing_else(which: Client) -> None:
    greeting, answers, own = await play_fixed(program(which))
    reported = stripped(answers)
    for (client, name), other in OF_THE_COORDINATOR.items():
        if which.name == client and reported[name] == other:
            reported[name] = EXPECTED[client][name]
    assert reported == EXPECTED[which.name]
    for name, answer in answers.items():
        if "unsupported" not in answer:
            assert answer["raw"] if answer["ok"] else answer["error"], name
    # An error of the adapter is not one of the client.
    assert set(own) == {"adapter_error"}, own
    assert own["adapter_error"]["error"]
    assert own["adapter_error"]["message"]
    # What differs from the client's defaults is disclosed.
    assert "timeout_ms" in " ".join(greeting.options.values())
    if which.language == "java":
        assert "-Xmx" not in greeting.options["JVM"]
        assert greeting.options["JVM's largest heap"].endswith(" MiB")
    assert set(greeting.raw_calls) == RAW_CALLS.get(which.name, set())


def test_the_fixed_answers_have_no_words_of_an_adapter() -> None:
    """Except for kcat, whose process is all there is to report of a failure."""
    found = {
        client
        for client, answers in EXPECTED.items()
        for answer in answers.values()
        if "adapter_error" in answer or answer.get("error") in ("hung", "died")
    }
    assert found == set()
