"""Rules out of YAML, JSON and what Python was given. Texts and values in, no files.

A document is a list of rules, an object whose ``faults`` is that list, or one rule. Every error is
a FaultError that names the source, the line where the format tells one, and the rule.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from kproto.errors import MissingExtraError
from mockbroker.errors import FaultError
from mockbroker.faults.rule import Fault

__all__ = ["fault_of", "faults_of", "read_faults"]

_MAX_RULES: Final = 10_000
_DEEPEST: Final = 64
"""No rule has more than a few levels."""
_RULES: Final = "faults"
_OF_TAGS: Final = (ValueError, ArithmeticError, AttributeError, LookupError, TypeError)
"""What PyYAML runs into where a tag names a type (``!!timestamp``) that the text is none of."""
_AT_MEMBER: Final = re.compile(r" - at `\$\.?([^.`\[]*)[^`]*`$")


class _Line(NamedTuple):
    """Where a rule begins, and where each of its members stands."""

    rule: int | None = None
    members: Mapping[str, int] = {}


def read_faults(text: str, *, source: str = "") -> list[Fault]:
    """The rules of a document, in order: YAML, or JSON where ``source`` ends in .json. YAML needs
    the ``faults`` extra (MissingExtraError); a document that begins as JSON's do goes without."""
    if source.endswith(".json") or (not source.endswith((".yaml", ".yml")) and _is_json(text)):
        return faults_of(_json(text, source), source=source)
    return _from_yaml(text, source)


def faults_of(document: Any, *, source: str = "") -> list[Fault]:
    """The rules of a parsed document."""
    return _rules(document, source, lambda _place: _Line())


def fault_of(rule: Mapping[str, Any]) -> Fault:
    """One rule from its members."""
    return _fault(rule, "", "", _Line())


def _rules(document: Any, source: str, line_of: Callable[[int], _Line]) -> list[Fault]:
    rules = document
    if isinstance(document, Mapping):
        rules = [document]
        if _RULES in document:
            rules = document[_RULES]
            unknown = next((name for name in document if name != _RULES), None)
            if unknown is not None:
                raise FaultError(f"{unknown!r} beside {_RULES!r} is not known", source=source)
    if not isinstance(rules, Sequence) or isinstance(rules, str | bytes):
        raise FaultError(f"a list of rules is wanted, or {{{_RULES}: [...]}}", source=source)
    if len(rules) > _MAX_RULES:
        raise FaultError(f"{len(rules)} rules; {_MAX_RULES} are possible", source=source)
    return [
        _fault(rule, f"rule {place + 1}", source, line_of(place))
        for place, rule in enumerate(rules)
    ]


def _fault(rule: Any, name: str, source: str, line: _Line) -> Fault:
    if not isinstance(rule, Mapping):
        raise FaultError("a rule is an object", source=source, line=line.rule, rule=name)
    given = rule.get("name")
    if isinstance(given, str) and given:
        name = f"{name} {given!r}".lstrip()
    try:
        return msgspec.convert(dict(rule), Fault)
    except FaultError as error:
        raise FaultError(error.problem, source=source, line=line.rule, rule=name) from None
    except UnicodeEncodeError:
        problem = "a text has half of a surrogate pair, which is no character"
        raise FaultError(problem, source=source, line=line.rule, rule=name) from None
    except (msgspec.ValidationError, RecursionError) as error:
        # What ``Fault`` itself raises comes wrapped, without its own words for the rule.
        problem, member = _explain(error)
        at = line.members.get(member, line.rule)
        raise FaultError(problem, source=source, line=at, rule=name) from None


def _explain(error: Exception) -> tuple[str, str]:
    """The problem, and the member it is about."""
    if isinstance(error.__cause__, FaultError):
        return error.__cause__.problem, ""
    text = str(error)
    found = _AT_MEMBER.search(text)
    unknown = re.search(r"unknown field `([^`]*)`", text)
    if unknown is not None:
        near = difflib.get_close_matches(unknown[1], Fault.__struct_fields__, n=2)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return f"there is no member {unknown[1]!r}{hint}", unknown[1]
    if found is None or not found[1]:
        return text, ""
    hint = " (in quotes, or YAML takes it for a number)" if "`str" in text else ""
    return f"{found[1]}: {text[: found.start()]}{hint}", found[1]


# ---- JSON ----------------------------------------------------------------------------------------


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _json(text: str, source: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise FaultError(f"no JSON: {error.msg}", source=source, line=error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise FaultError(f"no JSON: {error}", source=source) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is given twice")
    return found


# ---- YAML ----------------------------------------------------------------------------------------


def _from_yaml(text: str, source: str) -> list[Fault]:
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("rules in YAML need PyYAML", extra="faults") from None
    try:
        _check_events(yaml, text, source)
        loader = yaml.SafeLoader(text)
        try:
            root = loader.get_single_node()
            _check_keys(root, source)
            document = None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = None if mark is None else mark.line + 1
        raise FaultError(f"no YAML: {error.problem}", source=source, line=line) from None
    except FaultError:
        raise
    except (yaml.YAMLError, *_OF_TAGS, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise FaultError(f"no YAML: {problem}", source=source) from None
    lines = _lines(root)
    return _rules(
        [] if document is None else document,
        source,
        lambda place: lines[place] if place < len(lines) else _Line(),
    )


def _check_events(yaml: Any, text: str, source: str) -> None:
    """Before anything is made of them: no aliases, and nothing deep. PyYAML looks at every level
    that is open for each token it reads, so that 64 KiB of brackets would take it half an hour."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise FaultError("aliases are not taken: write each rule out", source=source)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            problem = f"no YAML: nested more than {_DEEPEST} deep"
            raise FaultError(problem, source=source, line=event.start_mark.line + 1)


def _check_keys(node: Any, source: str) -> None:
    """Every key is text, and is there once: YAML's reader would take the last."""
    if node is None or node.id == "scalar":
        return
    if node.id == "sequence":
        for each in node.value:
            _check_keys(each, source)
        return
    keys: set[str] = set()
    for key, value in node.value:
        line = key.start_mark.line + 1
        if key.id != "scalar":
            raise FaultError("a member's name is text", source=source, line=line)
        if key.value in keys:
            raise FaultError(f"{key.value!r} is given twice", source=source, line=line)
        keys.add(key.value)
        _check_keys(value, source)


def _lines(root: Any) -> list[_Line]:
    rules = root
    if root is not None and root.id == "mapping":
        listed = [value for key, value in root.value if key.value == _RULES]
        if not listed:
            return [_line(root)]
        rules = listed[0]
    return [] if rules is None or rules.id != "sequence" else [_line(each) for each in rules.value]


def _line(node: Any) -> _Line:
    members = (
        {key.value: key.start_mark.line + 1 for key, _ in node.value}
        if node.id == "mapping"
        else {}
    )
    return _Line(node.start_mark.line + 1, members)
