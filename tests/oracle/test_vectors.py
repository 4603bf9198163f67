"""Every vector of ``kspec vectors`` through Kafka's own classes, of both releases: valid ones are
taken, mean what they say and are written as their canonical bytes; acceptable ones are taken;
invalid ones are refused."""

from collections.abc import Mapping

import msgspec
import pytest

import kproto
from kproto.oracle.oracle import RELEASES, Answer, Op, Oracle, Question, Refusal, recoded
from kproto.oracle.pairs import Counterpart, counterparts, exceptions, message_names, schemas
from kspec.vectors import Vector, vectors
from kspec.vectors.values import PATTERNS
from tests.oracle.test_oracle import renamed

pytestmark = [pytest.mark.java, pytest.mark.oracle]

PATTERNS_OF_JSON = {pattern.name for pattern in PATTERNS} - {"unknown-tags"}


@pytest.mark.parametrize("name", message_names())
def test_vectors_of_a_message(name: str, oracles: Mapping[str, Oracle]):
    ours = list(vectors(kproto.dialect("kafka"), [name]))
    assert ours
    for release, oracle in oracles.items():
        theirs = counterparts(oracle, schemas()[name])
        asked = [each for each in ours if each.version in theirs and not _unlike(release, each)]
        questions = [_question(each, theirs[each.version]) for each in asked]
        for vector, answer in zip(asked, oracle.ask(questions), strict=True):
            problem = _problem(vector, answer, release)
            assert problem is None, (release, vector.name, problem, vector.data.hex())


@pytest.mark.parametrize("name", message_names())
def test_json_of_a_message(name: str, oracles: Mapping[str, Oracle]):
    """The JSON of a valid vector, which has no unknown tags, is written by Java as its bytes."""
    for release, oracle in oracles.items():
        theirs = counterparts(oracle, schemas()[name])
        names = exceptions()[release]["renamed"].get(name, {})
        asked = [
            each
            for each in vectors(kproto.dialect("kafka"), [name])
            if each.kind in PATTERNS_OF_JSON
            and each.version in theirs
            and not _unlike(release, each, "bytes_only")
        ]
        questions = [
            Question(
                Op.ENCODE, *theirs[each.version], msgspec.json.encode(renamed(each.json, names))
            )
            for each in asked
        ]
        for vector, answer in zip(asked, oracle.ask(questions), strict=True):
            assert answer == vector.body, (release, vector.name)


def _unlike(release: str, vector: Vector, *kinds: str) -> bool:
    """Whether a release's class is another than ours at that version: a listed exception."""
    return any(
        str(vector.version) in exceptions()[release][kind].get(vector.message, {})
        for kind in ("not_compared", *kinds)
    )


def _question(vector: Vector, pair: Counterpart) -> Question:
    # Java reads tags that come twice, or in any order, but does not write them.
    op = Op.TO_JSON if vector.verdict == "acceptable" else Op.RECODE
    return Question(op, *pair, vector.body)


def _problem(vector: Vector, answer: Answer, release: str) -> str | None:
    """What is wrong with Java's answer, if anything is."""
    refused = isinstance(answer, Refusal)
    if vector.verdict == "invalid":
        return None if refused else "Java takes it"
    if refused:
        # The older release may not know the tag, and then believes the size.
        known = vector.kind != "known-tag-size" or release == RELEASES[-1]
        return f"Java refuses it: {answer!r}" if known else None
    if vector.verdict == "acceptable":
        return None
    whole = vector.data if vector.canonical is None else vector.canonical
    if recoded(answer) != (len(vector.body), whole[vector.body_at :]):
        return f"Java reads and writes {recoded(answer)}"
    return None
