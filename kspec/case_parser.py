"""Parse case files: YAML text in; a ``Case`` out, or a ``CaseError`` with the line and the place.

This module opens no file (``runner.files`` does) and runs nothing. ``judge`` gives a case its
meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import yaml

from kproto.errors import KprotoError
from kspec.access_rules import access_rule
from kspec.api_keys import api_key
from kspec.case_vocabulary import check_vocabulary
from kspec.error_kinds import is_kind
from kspec.errors import CaseError, KspecError
from kspec.model import (
    CALLS,
    FAULT_MARKS,
    LEVELS,
    MAX_TIMEOUT_MS,
    STAGE_STEPS,
    SUITE,
    Case,
    CaseFile,
    ClientCall,
    Expectation,
    Rule,
    Selector,
    Variant,
    without_mark,
)
from kspec.patterns import parse_range
from kspec.produced_records import produced_records
from kspec.steps import check_step
from mockbroker.faults import fault_of

__all__ = ["NAME", "parse_case", "step_name"]

NAME: Final = re.compile(r"(?P<group>[a-z0-9-]+)/(?P<number>\d{3})-(?P<slug>[a-z0-9-]+)\.yaml")
"""Pattern for the end of a case file's path."""

_PLACE: Final = re.compile(r"(?P<problem>.*?)(?: - at `\$?\.?(?P<place>.*)`)?", re.S)
_WORD: Final = re.compile(r"[\w.]+")
_PARTITION: Final = re.compile(r".+-\d+")
_PARAMETER: Final = re.compile(r"\$\{(\w+)\}")
_MOST_LEVELS: Final = 1000
"""Indicators that may begin a level: as many levels fit on a thread's stack."""
_SOURCE: Final = re.compile(
    r"KIP-\d+|protocol guide|RFC \d+|KAFKA-\d+|CVE-\d+-\d+|\w+ javadoc"
    r"|(?:consumer|producer) configs"
)


class _LocatedDocument:
    """A YAML document as plain values, with the line of each place in it."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.lines: dict[str, int] = {"": 1}
        try:
            node = _compose(text)
        except yaml.MarkedYAMLError as error:
            line = 1 if error.problem_mark is None else error.problem_mark.line + 1
            raise CaseError(f"{file}:{line}", "", f"not YAML: {error.problem}") from None
        except yaml.YAMLError as error:
            raise CaseError(f"{file}:1", "", f"not YAML: {error}") from None
        except RecursionError:
            raise CaseError(
                f"{file}:1", "", "nested too deeply: a case has only a few levels"
            ) from None
        try:
            self.value = None if node is None else self._plain(node, "")
        except RecursionError:
            raise CaseError(
                f"{file}:1", "", "nested too deeply: a case has only a few levels"
            ) from None

    def _plain(self, node: Any, place: str) -> Any:
        self.lines[place] = node.start_mark.line + 1
        if node.id == "mapping":
            found: dict[str, Any] = {}
            for key_node, value_node in node.value:
                if key_node.id != "scalar":
                    raise self.error(place, "keys must be strings")
                key = str(key_node.value)
                if key in found:
                    raise self.error(place, f"duplicate key {key}")
                inner = f"{place}.{key}" if place else key
                found[key] = self._plain(value_node, inner)
                self.lines[inner] = key_node.start_mark.line + 1
            return found
        if node.id == "sequence":
            return [self._plain(item, f"{place}[{n}]") for n, item in enumerate(node.value)]
        try:
            return _scalar(node)
        except (yaml.YAMLError, ValueError) as error:
            problem = getattr(error, "problem", None) or str(error)
            raise self.error(place, f"invalid value: {problem}") from None

    def error(self, place: str, problem: str) -> CaseError:
        """Return an error at the nearest place that is in the file, as a missing field has no
        line."""
        known = place
        while known not in self.lines:
            known = known[: max(known.rfind("."), known.rfind("["), 0)]
        return CaseError(f"{self.file}:{self.lines[known]}", place, problem)


def _compose(text: str) -> Any:
    """Return the document's node. libyaml takes a fifth of the time, but its errors have
    other texts and it recurses on the C stack: bad and deep texts go to PyYAML's own parser."""
    if yaml.__with_libyaml__ and sum(map(text.count, "[{-?:")) < _MOST_LEVELS:
        try:
            return yaml.compose(text, Loader=yaml.CSafeLoader)
        except yaml.YAMLError:
            pass
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _scalar(node: Any) -> Any:
    if node.tag == "tag:yaml.org,2002:str":  # all but a few, and a constructor takes its time
        return node.value
    return yaml.constructor.SafeConstructor().construct_object(node)


def parse_case(text: str, file: str) -> CaseFile:
    """Return the case of a file. The end of ``file``, its path, gives the id. Raises CaseError."""
    named = NAME.search(file)
    if named is None or not file.endswith(named.group(0)):
        raise CaseError(f"{file}:1", "", "a case file is named <group>/<three digits>-<slug>.yaml")
    marked = _LocatedDocument(text, file)
    if not isinstance(marked.value, dict):
        raise marked.error("", "a case must be a mapping")
    for word in ("id", "group"):
        if word in marked.value:
            raise marked.error(word, "comes from the file's path and cannot be set")
    document = {
        **marked.value,
        "id": f"{named['group']}/{named['number']}-{named['slug']}",
        "group": named["group"],
    }
    parameters = document.get("variants") or [{}]
    if not isinstance(parameters, list) or not all(isinstance(each, dict) for each in parameters):
        raise marked.error(
            "variants", "variants must be a list of mappings from parameter to value"
        )
    found = []
    for number, chosen in enumerate(parameters):
        where = f"variants[{number}]" if chosen else ""
        case = _convert(_fill(document, chosen, marked, where), marked)
        _check(case, marked)
        name = ", ".join(f"{key}={value}" for key, value in chosen.items())
        found.append(Variant(name=name, case=case))
    return CaseFile(id=found[0].case.id, group=named["group"], variants=found)


def _convert(document: Mapping[str, Any], marked: _LocatedDocument) -> Case:
    try:
        return msgspec.convert(document, Case)
    except msgspec.ValidationError as error:
        found = _PLACE.fullmatch(str(error))
        assert found is not None
        place = found["place"] or ""
        raise marked.error(place.replace("`", ""), found["problem"].replace("`", "")) from None


def _fill(
    document: Any, parameters: Mapping[str, Any], marked: _LocatedDocument, where: str
) -> Any:
    try:
        return _filled(document, parameters)
    except KeyError as missing:
        raise marked.error(where, f"unknown parameter {missing.args[0]!r}") from None


def _filled(value: Any, parameters: Mapping[str, Any]) -> Any:
    """Replace ``${name}`` by the parameter: by its value if it is the whole text, else by its
    text."""
    if isinstance(value, dict):
        return {
            key: item if key == "variants" else _filled(item, parameters)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_filled(item, parameters) for item in value]
    if isinstance(value, str):
        whole = _PARAMETER.fullmatch(value)
        if whole is not None:
            return parameters[whole[1]]
        return _PARAMETER.sub(lambda found: str(parameters[found[1]]), value)
    return value


# ---- checks that types cannot express ------------------------------------------------------------


def _check(case: Case, marked: _LocatedDocument) -> None:
    def refuse(place: str, problem: str) -> None:
        raise marked.error(place, problem)

    if not _SOURCE.search(case.source):
        refuse(
            "source",
            "must name a KIP, an issue (KAFKA-n), a CVE, an RFC, a CLASS javadoc, consumer or "
            "producer configs, or the protocol guide",
        )
    if not 1 <= case.since <= SUITE:
        refuse("since", f"must be a version of the suite, 1 to {SUITE}")
    if not 1 <= case.client.timeout_ms <= MAX_TIMEOUT_MS:
        refuse("client.timeout_ms", f"must be 1 to {MAX_TIMEOUT_MS}")
    for other in case.others:
        try:
            case.client_of(other)
        except msgspec.ValidationError as error:
            refuse(f"others.{other}", str(error).replace("`", ""))
    names = _check_steps(case, refuse)
    played = _words([case.cluster, case.client, case.others, case.faults, case.steps])
    if not any(getattr(case, level) for level in LEVELS):
        refuse("", "no expectation: give must, must_not, should, should_not or may")
    for level in ("applies", *LEVELS):
        for number, each in enumerate(getattr(case, level)):
            _check_expectation(each, f"{level}[{number}]", names, refuse)
            _check_topics(each, f"{level}[{number}]", played, refuse)
    check_vocabulary(case, refuse)


_KINDS_OF_STEP: Final = ("call", "together", "reconnect", *STAGE_STEPS)


def _check_steps(case: Case, refuse: Callable[[str, str], None]) -> set[str]:
    """Return the names of the calls. They must be unique because expectations refer to them."""
    names: set[str] = set()
    _check_faults(case.faults, "faults", refuse)
    _check_acls(case.cluster.acls, "cluster.acls", refuse)
    for number, step in enumerate(case.steps):
        place = f"steps[{number}]"
        _check_faults(step.faults or [], f"{place}.faults", refuse)
        _check_acls(step.acls, f"{place}.acls", refuse)
        if step.acls is not None and case.cluster.acls is None:
            refuse(f"{place}.acls", "needs cluster.acls, which may be an empty list")
        if step.telemetry is not None and case.cluster.telemetry is None:
            refuse(f"{place}.telemetry", "needs cluster.telemetry, which may be an empty mapping")
        if step.cluster is not None:
            _attempt(partial(check_step, step.cluster), f"{place}.cluster", refuse)
        given = [kind for kind in _KINDS_OF_STEP if getattr(step, kind) not in (None, False)]
        if len(given) != 1:
            refuse(
                place,
                f"a step has exactly one of {', '.join(_KINDS_OF_STEP)}; found: {given or 'none'}",
            )
        if step.together is not None and len(step.together) < 2:
            refuse(f"{place}.together", "needs at least two calls")
        for by in (step.by, *(each.by for each in step.calls)):
            if by is not None and by not in case.others:
                refuse(place, f"no client is named {by!r}; `others` has them")
        for each in step.calls:
            if each.call not in CALLS:
                refuse(f"{place}.call", f"{each.call!r} is not one of {', '.join(CALLS)}")
            if each.call in ("produce", "send"):
                _check_produced(each, place, refuse)
            name = step_name(each)
            if name in names:
                refuse(place, f"{name!r} is already the name of a step; choose another with `as`")
            names.add(name)
        if step.wait is not None:
            for kind, selector in _selectors(step.wait):
                _check_selector(selector, f"{place}.wait.{kind}", names, refuse)
    return names


def _check_produced(call: ClientCall, place: str, refuse: Callable[[str, str], None]) -> None:
    """Refuse records without distinct values, by which their outcomes are named."""
    try:
        values = [each.get("value") for each in produced_records(call.arguments)]
    except (KspecError, TypeError, AttributeError) as error:
        return refuse(f"{place}.with", str(error))
    if not values or len(set(values)) < len(values):
        refuse(f"{place}.with", "the values of the records must be there, and differ")
    if any(not each for each in call.arguments.get("values", {}).values()):
        refuse(f"{place}.with.values", "a partition without a value has no record")


def _check_faults(rules: list[Rule], place: str, refuse: Callable[[str, str], None]) -> None:
    for number, rule in enumerate(rules):
        for mark in FAULT_MARKS:
            if rule.get(mark, True) is not True:
                refuse(f"{place}[{number}].{mark}", "must be true, or left out")
        if all(mark in rule for mark in FAULT_MARKS):
            refuse(f"{place}[{number}]", f"has one of {' and '.join(FAULT_MARKS)}, not both")
        for word in ("steps_before", "steps_after"):
            if rule.get(word) == []:
                refuse(f"{place}[{number}].{word}", "is empty and does nothing")
        _attempt(partial(fault_of, without_mark(rule)), f"{place}[{number}]", refuse)


def _check_acls(rules: list[str] | None, place: str, refuse: Callable[[str, str], None]) -> None:
    for number, text in enumerate(rules or []):
        _attempt(partial(access_rule, text), f"{place}[{number}]", refuse)


def _attempt(work: Callable[[], object], place: str, refuse: Callable[[str, str], None]) -> None:
    try:
        work()
    except KprotoError as error:
        refuse(place, str(error))


def step_name(step: ClientCall) -> str:
    """Return the name that expectations use for a call: ``as``, or the name of the operation."""
    return step.name or step.call


_SUBJECTS: Final = (
    "requests", "responses", "events", "order", "any_of", "result", "state", "logs",
    "groups",
)  # fmt: skip
_ABOUT_ENTRIES: Final = ("count", "per", "each", "gaps_ms", "growing", "distinct", "same")
_ABOUT_RESULTS: Final = (
    "success", "error", "message", "value", "outcomes", "placed", "delivered",
)  # fmt: skip


def _check_expectation(
    each: Expectation, place: str, names: set[str], refuse: Callable[[str, str], None]
) -> None:
    given = [subject for subject in _SUBJECTS if getattr(each, subject) is not None]
    if len(given) != 1:
        refuse(place, f"needs exactly one of {', '.join(_SUBJECTS)}; found: {given or 'none'}")
    (subject,) = given
    entries = subject in ("requests", "responses", "events")
    for words, allowed in ((_ABOUT_ENTRIES, entries), (_ABOUT_RESULTS, subject == "result")):
        for word in words:
            if not allowed and getattr(each, word) not in (None, False):
                refuse(f"{place}.{word}", f"does not apply to {subject}")
    for word in ("count", "gaps_ms", "within_ms"):
        if getattr(each, word) is not None:
            _check_range(getattr(each, word), f"{place}.{word}", refuse)
    for kind, selector in _selectors(each):
        _check_selector(selector, f"{place}.{kind}", names, refuse)
    if each.same is not None and all(one.partition is None for _, one in _selectors(each)):
        refuse(f"{place}.same", "needs a selector with a partition, whose batches it compares")
    for word in ("order", "any_of", "outcomes", "delivered", "state", "logs", "groups", "same"):
        if getattr(each, word) in ([], {}):
            refuse(f"{place}.{word}", "is empty and checks nothing")
    for word in ("value", "delivered", "state", "logs", "groups"):
        if _has_no_alternative(getattr(each, word)):
            refuse(f"{place}.{word}", "has an any_of without a pattern, which matches nothing")
    if each.each is not None:
        _check_selector(each.each, f"{place}.each", names, refuse)
    if each.result is not None:
        if each.result not in names:
            refuse(f"{place}.result", f"no call is named {each.result!r}")
        if not any(getattr(each, w) is not None for w in (*_ABOUT_RESULTS, "within_ms")):
            refuse(place, f"needs one of {', '.join(_ABOUT_RESULTS)}, within_ms")
        for kind in _kinds_named(each):
            if not is_kind(kind):
                refuse(f"{place}.error", f"{kind!r} is neither a kind nor an error of Kafka")
    for word in ("order", "any_of"):
        for number, inner in enumerate(getattr(each, word) or []):
            _check_expectation(inner, f"{place}.{word}[{number}]", names, refuse)


def _words(value: Any) -> frozenset[str]:
    """Return the words of every text in a part of the case."""
    return frozenset(_WORD.findall(msgspec.json.encode(value).decode()))


def _check_topics(
    each: Expectation, place: str, played: frozenset[str], refuse: Callable[[str, str], None]
) -> None:
    """Refuse a check of a topic that the rest of the case does not have: nothing would break one
    under ``must_not``."""
    for where, partition in _partitions_named(each):
        topic = partition.rpartition("-")[0]
        if not _words(topic) <= played:
            refuse(f"{place}.{where}", f"nothing in the case is about the topic {topic!r}")
    for word in ("groups", "outcomes"):
        for name in getattr(each, word) or ():
            if not _words(name) <= played:
                refuse(f"{place}.{word}", f"nothing in the case is about {name!r}")
    for word in ("order", "any_of"):
        for number, inner in enumerate(getattr(each, word) or []):
            _check_topics(inner, f"{place}.{word}[{number}]", played, refuse)


def _partitions_named(each: Expectation) -> Iterator[tuple[str, str]]:
    for kind, selector in [*_selectors(each), ("each", each.each)]:
        if selector is not None and selector.partition is not None:
            yield f"{kind}.partition", selector.partition
    for word in ("outcomes", "delivered", "logs"):
        for key in getattr(each, word) or ():
            if _PARTITION.fullmatch(key):
                yield word, key


def _kinds_named(each: Expectation) -> Iterator[str]:
    for words in (each.error, *(each.outcomes or {}).values()):
        for word in [words] if isinstance(words, str) else words or []:
            if word != "ok":
                yield word


def _selectors(holder: Any) -> Iterator[tuple[str, Selector]]:
    for kind in ("requests", "responses", "events"):
        selector = getattr(holder, kind)
        if selector is not None:
            yield kind, selector


def _has_no_alternative(pattern: Any) -> bool:
    if isinstance(pattern, dict):
        return pattern.get("any_of") == [] or any(map(_has_no_alternative, pattern.values()))
    return isinstance(pattern, list) and any(map(_has_no_alternative, pattern))


def _check_range(text: int | str, place: str, refuse: Callable[[str, str], None]) -> None:
    try:
        parse_range(text)
    except ValueError as error:
        refuse(place, str(error))


def _check_selector(
    selector: Any, place: str, names: set[str], refuse: Callable[[str, str], None]
) -> None:
    if selector.row is not None and selector.partition is None:
        refuse(f"{place}.row", "needs the partition whose row it is")
    if selector.version is not None:
        _check_range(selector.version, f"{place}.version", refuse)
    for word in ("api", "other_than", "broker", "event"):
        if getattr(selector, word, None) == []:
            refuse(f"{place}.{word}", "is empty and selects nothing")
    for word in ("row", "body"):
        if _has_no_alternative(getattr(selector, word, None)):
            refuse(f"{place}.{word}", "has an any_of without a pattern, which matches nothing")
    for word in ("api", "other_than"):
        named = getattr(selector, word, None)
        for api in named if isinstance(named, list) else [named]:
            if api is not None and api_key(api) is None:
                refuse(f"{place}.{word}", f"{api!r} is not an API of Kafka")
    for word in ("during", "since", "until"):
        name = getattr(selector, word, None)
        if name is not None and name not in names:
            refuse(f"{place}.{word}", f"no call is named {name!r}")
    for word in ("after_first", "before_first"):
        inner = getattr(selector, word, None)
        if inner is not None:
            _check_selector(inner, f"{place}.{word}", names, refuse)
