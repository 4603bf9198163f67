"""Hold drafts against Kafka's own generator: which schemas it takes, and what bytes its classes
make of random values.

For each message and version, values drawn by a seed go five ways: our bytes through Java's decoder
and encoder, our JSON through Java to bytes, Java's JSON through ours to bytes, JSON of another
version to bytes by both, and damaged bytes, which we must refuse wherever Java refuses them.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from kproto import reference
from kproto.codec.classes import make_message_class
from kproto.errors import DecodeError, JsonError, KprotoError, SchemaError
from kproto.oracle.generator import generated, refusals
from kproto.oracle.oracle import Answer, Op, Oracle, Question, Refusal, recoded
from kproto.reference.random_trees import random_tree
from kproto.schema.check import check_file
from kproto.schema.jsontext import read_json
from kproto.schema.load import load_message, read_schema_text, schema_files
from kproto.schema.model import MessageSchema

__all__ = ["Difference", "DraftComparison", "compare_drafts", "compare_verdicts"]

_EXTENSIONS: Final = ("aliases", "structAliases")
_SUFFIXED: Final = ("request", "response", "header")


class Difference(NamedTuple):
    """``kind`` is ``refused by Kafka``, ``refused here``, ``not Java`` (what Kafka's generator
    makes does not compile), ``bytes``, ``JSON`` or ``damaged``. ``version`` is None for a whole
    schema."""

    file: str
    version: int | None
    kind: str
    text: str

    def __str__(self) -> str:
        at = "" if self.version is None else f" version {self.version}"
        return f"{self.file}{at}: {self.kind}: {self.text}"


class DraftComparison(NamedTuple):
    """``messages`` were compared, at ``versions`` versions with ``values`` values in all."""

    messages: int
    versions: int
    values: int
    differences: list[Difference]


class _Draft(NamedTuple):
    file: str
    cls: Any
    schema: MessageSchema
    java: str


class _Case(NamedTuple):
    """A value in the shapes in which Java is asked about it. ``elsewhere`` is JSON of another
    version, if there is one."""

    tree: dict[str, Any]
    data: bytes
    value: Any
    damaged: bytes
    elsewhere: str


def compare_drafts(
    folder: Path, *, seed: int, values: int, lenient: bool = False
) -> DraftComparison:
    """Compare every ``*.json`` directly in ``folder``, with ``values`` values a version.

    Java gets the schemas without our extensions (``about`` of a message, aliases). A schema counts
    as refused here if ``kproto schema check`` finds an error. Raises SchemaError
    for a folder that is not one of schemas, AbsentError without Java or Maven.
    """
    differences: list[Difference] = []
    versions = count = 0
    with _without_extensions(folder) as plain, generated(plain) as (oracle, refused, not_java):
        found, taken = _verdicts(folder, refused, not_java, lenient=lenient)
        differences += found
        drafts = [_draft(folder / name, lenient=lenient) for name in taken if name not in not_java]
        for draft in drafts:
            for version in draft.schema.valid_versions:
                rng = random.Random(f"{seed} {draft.schema.name} {version}")
                cases = [_case(draft, version, rng, number) for number in range(values)]
                versions += 1
                count += len(cases)
                differences += _differences(oracle, draft, version, cases)
    return DraftComparison(len(drafts), versions, count, differences)


def compare_verdicts(folder: Path, *, lenient: bool = False) -> list[Difference]:
    """Compare only which schemas Kafka's generator refuses with those that ``kproto schema check``
    does. Raises as ``compare_drafts``."""
    with _without_extensions(folder) as plain:
        refused = refusals(plain)
    found, _ = _verdicts(folder, refused, {}, lenient=lenient)
    return found


@contextmanager
def _without_extensions(folder: Path) -> Iterator[Path]:
    """Copies of the schemas without what only ours may contain."""
    with tempfile.TemporaryDirectory(prefix="kproto-schemas-") as scratch:
        for file in schema_files(folder):
            text = read_schema_text(file)
            try:
                node = read_json(text, str(file))
            except SchemaError:
                pass  # Kafka's generator is to judge it as it is
            else:
                if isinstance(node, dict):
                    node.pop("about", None)
                text = json.dumps(_stripped(node))
            (Path(scratch) / file.name).write_text(text, "utf-8")
        yield Path(scratch)


def _stripped(node: Any) -> Any:
    if isinstance(node, list):
        return [_stripped(item) for item in node]
    if isinstance(node, dict):
        return {key: _stripped(value) for key, value in node.items() if key not in _EXTENSIONS}
    return node


def _verdicts(
    folder: Path, refused: dict[str, str], not_java: dict[str, str], *, lenient: bool
) -> tuple[list[Difference], list[str]]:
    """Return the differences, and the names of the files that neither side refuses. What the check
    warns of does not count."""
    found: list[Difference] = []
    taken: list[str] = []
    for file in schema_files(folder):
        findings = check_file(file, lenient=lenient)
        errors = [str(item) for item in findings if item.severity == "error"]
        warned = {item.rule for item in findings}
        name = file.name
        if name in refused:
            if not errors and "listeners" not in warned:
                found.append(Difference(name, None, "refused by Kafka", refused[name]))
        elif errors:
            found.append(Difference(name, None, "refused here", errors[0]))
        elif name not in not_java:
            taken.append(name)
        elif "not-java" not in warned:
            found.append(Difference(name, None, "not Java", not_java[name]))
    return found, taken


def _draft(file: Path, *, lenient: bool) -> _Draft:
    schema = load_message(file, lenient=lenient)
    suffix = "Data" if schema.type in _SUFFIXED else ""
    return _Draft(file.name, make_message_class(schema), schema, schema.name + suffix)


def _case(draft: _Draft, version: int, rng: random.Random, number: int) -> _Case:
    tree = random_tree(draft.schema, version, rng, unknown_tags=number % 2 == 0, size=60)
    data = reference.encode(draft.schema, version, tree)
    damaged = bytearray(data)
    for _ in range(rng.randrange(1, 4) if data else 0):
        damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
    cut = rng.randrange(len(data) + 1) if rng.random() < 0.3 else len(data)
    other = rng.choice(list(draft.schema.valid_versions))
    stranger = random_tree(draft.schema, other, rng, unknown_tags=False, size=20)
    written = reference.encode(draft.schema, other, stranger)
    return _Case(
        tree,
        data,
        draft.cls.decode(data, version),
        bytes(damaged[:cut]),
        draft.cls.decode(written, other).to_json(other),
    )


def _differences(
    oracle: Oracle, draft: _Draft, version: int, cases: list[_Case]
) -> Iterator[Difference]:
    questions: list[Question] = []
    for case in cases:
        for op, data in (
            (Op.RECODE, case.data),
            (Op.ENCODE, case.value.to_json(version).encode()),
            (Op.TO_JSON, case.data),
            (Op.RECODE, case.damaged),
            (Op.ENCODE, case.elsewhere.encode()),
        ):
            questions.append(Question(op, draft.java, version, data))
    answers = iter(oracle.ask(questions))
    for case in cases:
        yield from (
            Difference(draft.file, version, kind, text)
            for kind, text in _compared(draft, version, case, [next(answers) for _ in range(5)])
        )


def _compared(
    draft: _Draft, version: int, case: _Case, answers: list[Answer]
) -> Iterator[tuple[str, str]]:
    again, from_json, to_json, damaged, elsewhere = answers
    data = case.data
    if (mine := case.value.encode(version)) != data:
        yield "bytes", f"the engine writes {mine.hex()}, the reference {data.hex()}"
    if isinstance(again, Refusal):
        yield "bytes", f"Java refuses {data.hex()}: {again.text}"
    elif recoded(again) != (len(data), data):
        yield "bytes", f"{data.hex()} is {recoded(again)[1].hex()} after Java"
    # Unknown tags have no JSON, and Java's has no records.
    if not _has_tags(case.tree):
        if from_json != data:
            yield "JSON", f"Java makes {_shown(from_json)} of {case.value.to_json(version)}"
        if not _has_records(draft.schema) and (
            problem := _read_back(draft, version, to_json, data)
        ):
            yield "JSON", problem
    yield from _of_damaged(draft, version, case.damaged, damaged)
    yield from _of_another_version(draft, version, case.elsewhere, elsewhere)


def _read_back(draft: _Draft, version: int, java: Answer, data: bytes) -> str | None:
    if isinstance(java, Refusal):
        return f"Java refuses {data.hex()}: {java.text}"
    try:
        mine = draft.cls.from_json(java, version).encode(version)
    except KprotoError as error:
        return f"{java.decode()}: {error}"
    return None if mine == data else f"{java.decode()} becomes {mine.hex()}, not {data.hex()}"


def _of_damaged(
    draft: _Draft, version: int, data: bytes, java: Answer
) -> Iterator[tuple[str, str]]:
    """Compare damaged bytes: a body that Java refuses must be refused here. More is refused here:
    bytes left over, text that is not UTF-8, and the other cases in ``docs/reference/codec.md``."""
    try:
        mine = draft.cls.decode(data, version).encode(version)
    except DecodeError:
        return
    if isinstance(java, Refusal):
        yield "damaged", f"{data.hex()} is refused by Java only: {java.text}"
    elif recoded(java) != (len(data), mine):
        yield "damaged", f"{data.hex()} becomes {mine.hex()}, in Java {recoded(java)[1].hex()}"


def _of_another_version(
    draft: _Draft, version: int, text: str, java: Answer
) -> Iterator[tuple[str, str]]:
    try:
        mine: bytes | str = draft.cls.from_json(text, version).encode(version)
    except JsonError as error:
        if "is null, but not nullable" in str(error):
            return  # Java looks at this only where it writes the field
        mine = str(error)
    except KprotoError as error:
        mine = str(error)
    if isinstance(java, Refusal) != isinstance(mine, str) or (
        not isinstance(java, Refusal) and java != mine
    ):
        here = mine if isinstance(mine, str) else mine.hex()
        yield "JSON", f"{text} is {here}, in Java {_shown(java)}"


def _shown(answer: Answer) -> str:
    return answer.text if isinstance(answer, Refusal) else answer.hex()


def _has_tags(tree: Any) -> bool:
    if isinstance(tree, dict):
        return bool(tree.get("unknown_tags")) or any(map(_has_tags, tree.values()))
    return isinstance(tree, list) and any(map(_has_tags, tree))


def _has_records(schema: MessageSchema) -> bool:
    return any(field.type.kind == "records" for struct in schema.structs for field in struct.fields)
