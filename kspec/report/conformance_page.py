"""Render results.json as a page of Markdown: the matrix, and each failure with its explanation.

Text in, text out. Failures are described by ``sentences`` (kspec/findings.yaml), which are written
by hand, or else in the judge's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kspec.judge import VERDICTS, Verdict
from kspec.report.data import FORMAT

__all__ = [
    "Place",
    "Sentences",
    "Written",
    "as_markdown",
    "read_results",
    "stale_sentences",
    "unwritten",
]


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line in a client's source at one release.

    ``release`` begins with a package's name if the file belongs to another package, on which the
    client is built.
    """

    file: str
    line: int
    release: str

    def __str__(self) -> str:
        return f"`{self.file}:{self.line}` ({self.release})"


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A written explanation of a failure, and its place in the client's source."""

    seen: str
    source: list[Place]


Sentences = Mapping[str, Mapping[str, Written]]
"""Maps a client and a case (``framing/002``) to an explanation."""

_MARKS: Final[Mapping[Verdict, str]] = {
    "pass": "✓",
    "non-strict": "≈",
    "informational": "i",
    "fail": "**✗**",
    "error": "!",
    "unsupported": "·",
}

_INTRODUCTION: Final = """\
# What released clients do

Written by `make conformance`, which plays what fails twice; do not edit. The cases are
[kspec's](kspec.md), each of which rests on a KIP, an RFC or the protocol guide. They ask about rare
moments: what is here says nothing about how well a client serves from day to day. Where its
maintainers see it otherwise, the case may be wrong: each finding has the command that shows it, and
the journal of what was said.
"""
_LEGEND: Final = """\
✓ keeps every rule of the case; ≈ keeps every *must*, and not every *should*; i: the case only
records what the client does; **✗** breaks a *must*; · has no call for it, or never got to what it
is about.
"""

_OPTIONS: Final = """\
### Options

`timeout_ms` is the case's, 2000 at most.
"""
_RAW_CALLS: Final = """\
### Raw calls

For these calls the client has no method, only a function for one version of one api. Its caller
chooses the version and the broker, so that the cases of the groups *negotiation* and *routing* are
not played on them.
"""

_FOLDERS: Final = re.compile(r"(?:file://)?(?<![\w.])(?:/[\w.@+-]+)+/")
"""Paths of the machine that ran the suite are left out."""


class _Client(msgspec.Struct, frozen=True):
    version: str
    language: str
    verdicts: dict[str, int]
    options: dict[str, str] = {}
    raw_calls: dict[str, str] = {}


class _Case(msgspec.Struct, frozen=True):
    id: str
    title: str
    source: str
    about: str

    @property
    def number(self) -> str:
        """The case's short id, such as ``framing/002``."""
        return self.id[: self.id.index("/") + len("/002")]


class _Finding(msgspec.Struct, frozen=True):
    level: str
    says: str
    holds: bool | None
    evidence: str

    @property
    def broken(self) -> bool:
        request = self.holds is not None and self.level != "may"
        return request and self.holds == self.level.endswith("_not")


class _Variant(msgspec.Struct, frozen=True):
    name: str
    verdict: Verdict
    findings: list[_Finding]


class _Result(msgspec.Struct, frozen=True):
    client: str
    case: str
    verdict: Verdict
    why: str
    unsteady: str
    variants: list[_Variant]


class _Run(msgspec.Struct, frozen=True):
    format: int
    date: str
    clients: dict[str, _Client]
    absent: dict[str, str]
    cases: list[_Case]
    results: list[_Result]

    def of_case(self, case: _Case, verdict: Verdict) -> Iterator[_Result]:
        return (each for each in self.results if (each.case, each.verdict) == (case.id, verdict))


def read_results(text: bytes) -> _Run:
    """Parse results.json. Raises ValueError if it is not of this format."""
    run = msgspec.json.decode(text, type=_Run)
    if run.format != FORMAT:
        raise ValueError(f"its format is {run.format}, expected {FORMAT}")
    failed = [f"{each.client}, {each.case}" for each in run.results if each.verdict == "error"]
    if failed:
        raise ValueError(f"the adapter failed, which is no verdict: {'; '.join(failed)}")
    return run


def as_markdown(run: _Run, sentences: Sentences) -> str:
    """Return the whole page."""
    parts = [
        _INTRODUCTION,
        _summary(run),
        _clients(run),
        f"## Matrix\n\n{_matrix(run)}\n{_LEGEND}",
        "## Findings\n\n" + "\n".join(_findings(run, sentences)),
        _lesser(run),
    ]
    return "\n".join(part for part in parts if part)


def stale_sentences(run: _Run, sentences: Sentences) -> list[tuple[str, str]]:
    """Return (client, case) of explanations that match no failure. Clients that did not run are
    ignored."""
    failed = {(client, number) for client, number, _ in _failures(run)}
    return [
        (client, number)
        for client, found in sentences.items()
        if client in run.clients
        for number in found
        if (client, number) not in failed
    ]


def unwritten(run: _Run, sentences: Sentences) -> list[tuple[str, str]]:
    """Return (client, case) of failures without an explanation."""
    return [
        (client, number)
        for client, number, _ in _failures(run)
        if number not in sentences.get(client, {})
    ]


def _failures(run: _Run) -> Iterator[tuple[str, str, _Result]]:
    for case in run.cases:
        for each in run.of_case(case, "fail"):
            yield each.client, case.number, each


def _summary(run: _Run) -> str:
    failed = sum(each.verdict == "fail" for each in run.results)
    judged = sum(each.verdict != "unsupported" for each in run.results)
    return (
        f"{run.date}: {len(run.cases)} cases, {len(run.clients)} clients. Of {len(run.results)}"
        f" plays {judged} had something to judge, and {failed} of these failed.\n"
    )


# ---- tables --------------------------------------------------------------------------------------


def _clients(run: _Run) -> str:
    order = [verdict for verdict in reversed(VERDICTS) if verdict != "error"]
    rows = [["client", "release", "language", *order]]
    for name, client in run.clients.items():
        counts = [str(client.verdicts.get(verdict, 0)) for verdict in order]
        rows.append([name, client.version, client.language, *counts])
    absent = "".join(f"\n{name} was absent: {_plain(why)}\n" for name, why in run.absent.items())
    return f"## Clients\n\n{_table(rows)}{absent}\n{_options(run)}"


def _options(run: _Run) -> str:
    rows = [["client", "options that differ from its defaults"]]
    for name, client in run.clients.items():
        if client.options:
            rows.append(
                [name, ", ".join(f"{key}: {value}" for key, value in client.options.items())]
            )
    text = f"{_OPTIONS}\n{_table(rows)}" if len(rows) > 1 else ""
    raw = [["client", "call", "function"]]
    for name, client in run.clients.items():
        raw += [[name, call, function] for call, function in client.raw_calls.items()]
    return text + (f"\n{_RAW_CALLS}\n{_table(raw)}" if len(raw) > 1 else "")


def _matrix(run: _Run) -> str:
    verdicts = {(each.client, each.case): each.verdict for each in run.results}
    rows = [["", *run.clients]]
    for case in run.cases:
        found = [verdicts.get((client, case.id)) for client in run.clients]
        marks = ["" if verdict is None else _MARKS[verdict] for verdict in found]
        title = f"{case.number} {case.title}"
        rows.append([f"[{title}](#{_slug(case)})" if "fail" in found else title, *marks])
    return _table(rows)


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]) + "\n"


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


# ---- findings ------------------------------------------------------------------------------------


def _findings(run: _Run, sentences: Sentences) -> Iterator[str]:
    nothing = True
    for case in run.cases:
        failed = list(run.of_case(case, "fail"))
        if failed:
            nothing = False
            yield f'<a id="{_slug(case)}"></a>\n\n### {case.number}: {case.title}\n'
            yield f"{_plain(case.about)} Source: {case.source}.\n"
            yield from (_failure(each, case, run, sentences) for each in failed)
    if nothing:
        yield "None.\n"


def _failure(each: _Result, case: _Case, run: _Run, sentences: Sentences) -> str:
    written = sentences.get(each.client, {}).get(case.number)
    seen = _judged(each.why) if written is None else _plain(written.seen)
    places = [] if written is None else [str(place) for place in written.source]
    source = f" Source: {', '.join(places)}." if places else ""
    failed = [variant for variant in each.variants if variant.verdict == "fail"]
    parts = [_short(variant.name, 40) for variant in failed if variant.name]
    within = f" ({', '.join(parts)})" if 0 < len(parts) < len(each.variants) else ""
    return (
        f"- **{each.client} {run.clients[each.client].version}**{within}: {seen}{source}"
        + "".join(_requirement(level, each) for level in ("must", "must_not"))
        + f"\n  `kspec run --case {case.number} --client {each.client} -v`\n"
    )


def _requirement(level: str, each: _Result) -> str:
    """Return the rules of this level that are broken in any variant."""
    broken = {
        finding.says: None
        for variant in each.variants
        for finding in variant.findings
        if finding.broken and finding.level == level
    }
    words = {"must": "What must be", "must_not": "What must not be"}[level]
    return f" {words}: *{'*; *'.join(broken)}*." if broken else ""


def _judged(why: str) -> str:
    text = _FOLDERS.sub("", _plain(why))
    return f"`{_short(text, 300).replace('`', chr(39))}`"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _lesser(run: _Run) -> str:
    """Return the findings that are advice only."""
    numbers = {case.id: case.number for case in run.cases}
    rows = [["case", "client", "what is only asked for under *should*"]]
    for each in run.results:
        if each.verdict == "non-strict":
            says = {f.says: None for v in each.variants for f in v.findings if f.broken}
            rows.append([numbers[each.case], each.client, "not so: " + "; ".join(says)])
    unsteady = [
        f"- {numbers[each.case]}, {each.client}: {_judged(each.unsteady)}\n"
        for each in run.results
        if each.unsteady
    ]
    text = f"## Advice that is not followed\n\n{_table(rows)}" if len(rows) > 1 else ""
    if unsteady:
        text += "\n## Failed once, and not when played again\n\n" + "".join(unsteady)
    return text


def _slug(case: _Case) -> str:
    return case.number.replace("/", "-")


def _plain(text: str) -> str:
    """Return the text on one line."""
    return " ".join(text.split())
