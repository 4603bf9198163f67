"""Every kind of step, played by the reference client on a mock cluster; and clients that hang, die
or cannot be made, each of which is a verdict."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode

import pytest

from kspec.answers import Answer
from kspec.case_parser import parse_case
from kspec.error_kinds import Failure
from kspec.errors import AdapterError, AdapterFault
from kspec.judge import Judgement
from kspec.results import Greeting, Result
from kspec.runner.bearer_tokens import lacks_token, sasl_arguments
from kspec.runner.clients import Local
from kspec.runner.play import CHOICES_OF_THE_CALLER
from kspec.runner.schedule import run

STEPS = """\
title: every kind of step
source: KIP-455
about: a
profile: kafka-2.8-zk
cluster: {brokers: 4, topics: ["foo=1,2,3"], controller: 2, apis: {DescribeCluster: "off"}}
client: {bootstrap: [3], client_id: me}
steps:
  - {call: list_topics, as: first}
  - reconnect: true
  - {call: list_topics, as: second}
  - faults: [{api: ListPartitionReassignments, error: NOT_CONTROLLER}]
  - {call: list_reassignments, with: {partitions: [foo-0]}, as: refused}
  - clear_faults: true
  - {call: list_reassignments, with: {partitions: [foo-0]}, as: free}
  - {call: alter_reassignments, with: {assignments: {foo-0: [4]}}}
  - wait: {responses: {api: AlterPartitionReassignments}, count: 1, ms: 500}
  - pause_ms: 1
  - cluster: join-isr foo-0 4
must:
  - says: it begins at the one broker it is told of
    requests: {connection: 1}
    each: {broker: 3, client_id: me}
  - says: the second call goes over a connection of its own
    requests: {api: Metadata, during: second, connection: 1}
    count: 0
  - {says: it is refused, result: refused, error: NOT_CONTROLLER}
  - {says: it is served, result: free, value: {}}
  - {says: the move is done, state: {topics: {foo: {"0": {replicas: [4]}}}}}
  - {says: it goes to the controller, requests: {api: 45}, each: {broker: 2}}
wrong: {by: claims-success}
"""


async def played(client, text: str) -> Result:
    (result,) = await run([client], [parse_case(text, "x/001-x.yaml")])
    return result


async def test_every_kind_of_step():
    result = await played(Local("reference"), STEPS)
    assert result.judgement.verdict == "pass", result.judgement
    names = [call.name for call in result.variants[0].calls]
    assert names == ["first", "second", "refused", "free", "alter_reassignments"]


class Fake:
    """A client that answers each op as it is told to; an error is raised."""

    name = "fake"
    wire_only = False
    greeting = Greeting(client="fake")
    pid = None

    def __init__(self, **answers: Answer | Exception) -> None:
        self._answers = answers
        self.asked: list[str] = []
        self.started = 0

    async def start(self) -> Fake:
        self.started += 1
        return self

    async def call(self, op, arguments):
        self.asked.append(op)
        answer = self._answers.get(op, Answer())
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def stop(self) -> None:
        self.asked.append("stop")


SIMPLE = """\
title: t
source: KIP-1
about: a
steps:
  - call: list_topics
  - {call: list_topics, as: again, optional: true}
must:
  - {says: it succeeds, result: list_topics, success: true}
variants: [{n: 1}, {n: 2}]
wrong: {by: claims-success}
"""


STAGED = """\
title: t
source: KIP-1
about: a
cluster: {brokers: 2, topics: ["foo=1,2"]}
faults:
  - FAULT
steps:
  - STEP
  - {call: list_topics, as: late}
must:
  - {says: it SUCCEEDS, result: late, success: WANTED}
wrong: {by: claims-success}
"""


def staged(fault: str, step: str = "{call: list_topics}", *, wanted: str = "true") -> str:
    return STAGED.replace("FAULT", fault).replace("STEP", step).replace("WANTED", wanted)


HIT = "{api: Metadata, throttle: 1}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (staged("{api: Metadata, steps_before: [fence-producer nobody]}"),
         "steps_before=['fence-producer nobody'] failed: fence-producer nobody: there is no "),
        (staged("{api: Metadata, optional: true, steps_after: [failover 9]}"),
         "failed: failover 9: "),
        (staged("{api: Metadata, set: {nowhere: 1}}"), "the response has no nowhere"),
        (staged("{api: Produce, error: NOT_LEADER_OR_FOLLOWER}"),
         "no request triggered a fault of the case: api=Produce error=6"),
        (staged("{api: Produce, optional: true, error: 6}"),
         "no request triggered a fault of the case: api=Produce error=6"),
        (staged(HIT + "\n  - {api: Fetch, error: 1}"), "no request triggered a fault of"),
        (staged(HIT, "cluster: join-isr foo-0 9"), "a step failed: join-isr foo-0 9: "),
        (staged(HIT, "cluster: failover 1\n  - unreachable: 9"), "a step failed: "),
        (staged(HIT, "faults: [{api: Metadata, error: 5, name: x}, {api: 3, error: 5, name: x}]"),
         "a step failed: faults: "),
        (staged(HIT, "acls: [allow read topic foo]").replace("brokers: 2", "brokers: 2, acls: []")
         .replace("steps:", "steps:\n  - telemetry: {metrics: [a], interval_ms: 1}")
         .replace("acls: []", "acls: [], telemetry: {}"), "a step failed: telemetry: "),
    ],
)  # fmt: skip
async def test_a_case_that_does_not_happen_is_an_error(text, why):
    judged = (await played(Local("reference"), text)).judgement
    assert judged.verdict == "error"
    assert why in judged.why
    assert "\n" not in judged.why


async def test_a_fault_may_be_optional_beside_one_that_is_hit():
    fault = HIT + "\n  - {api: Produce, optional: true, error: 6}"
    assert (await played(Local("reference"), staged(fault))).judgement.verdict == "pass"
    optional = HIT + "\n  - {api: 3, optional: true, set: {nowhere: 1}, times: 1}"
    assert (await played(Local("reference"), staged(optional))).judgement.verdict == "pass"


async def test_a_must_that_is_broken_counts_more_than_a_step_that_failed():
    text = staged("{api: Metadata, steps_before: [failover 9]}", wanted="false")
    assert (await played(Local("reference"), text)).judgement.verdict == "fail"


async def test_a_client_that_hangs_fails_and_is_replaced():
    client = Fake(list_topics=AdapterError("hung", hung=True))
    result = await played(client, SIMPLE)
    assert (result.judgement.verdict, result.judgement.why) == ("fail", "hung")
    assert client.asked == ["connect", "list_topics", "stop"] * 2
    assert client.started == 2


async def test_a_client_that_lives_on_is_kept():
    client = Fake()
    assert (await played(client, SIMPLE)).judgement.verdict == "pass"
    assert client.started == 1
    assert client.asked == ["connect", "list_topics", "list_topics", "close"] * 2 + ["stop"]


async def test_a_client_that_cannot_be_made_has_failed_every_call():
    client = Fake(connect=Answer(failure=Failure("E", None, "no such option")))
    result = await played(client, SIMPLE)
    assert result.judgement.verdict == "fail"
    assert "no such option" in result.judgement.why
    assert "list_topics" not in client.asked


async def test_a_client_that_cannot_close_fails():
    client = Fake(close=AdapterError("died"))
    assert (await played(client, SIMPLE)).judgement.why == "when closing: died"


async def test_a_client_that_does_not_start_is_an_error_and_the_run_goes_on():
    class Absent(Fake):
        async def start(self):
            raise AdapterError("no greeting")

    result = await played(Absent(), SIMPLE)
    assert (result.judgement.verdict, result.judgement.why) == ("error", "no greeting")


@pytest.mark.parametrize("op", ["connect", "list_topics", "close"])
async def test_an_error_of_the_adapter_is_no_verdict_on_the_client(op):
    client = Fake(**{op: AdapterFault("the adapter failed: KeyError: foo")})
    result = await played(client, SIMPLE)
    assert result.judgement == Judgement("error", "the adapter failed: KeyError: foo")
    assert client.asked[-1] == "stop"  # another process plays the next case
    assert client.started == 2


@pytest.mark.parametrize("group", sorted(CHOICES_OF_THE_CALLER))
async def test_a_raw_call_is_not_judged_by_what_its_caller_chose(group):
    client = Fake(list_topics=Answer(result=[]))
    client.greeting = Greeting(client="fake", raw_calls={"list_topics": "listTopicsV4"})
    (result,) = await run([client], [parse_case(SIMPLE, f"{group}/001-x.yaml")])
    assert result.judgement.verdict == "unsupported"
    assert "other than listTopicsV4" in result.judgement.why
    assert "list_topics" not in client.asked
    (result,) = await run([client], [parse_case(SIMPLE, "framing/001-x.yaml")])
    assert result.judgement.verdict == "pass"


NEEDS_A_CALL = """\
title: t
source: KIP-1
about: a
steps:
  - {call: subscribe, with: {topics: [foo]}}
  - {call: poll}
must:
  - {says: it succeeds, result: poll, success: true}
wrong: {by: claims-success}
"""


async def test_a_play_ends_at_a_call_that_the_client_does_not_have():
    """aiokafka's consumer waits for ever where it was never told what to read."""
    hangs = AdapterError("hung: not an answer to poll in 15 s", hung=True)
    client = Fake(subscribe=Answer(unsupported="no public call"), poll=hangs)
    result = await played(client, NEEDS_A_CALL)
    assert result.judgement.verdict == "unsupported"
    assert client.asked == ["connect", "subscribe", "close", "stop"]


async def test_a_case_that_cannot_be_staged_is_an_error_and_the_others_go_on():
    texts = [SIMPLE + "cluster: {controller: 9}\n", SIMPLE]
    cases = [parse_case(text, f"x/00{number}-x.yaml") for number, text in enumerate(texts, 1)]
    broken, sound = await run([Fake()], cases)
    assert broken.judgement.verdict == "error"
    assert "broker" in broken.judgement.why
    assert sound.judgement.verdict == "pass"


TOGETHER = """\
title: t
source: KIP-1
about: a
cluster: {topics: ["foo=1,2"]}
steps:
  - {call: list_topics, as: first}
  - together:
      - {call: list_reassignments, with: {partitions: [foo-0]}, as: one}
      - {call: list_topics, as: two}
must:
  - {says: one has its own, result: one, value: {}}
  - {says: two has its own, result: two, value: [foo]}
  - {says: both lasted as long, requests: {api: Metadata, during: one}, count: 1+}
wrong: {by: claims-success}
"""


async def test_several_calls_at_once():
    result = await played(Local("reference"), TOGETHER)
    assert result.judgement.verdict == "pass", result.judgement
    assert [call.name for call in result.variants[0].calls] == ["first", "one", "two"]


@pytest.mark.parametrize(
    ("whole", "verdict", "why"),
    [
        (Answer(unsupported="one at a time"), "unsupported", "one at a time"),
        (Answer(failure=Failure("E", None, "no")), "fail", "no"),
        (Answer(result=[{"ok": True}]), "error", "expected 2 answers, one per call"),
        (Answer(result=[{"ok": True}, {}]), "error", "not a line of the protocol"),
        (Answer(result=[{"ok": True}, 3]), "error", "not a line of the protocol"),
        (
            Answer(result=[{"ok": True, "result": {}}, {"ok": False, "error": "E2"}]),
            "fail",
            "two has its own",
        ),
    ],
)
async def test_an_adapter_answers_all_of_several_calls(whole, verdict, why):
    result = await played(Fake(together=whole), TOGETHER)
    assert result.judgement.verdict == verdict
    assert why in result.judgement.why


class Moody(Fake):
    """Fails every other time."""

    async def call(self, op, arguments):
        self.asked.append(op)
        odd = op == "list_topics" and self.asked.count(op) % 2
        return Answer(failure=Failure("E", None, "not now")) if odd else Answer()


async def test_what_failed_is_played_once_more_where_that_is_asked_for():
    text = SIMPLE.replace("  - {call: list_topics, as: again, optional: true}\n", "").replace(
        "variants: [{n: 1}, {n: 2}]\n", ""
    )
    case = parse_case(text, "x/001-x.yaml")

    def failed(result: Result) -> bool:
        return result.judgement.verdict == "fail"

    (once,) = await run([Moody()], [case])
    assert (once.judgement.verdict, once.unsteady) == ("fail", "")
    (twice,) = await run([Moody()], [case], again=failed)
    assert twice.judgement.verdict == "pass"
    assert "not now" in twice.unsteady
    always = Fake(list_topics=Answer(failure=Failure("E", None, "never")))
    (never,) = await run([always], [case], again=failed)
    assert (never.judgement.verdict, never.unsteady) == ("fail", "")
    assert always.asked.count("list_topics") == 2


class Mute(Fake):
    """Does not start."""

    async def start(self) -> Fake:
        self.started += 1
        raise AdapterFault("hung: no greeting in 30 s")


async def test_a_client_that_does_not_start_is_waited_for_once_and_once_more_at_the_end():
    """Not in each case, let alone in each variant of a case."""
    mute = Mute()
    cases = [parse_case(SIMPLE, f"x/00{number}-x.yaml") for number in range(1, 6)]
    results = await run([mute], cases, again=lambda result: result.judgement.verdict == "error")
    assert {each.judgement for each in results} == {Judgement("error", "hung: no greeting in 30 s")}
    assert mute.started == 2


class Other(Fake):
    """Notes what another client was asked before it starts."""

    name = "other"

    def __init__(self, first: Fake) -> None:
        super().__init__()
        self._first = first
        self.before: list[str] = []

    async def start(self) -> Fake:
        self.before += self._first.asked
        return await super().start()


async def test_a_client_ends_when_it_has_played_its_last_case():
    first = Fake()
    other = Other(first)
    await run([first, other], [parse_case(SIMPLE, "x/001-x.yaml")])
    assert (first.asked.count("stop"), other.before.count("stop")) == (1, 1)
    assert other.asked.count("stop") == 1


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("kafka-2.8-zk", "kafka-2.9-zk", "x/001-x: no release profile named 'kafka-2.9-zk'"),
        ('"foo=1,2,3"', "foo", "x/001-x: topic 'foo': use NAME:PARTITIONS:REPLICAS"),
    ],
)
async def test_a_cluster_that_cannot_be_made_names_the_case(before, after, problem):
    text = STEPS.replace(before, after)
    (result,) = await run([Local("reference")], [parse_case(text, "x/001-x.yaml")])
    assert result.judgement.verdict == "error"
    assert result.judgement.why.startswith(problem)


def test_tokens_expire_when_the_case_says() -> None:
    wanted = {"mechanism": "OAUTHBEARER", "tokens": "alice:5 - bob:-1"}
    found = sasl_arguments(wanted, 100.0)["tokens"]
    assert [each and (each["principal"], each["expires_ms"]) for each in found] == [
        ("alice", 105_000), None, ("bob", 99_000)
    ]  # fmt: skip
    head, claims, signature = found[0]["token"].split(".")
    assert signature == ""
    assert json.loads(urlsafe_b64decode(head + "==")) == {"alg": "none"}
    assert json.loads(urlsafe_b64decode(claims + "=="))["exp"] == 105.0
    assert lacks_token(wanted)
    assert not lacks_token({"mechanism": "PLAIN"})
