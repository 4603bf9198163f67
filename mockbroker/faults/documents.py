"""Read fault rules from YAML, JSON and Python values. Opens no files.

A document is a list of rules, an object whose ``faults`` member is that list, or a single rule.
Every error is a FaultError with the source, the rule and, if the format has lines, the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from kproto.near_names import with_suggestion
from mockbroker.errors import FaultError
from mockbroker.faults.rule import Fault

__all__ = ["fault_of", "faults_of", "read_faults"]


_MAX_RULES: Final = 10_000
_DEEPEST: Final = 64
"""Levels of nesting in a document; rules need only a few."""
_RULES: Final = "faults"
_TAG_ERRORS: Final = (ValueError, ArithmeticError, AttributeError, LookupError, TypeError)
"""PyYAML raises these when the text does not fit the type that its tag names (``!!timestamp``)."""
_AT_MEMBER: Final = re.compile(r" - at `\$\.?([^.`\[]*)[^`]*`$")


class _Line(NamedTuple):
    """The lines of a rule and of each of its members."""

    rule: int | None = None
    members: Mapping[str, int] = {}


def read_faults(text: str, *, source: str = "") -> list[Fault]:
    """Return the rules of a YAML or JSON document, in order.

    It is read as JSON if ``source`` ends in .json, or if ``source`` is not a YAML file and the
    text begins like JSON.
    """
    if source.endswith(".json") or (not source.endswith((".yaml", ".yml")) and _is_json(text)):
        return faults_of(_json(text, source), source=source)
    return _from_yaml(text, source)


def faults_of(document: Any, *, source: str = "") -> list[Fault]:
    """Return the rules of a parsed document."""
    return _rules(document, source, lambda _place: _Line())


def fault_of(rule: Mapping[str, Any]) -> Fault:
    """Return the rule with these members."""
    return _fault(rule, "", "", _Line())


def _rules(document: Any, source: str, line_of: Callable[[int], _Line]) -> list[Fault]:
    rules = document
    if isinstance(document, Mapping):
        rules = [document]
        if _RULES in document:
            rules = document[_RULES]
            unknown = next((name for name in document if name != _RULES), None)
            if unknown is not None:
                raise FaultError(f"unknown member {unknown!r} next to {_RULES!r}", source=source)
    if not isinstance(rules, Sequence) or isinstance(rules, str | bytes):
        raise FaultError(f"expected a list of rules, or {{{_RULES}: [...]}}", source=source)
    if len(rules) > _MAX_RULES:
        raise FaultError(f"{len(rules)} rules; the maximum is {_MAX_RULES}", source=source)
    return [
        _fault(rule, f"rule {place + 1}", source, line_of(place))
        for place, rule in enumerate(rules)
    ]


def _fault(rule: Any, name: str, source: str, line: _Line) -> Fault:
    if not isinstance(rule, Mapping):
        raise FaultError("a rule must be an object", source=source, line=line.rule, rule=name)
    given = rule.get("name")
    if isinstance(given, str) and given:
        name = f"{name} {given!r}".lstrip()
    try:
        return msgspec.convert(dict(rule), Fault)
    except FaultError as error:
        raise FaultError(error.problem, source=source, line=line.rule, rule=name) from None
    except UnicodeEncodeError:
        problem = "a text contains an unpaired surrogate"
        raise FaultError(problem, source=source, line=line.rule, rule=name) from None
    except (msgspec.ValidationError, RecursionError) as error:
        # msgspec wraps what ``Fault`` itself raises.
        problem, member = _explain(error)
        at = line.members.get(member, line.rule)
        raise FaultError(problem, source=source, line=at, rule=name) from None


def _explain(error: Exception) -> tuple[str, str]:
    """Return the problem and the member it concerns."""
    if isinstance(error.__cause__, FaultError):
        return error.__cause__.problem, ""
    text = str(error)
    found = _AT_MEMBER.search(text)
    unknown = re.search(r"unknown field `([^`]*)`", text)
    if unknown is not None:
        problem = f"unknown member {unknown[1]!r}"
        return with_suggestion(problem, unknown[1], Fault.__struct_fields__), unknown[1]
    if found is None or not found[1]:
        return text, ""
    wrong = re.match(r"Invalid enum value '(.*?)'", text)
    if wrong and (choices := ", ".join(map(str, _choices(found[1])))):
        return f"{found[1]}: {wrong[1]!r} is none of {choices}", found[1]
    hint = " (quote it, or YAML reads it as a number)" if "`str" in text else ""
    return f"{found[1]}: {text[: found.start()]}{hint}", found[1]


def _choices(member: str) -> list[Any]:
    """The values of a rule's member that has one of a few."""
    kinds = get_args(get_type_hints(Fault)[member]) if member in Fault.__struct_fields__ else ()
    return [each for kind in kinds if get_origin(kind) is Literal for each in get_args(kind)]


# ---- JSON ----------------------------------------------------------------------------------------


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _json(text: str, source: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise FaultError(f"invalid JSON: {error.msg}", source=source, line=error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise FaultError(f"invalid JSON: {error}", source=source) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} appears twice")
    return found


# ---- YAML ----------------------------------------------------------------------------------------


def _from_yaml(text: str, source: str) -> list[Fault]:
    import yaml  # here, because rules in JSON and `serve` without rules do not need it

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
        raise FaultError(f"invalid YAML: {error.problem}", source=source, line=line) from None
    except FaultError:
        raise
    except (yaml.YAMLError, *_TAG_ERRORS, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise FaultError(f"invalid YAML: {problem}", source=source) from None
    lines = _lines(root)
    return _rules(
        [] if document is None else document,
        source,
        lambda place: lines[place] if place < len(lines) else _Line(),
    )


def _check_events(yaml: Any, text: str, source: str) -> None:
    """Refuse aliases and deep nesting before the document is built.

    For each token PyYAML looks at every open level: 64 KiB of brackets would take half an hour.
    """
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise FaultError("YAML aliases are not supported", source=source)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            problem = f"invalid YAML: more than {_DEEPEST} levels of nesting"
            raise FaultError(problem, source=source, line=event.start_mark.line + 1)


def _check_keys(node: Any, source: str) -> None:
    """Refuse keys that are not text, and duplicates, of which PyYAML would keep the last."""
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
            raise FaultError("a member's name must be text", source=source, line=line)
        if key.value in keys:
            raise FaultError(f"{key.value!r} appears twice", source=source, line=line)
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
