"""Values carried to another version of their message: what is written, and what is refused.

A value is decoded at one version and encoded at another, by Java and by us. Where the other version
lacks a field, Java leaves it out if it is ignorable or at its default, and refuses otherwise; both
have to agree on which, on the bytes, and on the text of the refusal. (Of several reasons to refuse
one value, which is named is nobody's contract: Java's own differs between releases.)
"""

import json
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

import kproto.messages
from kproto.errors import EncodeError, UnsupportedVersionError
from kproto.oracle.oracle import Answer, Op, Oracle, Question, Refusal
from kproto.oracle.pairs import counterparts, exceptions, message_names, schemas
from kproto.reference import default_value
from kproto.reference.random_trees import random_tree
from kproto.schema.load import schemas_directory
from kproto.schema.model import Field, FieldType, MessageSchema, Struct
from tests.oracle.tally import Tally
from tests.support.instances import to_instance
from tests.support.seeds import generator

pytestmark = [pytest.mark.java, pytest.mark.oracle]

VALUES = 6
"""For each step between versions, in turn: as drawn; made to fit the version it goes to; the same
but for one field."""


class Case(NamedTuple):
    before: int
    after: int
    value: Any
    data: bytes
    ours: Answer
    exact: bool
    """Whether at most one thing is wrong with it, so that the texts must agree."""


def _steps(schema: MessageSchema) -> Iterator[tuple[int, int]]:
    """Each version to its neighbours, and between the ends."""
    versions = list(schema.valid_versions)
    for before, after in pairwise(versions):
        yield before, after
        yield after, before
    if len(versions) > 2:
        yield versions[0], versions[-1]
        yield versions[-1], versions[0]


def _fitted(
    schema: MessageSchema, node: Struct, tree: dict[str, Any], to: int, offence: Field | None
) -> dict[str, Any]:
    """The tree with what ``to`` lacks at its default, but for ignorable fields and one offence."""

    def of(type_: FieldType, value: Any) -> Any:
        if value is None:
            return None
        if type_.struct is not None:
            return _fitted(schema, type_.struct, value, to, offence)
        if type_.element is not None:
            return [of(type_.element, item) for item in value]
        return value

    fitted = {
        field.python_name: of(field.type, tree[field.python_name])
        if field.ignorable or to in field.versions or field is offence
        else default_value(field)
        for field in node.fields
    }
    tags = tree["unknown_tags"] if schema.is_flexible(to) else {}
    return fitted | {"unknown_tags": tags}


def _cases(name: str) -> Iterator[Case]:
    schema, cls = schemas()[name], getattr(kproto.messages, name)
    rng = generator(f"rewrite {name}")

    def made(before: int, after: int, tree: dict[str, Any], exact: bool) -> Case:
        value = to_instance(cls, tree, schema)
        return Case(before, after, value, value.encode(before), _ours(value, after), exact)

    for before, after in _steps(schema):
        lost = [
            field
            for node in schema.structs
            for field in node.fields
            if before in field.versions and after not in field.versions and not field.ignorable
        ]
        for index in range(VALUES):
            tree = random_tree(schema, before, rng, size=40)
            fitting = made(before, after, _fitted(schema, schema.root, tree, after, None), True)
            if index % 3 == 0:
                yield made(before, after, tree, exact=False)
            elif index % 3 == 1 or not lost:
                yield fitting
            else:
                tree = _fitted(schema, schema.root, tree, after, rng.choice(lost))
                yield made(before, after, tree, exact=isinstance(fitting.ours, bytes))


def _ours(value: Any, version: int) -> Answer:
    """What our encoder does, in Java's terms."""
    try:
        encoded: bytes = value.encode(version)
    except UnsupportedVersionError as error:
        return Refusal(f"UnsupportedVersionException: {error}")
    except EncodeError as error:
        is_null = error.problem.endswith("is null")
        return Refusal("NullPointerException" if is_null else str(error))
    return encoded


def _without_details(answer: Answer) -> Answer:
    """Java's NullPointerException names a variable of its own, or nothing."""
    if isinstance(answer, Refusal) and answer.text.startswith("NullPointerException"):
        return Refusal("NullPointerException")
    return answer


@cache
def _differing() -> frozenset[tuple[str, str]]:
    """(release, message) where the release has another default or another ``ignorable``."""
    path = schemas_directory() / "kafka" / "provenance" / "conflicts.json"
    values = json.loads(path.read_text())["values"]
    return frozenset((item["rejected"], name) for name in values for item in values[name])


@pytest.mark.parametrize(
    "name", [name for name in message_names() if len(schemas()[name].valid_versions) > 1]
)
@pytest.mark.requirement("C-04")
def test_another_version(name: str, oracles: Mapping[str, Oracle], oracle_tally: Tally):
    cases = list(_cases(name))
    for release, oracle in oracles.items():
        if (release, name) in _differing():
            continue
        theirs = counterparts(oracle, schemas()[name])
        listed = {
            int(version)
            for kind in ("not_compared", "bytes_only")
            for version in exceptions()[release][kind].get(name, {})
        }
        known = set(theirs) - listed
        here = [case for case in cases if {case.before, case.after} <= known]
        answers = oracle.ask(
            [
                Question(
                    Op.REWRITE,
                    theirs[case.before].name,
                    case.before,
                    struct.pack(">h", case.after) + case.data,
                )
                for case in here
            ]
        )
        for case, answer in zip(here, answers, strict=True):
            outcome = "refused" if isinstance(case.ours, Refusal) else "written"
            oracle_tally.rewrites[outcome] += 1
            if case.exact:
                assert _without_details(answer) == case.ours, (release, case)
            else:
                assert _same_outcome(answer, case.ours), (release, case, answer)


def _same_outcome(theirs: Answer, ours: Answer) -> bool:
    return theirs == ours or (isinstance(theirs, Refusal) and isinstance(ours, Refusal))


def test_both_outcomes_are_met(oracles: Mapping[str, Oracle]):
    """The values above are neither all writable nor all refused."""
    schema = schemas()["AlterPartitionReassignmentsRequest"]
    cls = kproto.messages.AlterPartitionReassignmentsRequest
    rng = generator("both outcomes")
    outcomes: Counter[str] = Counter()
    for _ in range(50):
        tree = random_tree(schema, 1, rng, size=40, unknown_tags=False)
        answer = _ours(to_instance(cls, tree, schema), 0)
        outcomes[answer.text if isinstance(answer, Refusal) else "written"] += 1
    refusal = (
        "UnsupportedVersionException: Attempted to write a non-default "
        "allowReplicationFactorChange at version 0"
    )
    assert set(outcomes) == {"written", refusal}
