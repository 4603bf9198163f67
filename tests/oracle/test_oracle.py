"""Our codec against Kafka's own classes, in three directions, for every message and version.

1. our JSON -> Java -> bytes: our bytes (records included; unknown tags are not in the JSON);
2. our bytes -> Java's decode and encode -> the same bytes (records and unknown tags included);
3. our bytes -> Java's JSON: our JSON, and from it our value again. Java writes every field of type
   records as the empty string there, so those are left empty on our side, too.

``KPROTO_ORACLE_VALUES`` is how many random values each pair gets (50), and
``KPROTO_ORACLE_REFERENCE`` how many of them also go through ``kproto.reference`` (5, or ``all``).
"""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

import msgspec
import pytest

import kproto.messages
from kproto import reference
from kproto.errors import KprotoError
from kproto.oracle.oracle import Answer, Op, Oracle, Question, recoded
from kproto.oracle.pairs import counterparts, exceptions, java_only, message_names, schemas
from kproto.reference.random_trees import random_tree
from kproto.schema.model import FieldType, MessageSchema, Struct
from tests.oracle.tally import Tally
from tests.support.instances import to_instance
from tests.support.seeds import generator

pytestmark = [pytest.mark.java, pytest.mark.oracle]

VALUES = int(os.environ.get("KPROTO_ORACLE_VALUES", "50"))
_REFERENCE = os.environ.get("KPROTO_ORACLE_REFERENCE", "5")
REFERENCE_VALUES = VALUES if _REFERENCE == "all" else int(_REFERENCE)
ENOUGH_VALUES = 50
"""With fewer for each pair, chance may leave a field at its default throughout."""
LARGE_EVERY = 10
"""Every tenth value may be some hundred values large; the rest stay at a few dozen."""


class Sample(NamedTuple):
    """A value in every shape that Java is asked about."""

    value: Any
    encoded: bytes
    json: Any
    plain: bytes
    """Encoded without unknown tags, which JSON does not carry."""
    shown: Any
    """The value as Java's JSON has it: no unknown tags, records empty."""
    shown_json: Any


def sample(cls: Any, schema: MessageSchema, version: int, tree: dict[str, Any]) -> Sample:
    value = to_instance(cls, tree, schema)
    bare = to_instance(cls, _mapped(schema.root, tree, keep_records=True), schema)
    shown = to_instance(cls, _mapped(schema.root, tree, keep_records=False), schema)
    return Sample(
        value=value,
        encoded=value.encode(version),
        json=msgspec.json.decode(value.to_json(version)),
        plain=bare.encode(version),
        shown=shown,
        shown_json=msgspec.json.decode(shown.to_json(version)),
    )


def _mapped(struct: Struct, tree: dict[str, Any], *, keep_records: bool) -> dict[str, Any]:
    """The tree without unknown tags, and with every records field empty if they are not kept."""

    def of(type_: FieldType, value: Any) -> Any:
        if value is None:
            return None
        if type_.struct is not None:
            return _mapped(type_.struct, value, keep_records=keep_records)
        if type_.element is not None and type_.element.struct is not None:
            return [of(type_.element, item) for item in value]
        return b"" if type_.kind == "records" and not keep_records else value

    return {
        field.python_name: of(field.type, tree[field.python_name]) for field in struct.fields
    } | {"unknown_tags": {}}


def renamed(json: Any, names: Mapping[str, str]) -> Any:
    """The JSON with those properties renamed, at every level."""
    if isinstance(json, dict):
        return {names.get(key, key): renamed(value, names) for key, value in json.items()}
    if isinstance(json, list):
        return [renamed(item, names) for item in json]
    return json


class Comparison:
    """A batch under way: the samples of a pair, and the release that answers for them."""

    def __init__(
        self,
        oracle: Oracle,
        name: str,
        version: int,
        samples: list[Sample],
        *,
        with_json: bool,
        names: Mapping[str, str],
    ) -> None:
        self.release, self.version, self.samples = oracle.release, version, samples
        self.with_json = with_json
        self.names = names
        pair = counterparts(oracle, schemas()[name])[version]
        self.answers: Future[list[Answer]] = oracle.submit(
            Question(op, pair.name, pair.version, data)
            for item in samples
            for op, data in self._questions(item)
        )

    def _questions(self, item: Sample) -> Iterator[tuple[Op, bytes]]:
        yield Op.RECODE, item.encoded
        if self.with_json:
            yield Op.ENCODE, msgspec.json.encode(renamed(item.json, self.names))
            yield Op.TO_JSON, item.encoded

    def check(self, cls: Any, tally: Tally) -> None:
        """Raises AssertionError, with the value, on the first answer that is not ours."""
        back = {theirs: ours for ours, theirs in self.names.items()}
        each = 3 if self.with_json else 1
        answers = self.answers.result()
        assert len(answers) == each * len(self.samples)
        for index, item in enumerate(self.samples):
            recode, *rest = answers[index * each : (index + 1) * each]
            where = f"{self.release}, {item.value!r}"
            assert recoded(recode) == (len(item.encoded), item.encoded), where
            tally.comparisons["bytes through Java"] += 1
            if not rest:
                continue
            from_our_json, java_json = rest
            assert from_our_json == item.plain, where
            tally.comparisons["our JSON to Java's bytes"] += 1
            assert isinstance(java_json, bytes), (java_json, where)
            named_as_ours = renamed(msgspec.json.decode(java_json), back)
            assert named_as_ours == item.shown_json, where
            text = msgspec.json.encode(named_as_ours).decode() if back else java_json.decode()
            assert cls.from_json(text, self.version) == item.shown, where
            tally.comparisons["Java's JSON to ours"] += 1


@pytest.mark.parametrize("name", message_names())
@pytest.mark.requirement("C-03")
def test_message(name: str, oracles: Mapping[str, Oracle], oracle_tally: Tally):
    schema, tally = schemas()[name], oracle_tally
    cls = getattr(kproto.messages, name)
    rng = generator(f"oracle {name}")
    running: list[Comparison] = []
    theirs = {release: counterparts(oracle, schema) for release, oracle in oracles.items()}
    for version in schema.valid_versions:
        samples = []
        for index in range(VALUES):
            size = 300 if index % LARGE_EVERY == 0 else 40
            tree = random_tree(schema, version, rng, size=size)
            item = sample(cls, schema, version, tree)
            assert cls.decode(item.encoded, version) == item.value
            if index < REFERENCE_VALUES:
                assert reference.encode(schema, version, tree) == item.encoded
                assert reference.decode(schema, version, item.encoded) == tree
                tally.by_reference += 1
            tally.coverage.add(schema, version, tree)
            samples.append(item)
        tally.values += len(samples)
        for release, oracle in oracles.items():
            if version in theirs[release] and not _listed(release, "not_compared", name, version):
                running.append(
                    Comparison(
                        oracle,
                        name,
                        version,
                        samples,
                        with_json=not _listed(release, "bytes_only", name, version),
                        names=exceptions()[release]["renamed"].get(name, {}),
                    )
                )
    for comparison in running:
        comparison.check(cls, tally)
        tally.pairs.add((name, comparison.version))
        tally.release_pairs[comparison.release] += 1
    tally.messages.add(name)


def _listed(release: str, kind: str, name: str, version: int) -> bool:
    return str(version) in exceptions()[release][kind].get(name, {})


def test_no_pair_of_java_is_missing(oracles: Mapping[str, Oracle]):
    """Every pair of either release is one of ours."""
    for oracle in oracles.values():
        assert java_only(oracle) == []


def test_no_pair_of_ours_is_missing(oracles: Mapping[str, Oracle]):
    """Every pair of ours is compared, in all three directions, with at least one release."""
    for schema in schemas().values():
        theirs = {release: counterparts(oracle, schema) for release, oracle in oracles.items()}
        for version in schema.valid_versions:
            assert any(
                version in theirs[release]
                and not _listed(release, "not_compared", schema.name, version)
                and not _listed(release, "bytes_only", schema.name, version)
                for release in oracles
            ), (schema.name, version)


def test_no_exception_is_stale(oracles: Mapping[str, Oracle]):
    """What is listed as differing does differ for some random value."""
    for release, kinds in exceptions().items():
        for kind in ("not_compared", "bytes_only"):
            for name, versions in kinds[kind].items():
                for version in map(int, versions):
                    with_json = kind == "bytes_only"
                    stale = _agrees(oracles[release], name, version, with_json, names={})
                    assert not stale, (release, kind, name, version)
        for name, names in kinds["renamed"].items():
            versions_here = counterparts(oracles[release], schemas()[name])
            for left_out in names:
                fewer = {ours: theirs for ours, theirs in names.items() if ours != left_out}
                assert not all(
                    _agrees(oracles[release], name, version, True, names=fewer)
                    for version in versions_here
                ), (release, name, left_out)


def _agrees(
    oracle: Oracle, name: str, version: int, with_json: bool, names: Mapping[str, str]
) -> bool:
    schema, cls = schemas()[name], getattr(kproto.messages, name)
    rng = generator(f"exception {name}")
    samples = [
        sample(cls, schema, version, random_tree(schema, version, rng, size=40)) for _ in range(20)
    ]
    compared = Comparison(oracle, name, version, samples, with_json=with_json, names=names)
    try:
        compared.check(cls, Tally())
    except (AssertionError, KprotoError):
        return False
    return True


def test_every_field_was_compared(oracle_tally: Tally):
    """Runs last: what the tests above drew has set every field of every pair."""
    missed = set(message_names()) - oracle_tally.messages
    if missed:
        pytest.skip(f"not every message was compared in this run: {len(missed)} were left out")
    if VALUES >= ENOUGH_VALUES:
        assert oracle_tally.coverage.missing == []
    assert oracle_tally.coverage.filled_share >= 0.5
    assert oracle_tally.pairs == {
        (name, version) for name, schema in schemas().items() for version in schema.valid_versions
    }
