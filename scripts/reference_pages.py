"""The generated parts of the documentation: tables that come from the code.

A page marks such a part with ``<!-- generated: NAME -->`` and ``<!-- end of NAME -->``, between
which it has a sentence for readers of the source. The site (``scripts.site_hooks``) and the
distributions (``scripts.distributions``) replace that sentence when they are built; the tables are
not committed. ``PARTS`` maps the names to functions.

    .venv/bin/python -m scripts.reference_pages           # list the names
    .venv/bin/python -m scripts.reference_pages commands  # print a part
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

import yaml

from kproto.codec.message import Message
from kproto.dialects import dialect
from kproto.schema.versions import Versions
from kproto.znodes import Stat
from kspec.adapter_protocol import ADAPTER_CALLS
from kspec.defects.catalog import DEFECTS
from kspec.model import Case, Expectation
from kspec.runner.files import load_cases
from kspec.sources import sources_of
from mockbroker.apis import HANDLERS
from mockbroker.apis.common.error_places import chosen_places, places_of
from mockbroker.apis.common.request_entities import Selection
from mockbroker.apis.coverage import coverage, gaps
from mockbroker.control import ROUTES
from mockbroker.control.options import CLUSTER_OPTIONS
from mockbroker.control.routes import Route
from mockbroker.faults.descriptions import MEMBERS
from mockbroker.options import ClusterOptions
from mockbroker.profiles import DEFAULT_PROFILE, Profile, all_profiles
from mockbroker.simulation.operations import OPERATIONS, PROXY_OPERATIONS, Operation
from mockbroker.simulation.state import actions
from mockbroker.simulation.state.cluster_parts import Broker, Partition, TargetedPartition, Topic
from mockbroker.simulation.state.option_declarations import options_of
from mockbroker.simulation.state.results import AclBinding
from scripts import conformance_results, peer_coverage
from tests.real.search import page as fidelity
from tests.suites import page as suites
from tests.support import requirements
from wiredump.rows.documentation import tables

__all__ = ["DOCS", "PARTS", "filled", "main"]

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"

_PART: Final = re.compile(
    r"^<!-- generated: (?P<name>\S+) -->\n.*?^<!-- end of (?P=name) -->\n", re.M | re.S
)
_EXPECTED: Final = ROOT / "kspec" / "clientfuzz" / "decoders" / "expected.yaml"


def _table(*head: str, rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([_cell(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _rows(table: Callable[[], Iterator[Sequence[str]]]) -> str:
    """A table whose first row is its head."""
    head, *rows = table()
    return _table(*head, rows=rows)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`"


# ---- profiles ------------------------------------------------------------------------------------

_SHOWN: Final = (18, 3, 43, 45, 46)
"""API keys with a column of their own."""


def _profiles() -> str:
    rows = []
    for each in all_profiles():
        level = next((f.finalized for f in each.features if f.name == "metadata.version"), None)
        default = " (default)" if each.name == DEFAULT_PROFILE else ""
        rows.append([
            _code(each.name) + default,
            each.release,
            "KRaft" if each.forwarding else "ZooKeeper",
            "" if level is None else str(level),
            str(len(each.versions)),
            *(str(each.versions.get(key, "")) for key in _SHOWN),
        ])  # fmt: skip
    names = ", ".join(f"{_name(key)} ({key})" for key in _SHOWN)
    head = ("profile", "Kafka", "controller", "metadata", "APIs", *map(str, _SHOWN))
    return f"{_table(*head, rows=rows)}\nThe numbered columns are the versions of {names}.\n"


def _proposals() -> str:
    found = [each for each in all_profiles() if each.is_proposal]
    rows = [[_code(each.name), each.release, each.proposal] for each in found]
    return _table("profile", "based on", "proposal", rows=rows)


def _api_versions() -> str:
    """The versions of each API, by the first release that advertises them."""
    released = [each for each in all_profiles() if not each.is_proposal]
    modes = [[each for each in released if each.forwarding == kraft] for kraft in (False, True)]
    keys = sorted({key for each in released for key in each.versions})
    rows = []
    for key in keys:
        served = "yes" if key in HANDLERS else ""
        rows.append([str(key), _name(key), served, *(_since(key, profiles) for profiles in modes)])
    return _table("key", "API", "implemented", "with ZooKeeper", "with KRaft", rows=rows)


def _coverage() -> str:
    """How many APIs each profile serves, and why it does not serve the others."""
    profiles = all_profiles()
    rows = []
    for each in profiles:
        apis = coverage(each)
        served = sum(api.complete for api in apis)
        rows.append([_code(each.name), str(len(apis)), str(served), str(len(apis) - served)])
    counts = _table("profile", "API keys", "served", "not served", rows=rows)
    in_order = [each.name for each in sorted(profiles, key=lambda each: each.forwarding)]
    lacking = [
        [str(api.api_key), api.name, _spans(names, in_order), api.reason]
        for api, names in gaps(profiles)
    ]
    reasons = _table("key", "API", "profiles without it", "reason", rows=lacking)
    return f"{counts}\n{reasons}"


def _spans(chosen: Sequence[str], names: Sequence[str]) -> str:
    """``a to c`` for names that follow each other."""
    spans: list[list[str]] = []
    for name, following in zip(names, [*names[1:], ""], strict=True):
        if name not in chosen:
            continue
        if not spans or spans[-1][-1] == "end":
            spans.append([name])
        if following not in chosen:
            first = spans[-1][0]
            spans[-1] = [first if first == name else f"{first} to {name}", "end"]
    return ", ".join(span[0] for span in spans)


def _name(key: int) -> str:
    """``AlterPartitionReassignments`` for 45."""
    return dialect("kafka").api(key).request.__name__.removesuffix("Request")


def _since(key: int, profiles: Sequence[Profile]) -> str:
    found: list[str] = []
    last: Versions | None = None
    for each in profiles:
        versions = each.versions.get(key)
        if versions != last:
            line = re.sub(r"^kafka-|-zk$", "", each.name)
            found.append(f"{versions or 'none'} ({line})")
        last = versions
    return ", ".join(found)


# ---- faults and operations -----------------------------------------------------------------------


def _fault_members(group: str) -> str:
    rows = [[_code(name), *described] for name, described in MEMBERS[group].items()]
    return _table("member", "value", "meaning", rows=rows)


def _error_levels() -> str:
    """The levels at which each client API has error codes."""
    versions = next(each for each in all_profiles() if each.name == "kafka-4.4").versions
    rows = []
    for key, served in sorted(versions.items()):
        response = dialect("kafka").api(key).response
        runs: list[tuple[int, int, str, str]] = []
        for version in range(served.lowest, served.highest + 1):
            levels, default = _levels(response, version)
            if runs and runs[-1][2:] == (levels, default):
                runs[-1] = (runs[-1][0], version, levels, default)
            else:
                runs.append((version, version, levels, default))
        for low, high, levels, default in runs:
            span = str(low) if low == high else f"{low}-{high}"
            rows.append([str(key), _name(key), span, levels or "none", default or "none"])
    return _table("key", "API", "versions", "levels", "without `error_at`", rows=rows)


def _levels(response: type[Message], version: int) -> tuple[str, str]:
    every = dict.fromkeys(place.level for place in places_of(response, version))
    chosen = chosen_places(response, version, None, Selection(None, None))
    return ", ".join(every), ", ".join(dict.fromkeys(place.level for place in chosen))


def _operations() -> str:
    return _operation_table(OPERATIONS)


def _proxy_operations() -> str:
    return _operation_table(PROXY_OPERATIONS)


def _operation_table(operations: Mapping[str, Operation]) -> str:
    rows = [
        [_code(each.usage), " ".join(part for part in (each.help, each.details) if part)]
        for each in operations.values()
    ]
    return _table("operation", "meaning", rows=rows)


# ---- the control port ----------------------------------------------------------------------------


def _routes() -> str:
    rows = [
        [_code(f"{each.method} {each.path}"), _takes(each), each.summary]
        for each in ROUTES
        if each.path.removeprefix("/") not in OPERATIONS
    ]
    return _table("request", "query or body", "meaning", rows=rows)


def _takes(route: Route) -> str:
    if route.path == "/clusters" and route.method == "POST":
        return "the options below"
    members = [*route.query, *(route.body if isinstance(route.body, tuple) else ())]
    rules = ["a rule, a list of rules, or `faults`"] if isinstance(route.body, dict) else []
    return ", ".join([*(_code(each.name) for each in members), *rules])


def _cluster_options() -> str:
    flags = {each.name: _code(each.flag) for each in options_of(ClusterOptions) if each.flag}
    flags["faults"] = _code("--faults")
    rows = [
        [_code(each.name), flags.get(each.name, ""), _json_type(each.schema), each.text]
        for each in CLUSTER_OPTIONS
    ]
    return _table("member", "`serve`", "type", "meaning", rows=rows)


def _json_type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(map(_code, schema["enum"]))
    kind = schema.get("type", "object")  # that of a reference
    names = [kind] if isinstance(kind, str) else list(kind)
    bounds = f", {schema['minimum']} to {schema['maximum']}" if "maximum" in schema else ""
    return " or ".join(names) + bounds


# ---- the action log ------------------------------------------------------------------------------

_VALUES: Final[tuple[type[Any], ...]] = (
    Broker, Partition, TargetedPartition, Topic, AclBinding, Stat
)  # fmt: skip
"""The types of the members."""


def _classes(found: Iterable[type[Any]]) -> str:
    return "\n".join(_class(each) for each in found)


def _class(cls: type[Any]) -> str:
    """The class, its docstring unless Python generated it, and its members."""
    text = inspect.cleandoc(cls.__doc__ or "")
    said = "" if text.startswith(f"{cls.__name__}(") else text.replace("``", "`") + "\n\n"
    rows = [[_code(name), _code(kind)] for name, kind in _members(cls)]
    members = _table("member", "type", rows=rows) if rows else "It has no members.\n"
    return f"### {cls.__name__}\n\n{said}{members}"


def _members(cls: type[Any]) -> Iterator[tuple[str, str]]:
    written = dict(
        item for base in cls.__mro__[::-1] for item in inspect.get_annotations(base).items()
    )
    for name, parameter in inspect.signature(cls).parameters.items():
        kind = str(written.get(name, parameter.annotation))
        yield name, re.sub(r"ForwardRef\('(.*?)'.*?\)", r"\1", kind)


# ---- kspec ---------------------------------------------------------------------------------------

_LEVELS: Final = {
    "must": "must", "must_not": "must not", "should": "should", "should_not": "should not",
    "may": "noted",
}  # fmt: skip


def _cases() -> str:
    parts = []
    group = ""
    for file in load_cases():
        if file.group != group:
            group = file.group
            parts.append(f"## {group}\n")
        number = file.id[: len(group) + len("/001")]
        anchor = f'<a id="{number.replace("/", "-")}"></a>'
        text = _case(file.case, len(file.variants))
        parts.append(f"{anchor}\n\n### {number}: {file.case.title}\n\n{text}")
    return "\n".join(parts)


def _case(case: Case, variants: int) -> str:
    counted = f" {variants} variants." if variants > 1 else ""
    about = (
        f"{_cell(case.about)} Profile: `{case.profile}`.{counted} Source: {_sources(case)}. Since"
        f" suite {case.since}.\n\n"
    )
    rules = "".join(
        f"- *{_LEVELS[level]}*: {_cell(_says(expectation))}\n"
        for level, expectation in case.expectations()
    )
    return about + rules


def _adapter_calls() -> str:
    rows = [[_code(each.name), each.members, each.result] for each in ADAPTER_CALLS]
    return _table("call", "members", "result", rows=rows)


def _wrong_clients() -> str:
    """Which cases catch which defect, and in which it only breaks a should."""
    fails: dict[str, list[str]] = {}
    lax: dict[str, list[str]] = {}
    for file in load_cases():
        wrong = file.case.wrong
        if wrong is None:
            continue
        number = file.id[: len(file.group) + len("/001")]
        link = f"[{number}](cases.md#{number.replace('/', '-')})"
        by = fails if wrong.verdict == "fail" else lax
        by.setdefault(wrong.by, []).append(link)
        for name in wrong.also:
            fails.setdefault(name, []).append(link)
        for name in wrong.lax:
            lax.setdefault(name, []).append(link)
    rows = [
        [_code(name), each.about, ", ".join(fails.get(name, [])), ", ".join(lax.get(name, []))]
        for name, each in sorted(DEFECTS.items())
    ]
    count = f"{len(rows)} defects, {len(fails)} of which fail a case.\n\n"
    return count + _table("defect", "what it does", "fails", "non-strict in", rows=rows)


def _sources(case: Case) -> str:
    found = sources_of(case.source)
    return "; ".join(f"[{each.document}]({each.address}){each.detail}" for each in found)


def _conformance(page: str) -> str:
    """A page of the results, without its title."""
    text = conformance_results.pages()[f"reference/conformance/{page}"]
    return text.partition("\n\n")[2]


def _maintainers_pages() -> str:
    pages = conformance_results.pages()
    found = (page for page in pages if page.startswith("reference/maintainers/"))
    return "".join(
        f"- [{pages[page].partition(': ')[0].lstrip('# ')}]({page.removeprefix('reference/')})\n"
        for page in found
    )


def _says(expectation: Expectation) -> str:
    return expectation.says.rstrip(".")


def _expected_differences() -> str:
    found = yaml.safe_load(_EXPECTED.read_text("utf-8"))
    rows = [[_code(each["id"]), each["reason"]] for each in found]
    return _table("id", "difference and reason", rows=rows)


# ---- requirements --------------------------------------------------------------------------------


def _requirements() -> str:
    """The requirements with their tests, which pytest collects for this."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tests.json"
        command = [
            sys.executable, "-m", "pytest", "-qq", "--collect-only", f"--requirement-tests={path}"
        ]  # fmt: skip
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if run.returncode:
            raise RuntimeError(f"the tests cannot be collected:\n{run.stdout}{run.stderr}")
        tests = json.loads(path.read_text("utf-8"))
    return requirements.render(requirements.load(DOCS / "reference" / "requirements.json"), tests)


# ---- pages ---------------------------------------------------------------------------------------

PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "profiles": _profiles,
    "proposals": _proposals,
    "api-versions": _api_versions,
    "coverage": _coverage,
    "peer-coverage": partial(_rows, peer_coverage.table),
    "peer-coverage-behind": peer_coverage.behind,
    **{f"fault-{group}": partial(_fault_members, group) for group in MEMBERS},
    "error-levels": _error_levels,
    "commands": _operations,
    "proxy-commands": _proxy_operations,
    "routes": _routes,
    "cluster-options": _cluster_options,
    "action-kinds": lambda: _classes(get_args(actions.Change)),
    "action-values": lambda: _classes(_VALUES),
    "adapter-calls": _adapter_calls,
    "wrong-clients": _wrong_clients,
    "cases": _cases,
    "conformance-index": partial(_conformance, "index.md"),
    "conformance-cases": partial(_conformance, "cases.md"),
    "maintainers-pages": _maintainers_pages,
    "expected-differences": _expected_differences,
    "fidelity-results": partial(_rows, fidelity.results_table),
    "fidelity-families": partial(_rows, fidelity.families_table),
    "fidelity-kinds": partial(_rows, fidelity.kinds_table),
    "left-to-chance": partial(_rows, fidelity.chance_table),
    "suite-results": partial(_rows, suites.results),
    "suite-failures": partial(_rows, suites.failures),
    "suite-left-out": partial(_rows, suites.left_out),
    "tables": tables,
    "requirements": _requirements,
}


def filled(text: str, *, without: Collection[str] = ()) -> str:
    """Return the page with its generated parts in place of the sentences between the marks, which
    the parts ``without`` keep."""

    def part(found: re.Match[str]) -> str:
        return found[0] if found["name"] in without else PARTS[found["name"]]()

    return _PART.sub(part, text)


def main(arguments: Sequence[str]) -> int:
    unknown = [each for each in arguments if each not in PARTS]
    if unknown or not arguments:
        sys.stderr.write(f"parts: {', '.join(PARTS)}\n")
        return 2 if unknown else 0
    for name in arguments:
        sys.stdout.write(PARTS[name]())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
