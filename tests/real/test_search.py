"""The search for differences: without a real broker, what it draws, sends and compares; and beside
Kafka 4.4.0, the requests of the run's seed and the programs that once showed a difference.

A kind of difference that ``search/kinds/`` does not list fails the test beside Kafka. That listed
kinds still occur is for ``make fidelity`` to check, which plays many more requests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from kproto.codec.registry import schema_of
from kproto.dialects import dialect
from kproto.schema.versions import Versions
from kspec.vectors.values import instances
from tests.real.answers import leaves
from tests.real.programs.model import Program
from tests.real.search.changes import INTERNAL_TOPIC, apply, changes
from tests.real.search.clusters import RELEASES, search_mock
from tests.real.search.decisions import ends, harms, undecided
from tests.real.search.encode import encode_body
from tests.real.search.generator import requests
from tests.real.search.kinds import (
    Kind,
    Signature,
    load,
    minimise,
    save,
    shown,
    signature_of,
    without_rows,
)
from tests.real.search.neighbours import Turns, in_rounds
from tests.real.search.outages import outage_programs
from tests.real.search.pairs import pair, warm_up
from tests.real.search.play import Arena, Found, Played
from tests.real.search.programs import family_of, programs
from tests.real.search.requests import EXCLUDED, body_of, setup
from tests.real.search.results import Counts, Result, store
from tests.real.search.results import load as results
from tests.real.search.search import kinds_file, play_all, sessions_file
from tests.real.search.side import CLOSED, SILENT, Side
from tests.support import seeds
from tests.support.full import either
from tests.support.toolchain import require

KAFKA: Final = dialect("kafka")
RELEASE: Final = "4.4.0"
REQUESTS: Final = either(120, 25)
"""Programs of requests, six requests each besides those that make their state."""
PROGRAMS: Final = either(60, 12)


def served(release: str = RELEASE) -> Mapping[int, Versions]:
    return search_mock(RELEASES[release]).served


# ---- what is drawn -------------------------------------------------------------------------------


def test_bodies_are_encoded_as_by_the_codec() -> None:
    for key in KAFKA.apis:
        kind = KAFKA.api(key).request
        schema = schema_of(kind)
        for version in kind.VALID_VERSIONS:
            for pattern, value in instances(kind, schema, version):
                if pattern != "unknown-tags":
                    body = json.loads(value.to_json(version))
                    made = encode_body(schema.root, body, version, schema.flexible_versions)
                    assert made == value.encode(version), (key, version, pattern)


def test_valid_requests_decode_to_what_they_say() -> None:
    side = Side(("", 0), "s000x0001")
    for key, versions in served().items():
        for version in versions if key not in EXCLUDED else ():
            frame = side.frame({"api": key, "version": version, "body": body_of(key, version)}, 1)
            header, body = KAFKA.decode_request(frame)
            assert (header.request_api_key, header.request_api_version) == (key, version)
            assert key == body.API_KEY


@pytest.mark.parametrize("release", ["0.10.2.2", "2.4.1", "4.4.0"])
def test_every_change_can_be_sent(release: str) -> None:
    side = Side(("", 0), "s000x0001")
    for key, versions in served(release).items():
        if key in EXCLUDED:
            continue
        for version in {versions.lowest, versions.highest}:
            body = body_of(key, version)
            for change in (each for found in changes(key, version, body) for each in found[:3]):
                changed = apply(body, change)
                assert changed != body
                side.frame({"api": key, "version": version, "body": changed}, 1)


def test_changes_name_no_producer_that_a_program_may_have() -> None:
    for key, version in ((22, 4), (24, 3), (27, 1), (66, 0)):
        drawn = [
            each.value[0] if isinstance(each.value, list) else each.value
            for found in changes(key, version, body_of(key, version))
            for each in found
            if "roducerId" in str(each.path[-1]) and each.value
        ]
        assert drawn
        assert not [each for each in drawn if 0 < each < 900_000], key


async def test_programs_do_not_meet_what_others_do() -> None:
    topics, quotas, groups = (Program(str(key), [_step(key, 0)]) for key in (20, 49, 42))
    assert in_rounds([topics, quotas, groups], lambda each: each) == [[quotas, groups], [topics]]
    turns = Turns()
    held = []

    async def take(program: Program) -> None:
        async with turns.of(program):
            held.append(program.name)

    async with turns.of(quotas):
        waiting = asyncio.create_task(take(quotas))
        await take(groups)
        assert held == ["42"]
    await waiting
    assert held == ["42", "49"]


def test_null_and_unknown_tags_are_sent_where_no_schema_has_them() -> None:
    kind = schema_of(KAFKA.api(42).request)
    flexible = kind.flexible_versions
    assert encode_body(kind.root, {"groupsNames": None}, 1, flexible) == b"\xff\xff\xff\xff"
    assert encode_body(kind.root, {"groupsNames": [None]}, 1, flexible) == b"\0\0\0\1\xff\xff"
    tagged = {"groupsNames": [], "+tags": {"99": "0102"}}
    assert encode_body(kind.root, tagged, 2, flexible) == b"\x01\x01\x63\x02\x01\x02"
    assert encode_body(kind.root, {"groupsNames": [], "+bytes": -1}, 1, flexible) == b"\0\0\0"


def test_time_passes_once_in_timed_programs() -> None:
    drawn = programs("a seed", 0, 200, served())
    pauses = {family_of(each): sum("pause" in step for step in each.steps) for each in drawn}
    assert {name for name, count in pauses.items() if count == 1} == {
        name for name in pauses if name.endswith(", timed")
    }
    assert sum(pauses.values()) >= 4


@pytest.mark.parametrize("draw", [requests, programs])
def test_a_seed_reproduces_its_programs(draw: Any) -> None:
    first = draw("a seed", 0, 30, served())
    assert first == draw("a seed", 0, 30, served())
    assert first[10:] == draw("a seed", 10, 20, served())
    assert first != draw("another", 0, 30, served())
    assert {step["api"] for each in draw("a seed", 0, 400, served()) for step in each.steps} >= (
        {0, 1, 2, 8, 9, 11, 19, 22, 26, 30, 44, 49, 51, 68, 76, 78, 88}
    )


def test_requests_around_an_outage_go_to_brokers_that_run() -> None:
    for batch in range(3):
        stopped, drawn = outage_programs("a seed", batch, 20, served())
        assert (stopped, drawn) == outage_programs("a seed", batch, 20, served())
        for program in drawn:
            outages = [place for place, step in enumerate(program.steps) if "outage" in step]
            assert len(outages) == 2
            away = {step["on"] for step in program.steps[outages[0] + 1 : outages[1]]}
            assert away <= {"b1", "b2", "b3"} - {f"b{stopped}"}


def test_internal_topics_are_not_deleted() -> None:
    for program in requests("a seed", 0, 200, served("3.9.2"), (20,)):
        assert not [step for step in program.steps if INTERNAL_TOPIC in json.dumps(step["body"])]


def test_topics_get_few_partitions() -> None:
    for key, name in ((19, "numPartitions"), (37, "count")):
        for program in requests("a seed", 0, 100, served(), (key,)):
            for step in (each for each in program.steps if each["api"] == key):
                rows = step["body"].get("topics") or []
                assert all(abs(row[name]) < 100 for row in rows), program.name


def test_no_request_changes_what_all_programs_share() -> None:
    for program in requests("a seed", 0, 300, served(), (33, 44, 49, 57, 64, 81)):
        for step in program.steps:
            body = step["body"]
            if step["api"] in (33, 44) and not body["validateOnly"]:
                assert all(row["resourceType"] != 4 for row in body["resources"] or ())
            if step["api"] == 64:
                assert not 0 <= body["brokerId"] <= 5


# ---- what is compared, with mocks for both sides -------------------------------------------------


@asynccontextmanager
async def _mocks(first: str, second: str) -> AsyncIterator[Arena]:
    async with search_mock(RELEASES[first]) as left, search_mock(RELEASES[second]) as right:
        addresses = []
        for mock in (left, right):
            host, port = mock.addresses[1].rsplit(":", 1)
            addresses.append((host, int(port)))
            await warm_up(addresses[-1], mock.served)
        yield Arena(addresses[0], addresses[1], 1)


def _step(api: int, version: int, **values: Any) -> dict[str, Any]:
    return {"api": api, "version": version, "body": {**body_of(api, version), **values}}


@pytest.mark.slow
async def test_two_mocks_of_a_release_agree() -> None:
    chosen = [*requests("agree", 0, 12, served()), *programs("agree", 0, 12, served())]
    async with _mocks(RELEASE, RELEASE) as arena:
        played = await play_all(arena, chosen)
    assert [(program.name, each.found) for program, each in played if each.found] == []
    assert sum(each.fields for _, each in played) > 20 * len(chosen)


@pytest.mark.slow
async def test_a_difference_is_named_by_its_field_and_made_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An empty group ends with its last offset up to 3.9."""
    monkeypatch.setattr("tests.real.search.kinds.SECONDS", 600.0)
    monkeypatch.setattr("tests.real.search.play.SPREAD_SECONDS", 0.2)
    monkeypatch.setattr("tests.real.search.play.UNTIL_SECONDS", 1.0)
    commit = _step(8, 7)
    deletion = _step(47, 0)
    listing = _step(15, 5, groups=["$g"])
    noise = [_step(3, 9, topics=[]), _step(42, 2, groupsNames=["$none", "$other"])]
    creation = setup(("topic",), served("3.9.2"))
    program = Program("p", [*creation, noise[0], commit, noise[1], deletion, listing, noise[0]])
    async with _mocks("4.4.0", "3.9.2") as arena:
        played = await arena.play(program)
        assert played.found is not None
        signature = signature_of(program, played.found)
        smallest, found = await minimise(arena, program, played.found)
    assert signature == Signature("DESCRIBE_GROUPS", "groups[].groupState", "Empty", "Dead")
    assert signature_of(smallest, found) == signature
    # A topic is waited for as long as it is created.
    assert [step["api"] for step in smallest.steps] == [19, 3, 0, 2, 8, 47, 15]


def test_only_what_a_decision_names_is_left_out() -> None:
    described = _step(32, 3)
    documentation = ("results[0].configs[retention.ms].documentation", "a text", None)
    value = ("results[0].configs[retention.ms].value", "1", "2")
    assert undecided(described, [documentation, value]) == [value]
    resource = body_of(33, 2)["resources"][0]
    repeated, once = _step(33, 2, resources=[resource, resource]), _step(33, 2)
    silent, closed = ("", SILENT, "answers"), ("", CLOSED, "answers")
    assert undecided(repeated, [silent]) == undecided(_step(24, 4, transactions=[]), [silent]) == []
    assert undecided(repeated, [closed]) == [closed]
    assert undecided(once, [silent]) == undecided(_step(24, 4), [silent]) == [silent]
    newest = _step(2, 9)
    newest["body"]["topics"][0]["partitions"][0]["timestamp"] = -3
    found = ("topics[0].partitions[0].timestamp", 5, -1)
    assert undecided(newest, [found], sent={21}) == []
    assert undecided(newest, [found]) == undecided(_step(2, 9), [found], sent={21}) == [found]


@pytest.mark.parametrize(
    ("operation", "value", "deletes"), [(0, "1", False), (0, None, True), (1, None, True)]
)
def test_the_preview_of_kraft_cannot_store_that_a_config_is_deleted(
    operation: int, value: str | None, deletes: bool
) -> None:
    config = {"name": "retention.ms", "configOperation": operation, "value": value}
    step = _step(44, 0, resources=[{"resourceType": 2, "resourceName": "a", "configs": [config]}])
    assert harms(step, "2.8.2") == deletes
    topic = {"name": "a", "configs": [{"name": "retention.ms", "value": value}], "assignments": []}
    assert harms(_step(19, 4, topics=[topic]), "2.8.2") == (value is None)
    assert not harms(step, "2.8.2-zk")


def test_kafka_never_answers_markers_of_which_only_the_last_writes_nothing() -> None:
    silent = ("", SILENT, "answers")

    def markers(*names: str) -> dict[str, Any]:
        rows = [{"topics": [{"name": name, "partitionIndexes": [0]}]} for name in names]
        return _step(27, 1, markers=rows)

    assert undecided(markers("$t", "no.such"), [silent]) == []
    for step in (markers("no.such", "$t"), markers("no.such")):
        assert undecided(step, [silent]) == [silent]


def test_a_program_ends_with_null_records() -> None:
    produced = _step(0, 7)
    assert not ends(produced)
    produced["body"]["topicData"][0]["partitionData"][0]["records"] = None
    assert ends(produced)
    assert not ends(_step(1, 4))


class _Closing(Arena):
    """An arena in which every request with a null group closes one side."""

    def __init__(self) -> None:
        super().__init__(("", 0), ("", 0), 1)

    async def play(self, program: Program, patience: float = 0) -> Played:
        for place, step in enumerate(program.steps):
            if step["body"].get("groupId", "") is None:
                return Played(found=Found(place, (("", "closes", "answers"),)))
        return Played()


async def test_values_that_do_not_matter_become_those_of_a_valid_request() -> None:
    steps: Sequence[Any] = [
        _step(18, 0), _step(12, 0, groupId=None, generationId=99, memberId="odd"), _step(18, 0),
    ]  # fmt: skip
    program = Program("p", steps)
    arena = _Closing()
    played = await arena.play(program)
    assert played.found is not None
    smallest, _ = await minimise(arena, program, played.found)
    assert smallest.steps == [_step(12, 0, groupId=None)]


def test_kinds_are_stored_a_line_each(tmp_path: Path) -> None:
    signature = Signature("HEARTBEAT", "errorCode", "25", "16")
    program = Program(str(signature), [_step(12, 3, groupId="é")])
    path = tmp_path / "kinds" / "4.4.0.jsonl"
    assert load(path) == []
    save(path, [Kind(signature, program, {3, 1})])
    assert load(path) == [Kind(signature, program, {1, 3})]
    assert len(path.read_text("utf-8").splitlines()) == 1


def test_a_result_replaces_an_earlier_one_of_its_release(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    first, other, later = (
        Result(release, seed, {"data": Counts(2, 20, 200, kinds), "topics": Counts(1, 10, 90, 0)})
        for release, seed, kinds in (("4.4.0", "a", 3), ("2.4.1", "a", 1), ("4.4.0", "b", 0))
    )
    for each in (first, other, later):
        store(path, each)
    assert results(path) == [other, later]
    assert later.total == Counts(3, 30, 290, 0)


@pytest.mark.parametrize("release", RELEASES)
def test_stored_kinds_and_sessions_can_be_sent(release: str) -> None:
    side = Side(("", 0), "s000x0001")
    for path in (kinds_file(release), sessions_file(release)):
        for kind in load(path):
            for step in kind.program.steps:
                assert "hang up" in step or "pause" in step or side.frame(step, 1)


# ---- what has been mended ------------------------------------------------------------------------

WAITS_SECONDS: Final = 1.0
"""A request that another one of the program answers."""
PATIENCE: Final = 60.0


async def _answered(side: Side, steps: Sequence[Any]) -> Any:
    """Play a program on one side; return the answer to its last step, as it is compared."""
    *before, last = steps
    for step in before:
        if "hang up" in step:
            side.leave(step.get("on", "main"))
        elif "pause" in step:
            await asyncio.sleep(step["pause"])
        else:
            task = await side.send(step)
            done, _ = await asyncio.wait([task], timeout=WAITS_SECONDS)
            if done:
                side.keep(step, await task)
            else:
                side.set_aside(step.get("on", "main"))
    answer = await asyncio.wait_for(await side.send(last), PATIENCE)
    side.keep(last, answer)
    return side.normal(last, answer)


def _values(answer: Any, path: str) -> list[str]:
    """The values at the path of a signature, as signatures have them."""
    if not isinstance(answer, dict):
        return [answer]
    if not path:
        return ["answers"]
    found = [value for name, value in leaves(answer) if without_rows(name) == path]
    return list(map(shown, found)) or ["<absent>"]


@pytest.mark.parametrize("release", [name for name in RELEASES if sessions_file(name).exists()])
async def test_mended_kinds_have_the_value_that_kafka_had(release: str) -> None:
    """The signature of a session says what Kafka answered. A row that Kafka did not have is left to
    the comparison with Kafka."""
    wrong = []
    async with search_mock(RELEASES[release]) as mock:
        host, port = mock.addresses[1].rsplit(":", 1)
        await warm_up((host, int(port)), mock.served)
        for number, kind in enumerate(load(sessions_file(release))):
            side = Side((host, int(port)), f"s001x{number:04}")
            try:
                answer = await _answered(side, kind.program.steps)
            finally:
                side.close()
            values = _values(answer, kind.signature.path)
            if kind.signature.kafka not in (*values, "<absent>"):
                wrong.append((str(kind.signature), values))
    assert not wrong


# ---- beside Kafka --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.java
async def test_the_mock_answers_the_requests_of_this_seed_as_kafka_does() -> None:
    """A difference counts if it comes back: a program is played again, alone, on the same brokers.
    Programs that once showed a difference are played as well, and must not."""
    require("java", "maven")
    listed = {each.signature for each in load(kinds_file(RELEASE))}
    async with pair(RELEASES[RELEASE], 1) as found:
        seed = str(seeds.seed())
        chosen = [
            *requests(seed, 0, REQUESTS, found.served),
            *programs(seed, 0, PROGRAMS, found.served),
            *(each.program for each in load(sessions_file(RELEASE))),
        ]
        unlisted = []
        fields = 0
        for program, played in await play_all(found.arena, chosen):
            fields += played.fields
            if played.found is None or signature_of(program, played.found) in listed:
                continue
            again = (await found.arena.play(program)).found
            if again is not None and signature_of(program, again) not in listed:
                shown = Program(program.name, program.steps[: again.step + 1])
                unlisted.append(f"{signature_of(program, again)}\n{shown.to_json()}")
        found.kafka.check_running()
    assert not unlisted, "\n".join([f"seed {seed}", *unlisted])
    assert not found.differing
    assert fields > 20 * len(chosen)
