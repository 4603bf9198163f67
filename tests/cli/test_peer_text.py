"""No text of a peer reaches the terminal as anything but printable characters.

The test goes over every command of the four programs, which it finds in their trees of commands, in
each format that the command's options offer. A command without an entry in ``FEEDS`` fails. Hostile
text arrives the way a peer's would: in captures, from a control port, a broker, an adapter, a file.
"""

import json
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from mockbroker.simulation.operations import ALL_OPERATIONS
from tests.cli.commands import commands
from tests.cli.hostile import (
    ARGUMENT,
    FILE_NAME,
    JSON,
    PLAIN_NAME,
    check,
    check_csv,
    check_json,
    strings,
)
from tests.cli.hostile_brokers import broker
from tests.cli.hostile_files import write_cases, write_draft, write_results
from tests.cli.hostile_port import hostile_port
from tests.cli.hostile_traffic import write_traffic
from tests.cli.programs import MAINS
from tests.support.toolchain import require_module
from wiredump.questions.saved import questions

ADAPTER = Path(__file__).with_name("hostile_adapter.py")


class Run(NamedTuple):
    """Arguments behind the command's name. ``shows``: the output names the hostile text."""

    arguments: Sequence[str]
    shows: bool = True


class Place:
    """Where hostile text is found; each is made when the first command needs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open = ExitStack()

    @cached_property
    def traffic(self) -> dict[str, Path]:
        return write_traffic(self.folder)

    @property
    def capture(self) -> str:
        return str(self.traffic["capture"])

    @property
    def journal(self) -> str:
        return str(self.traffic["journal"])

    @cached_property
    def tables(self) -> str:
        folder = str(self.folder / "tables")
        with pytest.raises(SystemExit):
            MAINS["wiredump"](["table", self.journal, "--values", "--out", folder])
        return folder

    @cached_property
    def draft(self) -> Path:
        return write_draft(self.folder)

    @cached_property
    def small(self) -> Path:
        """The folder of small files: plans, frames, faults."""
        return self.draft.parent

    @cached_property
    def cases(self) -> Path:
        return write_cases(self.folder)

    @cached_property
    def results(self) -> Path:
        return write_results(self.cases)

    @cached_property
    def port(self) -> str:
        return self.open.enter_context(hostile_port())

    @cached_property
    def broker(self) -> str:
        return self.open.enter_context(broker())

    @cached_property
    def lost(self) -> str:
        return self.open.enter_context(broker(lost=True))


Feed = Callable[[Place], list[Run]]


def run(*arguments: str, shows: bool = True) -> Run:
    return Run(arguments, shows)


def bad_argument(place: Place) -> list[Run]:
    """For a command that prints only texts of this distribution, besides its arguments."""
    return [run(ARGUMENT)]


def ctl(*arguments: str) -> Feed:
    return lambda place: [run(*arguments)]


FEEDS: dict[str, Feed] = {
    # ---- kproto
    "kproto admin leader-election": lambda place: [
        run("--bootstrap-server", place.broker, "--election-type", "preferred", "--topic", "foo",
            "--partition", "0"),
        run("--bootstrap-server", ARGUMENT, "--election-type", "preferred",
            "--all-topic-partitions"),
    ],
    "kproto admin preferred-replica-election": lambda place: [
        run("--bootstrap-server", place.broker),
    ],
    "kproto admin reassign-partitions": lambda place: [
        run("--bootstrap-server", place.broker, "--list"),
        run("--bootstrap-server", place.broker, "--execute", "--additional",
            "--reassignment-json-file", str(place.small / "plan.json")),
        run("--bootstrap-server", place.broker, "--verify", "--reassignment-json-file",
            str(place.small / "plan.json"), shows=False),
        run("--bootstrap-server", place.broker, "--generate", "--topics-to-move-json-file",
            str(place.small / "move.json"), "--broker-list", "1,2"),
        run("--bootstrap-server", place.broker, "--execute", "--reassignment-json-file",
            str(place.folder / FILE_NAME)),
    ],
    "kproto admin topics": lambda place: [
        run("--bootstrap-server", place.broker, "--list"),
        run("--bootstrap-server", place.broker, "--describe"),
        run("--bootstrap-server", place.broker, "--create", "--topic", "new"),
        run("--bootstrap-server", place.lost, "--command-config", str(place.small / "client.conf"),
            "--create", "--topic", "new"),
        run("--bootstrap-server", place.broker, "--delete", "--topic", "foo"),
    ],
    "kproto codegen": lambda place: [run("--show", ARGUMENT, "0")],
    "kproto completion": bad_argument,
    "kproto decode": lambda place: [
        run("--request", str(place.small / "frame.bin")),
        run("--partial", "--request", str(place.small / "cut.bin")),
        run("--request", ARGUMENT),
    ],
    "kproto encode": lambda place: [
        run("MetadataRequest", "1", json.dumps({"topics": [{"name": JSON}]}), shows=False),
        run("MetadataRequest", "1", json.dumps({JSON: 1})),
        run(ARGUMENT, "1", "{}"),
    ],
    "kproto help": bad_argument,
    "kproto schema check": lambda place: [
        run(str(place.small / "bad")),
        run(str(place.draft), shows=False),
    ],
    "kproto schema compare": lambda place: [run(ARGUMENT, "--java")],
    "kproto schema diff": lambda place: [
        run(str(place.draft), str(place.small / "changed")),
        run(str(place.small / "changed"), str(place.folder / FILE_NAME)),
    ],
    "kproto schema import": lambda place: [
        run(str(place.draft), "--into", str(place.folder / FILE_NAME)),
    ],
    "kproto schema wireshark": lambda place: [
        run("--draft", str(place.draft)),
        run("--draft", ARGUMENT),
    ],
    "kproto show": lambda place: [run("--dialect", str(place.draft), "FrobRequest")],
    # ---- mockbroker
    "mockbroker completion": bad_argument,
    "mockbroker ctl cluster add": ctl("brokers=3"),
    "mockbroker ctl cluster list": ctl(),
    "mockbroker ctl cluster remove": ctl("denied"),
    "mockbroker ctl consume": ctl("foo"),
    "mockbroker ctl data-actions": ctl(),
    "mockbroker ctl fault add": ctl("api=3"),
    "mockbroker ctl fault clear": ctl(),
    "mockbroker ctl fault list": ctl(),
    "mockbroker ctl fault remove": ctl("r"),
    "mockbroker ctl fault wait": ctl("r"),
    "mockbroker ctl frame": ctl("1"),
    "mockbroker ctl group": ctl("g"),
    "mockbroker ctl groups": ctl(),
    "mockbroker ctl journal": lambda place: [run(), run("--follow"), run("--last", "5")],
    "mockbroker ctl log": lambda place: [run(), run("--follow"), run("foo-0")],
    "mockbroker ctl offsets": ctl("g"),
    "mockbroker ctl produce": lambda place: [
        run(ARGUMENT, "value"),
        run("foo", "--json-lines", json.dumps({"key": JSON, JSON: 1})),
        run("foo", "value", shows=False),
    ],
    "mockbroker ctl proxy": ctl(),
    "mockbroker ctl scenario list": ctl(),
    "mockbroker ctl scenario run": ctl("x"),
    "mockbroker ctl state": ctl(),
    "mockbroker ctl telemetry": ctl(),
    "mockbroker ctl tokens": ctl(),
    "mockbroker ctl transaction": ctl("t"),
    "mockbroker ctl transactions": ctl(),
    "mockbroker ctl waiting": ctl(),
    "mockbroker ctl znode delete": ctl("/x"),
    "mockbroker ctl znode get": ctl("/"),
    "mockbroker ctl znode set": ctl("/x", "text"),
    "mockbroker fuzz": lambda place: [
        run("--client", ARGUMENT),
        run("--adapter", f"{sys.executable} {ADAPTER}", "--cases", "2", "--api", "60"),
    ],
    "mockbroker fuzz broker": lambda place: [
        run(ARGUMENT),
        run(place.broker, "--cases", "3", "--api", "60", shows=False),
    ],
    "mockbroker fuzz diff": lambda place: [run("--api", "3", "--clients", ARGUMENT)],
    "mockbroker fuzz seeds": lambda place: [
        run("--format", "go", "--api", ARGUMENT, "--out", str(place.folder)),
    ],
    "mockbroker help": bad_argument,
    "mockbroker profiles": bad_argument,
    "mockbroker proxy": lambda place: [run("--upstream", ARGUMENT)],
    "mockbroker scenario list": bad_argument,
    "mockbroker scenario run": bad_argument,
    "mockbroker serve": lambda place: [
        run("--topic", ARGUMENT),
        run("--profile", ARGUMENT),
        run("--faults", str(place.small / "faults.yaml")),
        run("--faults", str(place.folder / FILE_NAME)),
        run("--replay", place.journal),
    ],
    # ---- wiredump
    "wiredump ask": lambda place: [
        *(run(name, place.tables, shows=False) for name in questions()),
        run("top-talkers", place.journal),
        run("top-talkers", str(place.traffic["broken"])),
        run(ARGUMENT, place.journal),
    ],
    "wiredump audit": lambda place: [run("--to", "kafka-4.1", place.tables)],
    "wiredump compact": lambda place: [run(ARGUMENT), run(place.tables, shows=False)],
    "wiredump completion": bad_argument,
    "wiredump extract": lambda place: [
        run(place.capture, "--out", "-", "--keep-names", "--values", "--raw"),
        run(place.journal, "--out", "-"),
    ],
    "wiredump help": bad_argument,
    "wiredump report": lambda place: [
        run(place.tables, "--out", "-", "--title", "[red]R3D\x1b[2J"),
    ],
    "wiredump show": lambda place: [
        run(place.capture),
        run(place.journal),
        run(place.journal, "--dates", "--width", "0"),
        run(place.journal, "--bodies"),
        run(place.journal, "--errors", "--width", "0"),
        run(str(place.traffic["broken"])),
        run(place.journal, "--dialect", ARGUMENT),
    ],
    "wiredump spark": lambda place: [
        run(str(place.folder / f"{FILE_NAME}.none"), "--out", str(place.folder / "spark"),
            "--staging", str(place.folder / "staging")),
    ],
    "wiredump sql": lambda place: [
        *(run(place.tables, f"SELECT * FROM {name}", shows=False)
          for name in ("requests", "connections", "topics", "records", "bodies", "groups")),
        run(place.tables, "SELECT client_id, software_name FROM requests"),
        run(place.tables, f'SELECT client_id AS "{_word}" FROM requests'),
        run(place.tables, f"SELECT error('{_word}') FROM requests"),
        run(place.tables, f'SELECT "{_word}" FROM requests'),
        run(place.tables, f'SELECT 1 + "{_word}'),
        run(place.journal, "SELECT client_id FROM requests"),
    ],
    "wiredump table": lambda place: [
        run(place.journal, "--out", str(place.folder / PLAIN_NAME), "--mode", "overwrite",
            shows=False),
        run(str(place.traffic["broken"]), "--out", str(place.folder / "y")),
        run(place.journal, "--out", str(place.folder / "z"), "--tables", ARGUMENT),
    ],
    # ---- kspec
    "kspec clients": bad_argument,
    "kspec compare": lambda place: [
        run(str(place.results), str(place.results.parent / "later")),
        run(str(place.results), str(place.folder / FILE_NAME)),
    ],
    "kspec completion": bad_argument,
    "kspec help": bad_argument,
    "kspec holes": lambda place: [run("--cases", str(place.cases), "--case", ARGUMENT)],
    "kspec list": lambda place: [run("--cases", str(place.cases)), run(ARGUMENT)],
    "kspec misbehaviours": bad_argument,
    "kspec prove": lambda place: [run(ARGUMENT, "--cases", str(place.cases))],
    "kspec publish": lambda place: [
        run(str(place.results.parent / "later" / "results.json"), "--out",
            str(place.folder / "pages")),
    ],
    "kspec report": lambda place: [
        run(str(place.results), "--client", "[red]R3D", "--for-maintainers", "--cases",
            str(place.cases)),
        run(str(place.results), "--client", ARGUMENT, "--for-maintainers"),
    ],
    "kspec run": lambda place: [
        run("--adapter", f"{sys.executable} {ADAPTER}", "--cases", str(place.cases), "--once", "-v",
            "--out", str(place.folder / "out")),
        run("--adapter", f"{sys.executable} {ADAPTER} dies", "--cases", str(place.cases), "--once"),
        run("--client", ARGUMENT),
    ],
    "kspec vectors": lambda place: [
        run("--out", "-", "--dialect", str(place.draft), "--message", "FrobRequest", shows=False),
        run("--out", "-", "--message", ARGUMENT),
    ],
}  # fmt: skip
"""By command: what feeds it. Commands of ``mockbroker ctl`` that only step a cluster share one."""

_word = "[red]R3D\x1b[2J\r\nFAKE\t\x07\x7f\x9b\u202e\u2066\u200b"
DOCUMENTS = ("wiredump report",)
"""Commands that print a page of HTML, which has line ends of peers, and no colours of ours."""
_FORMATS = ("--json", "--hex", "--bytes", "--coverage")
"""Flags that select another format."""


def feed_of(name: str, command: click.Command) -> Feed | None:
    if name in FEEDS:
        return FEEDS[name]
    if name.startswith("mockbroker ctl ") and command.name in ALL_OPERATIONS:
        arguments = [
            "1" if isinstance(each.type, click.types.IntParamType) else "foo-0"
            for each in command.params
            if isinstance(each, click.Argument) and each.required
        ]
        return lambda place: [run(*arguments)]
    return None


def formats_of(command: click.Command) -> Iterator[list[str]]:
    """Yield the options of each format that a command has; none for the default."""
    yield []
    for each in command.get_params(click.Context(command)):
        if "--format" in each.opts and isinstance(each.type, click.Choice):
            others = (choice for choice in each.type.choices if choice != each.default)
            yield from (["--format", str(choice)] for choice in others)
        yield from ([name] for name in each.opts if name in _FORMATS)


COMMANDS = dict(commands())
CASES = [
    pytest.param(
        name,
        options,
        id=" ".join([name, *options]),
        marks=() if name.startswith("mockbroker ctl ") else pytest.mark.slow,
    )
    for name, command in COMMANDS.items()
    for options in formats_of(command)
]


def test_every_command_is_fed() -> None:
    missing = [name for name, command in COMMANDS.items() if feed_of(name, command) is None]
    assert missing == [], "say in FEEDS how text of peers gets into these commands"
    assert [name for name in FEEDS if name not in COMMANDS] == [], "there are no such commands"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    found = Place(tmp_path_factory.mktemp("hostile"))
    with found.open:
        yield found


@pytest.mark.parametrize(("name", "options"), CASES)
def test_no_command_prints_text_of_peers_raw(
    name: str,
    options: list[str],
    place: Place,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    if "openmetrics" in options:
        require_module("prometheus_client")
    monkeypatch.chdir(tmp_path)
    for each in fed(name, place):
        out, err = printed_by(name, place, [*each.arguments, *options], capsysbinary)
        # Names of labels, which are those of columns, have letters and digits only.
        shortens = name in DOCUMENTS or "openmetrics" in options
        printed, told = check(out, lines=shortens), check(err)
        assert "Traceback" not in told
        assert not each.shows or "R3D" in printed + told, each
        if options == ["--format", "csv"]:
            check_csv(printed)
        elif options == ["--json"] or options == ["--format", "json"]:
            document = check_json(printed)
            if "[red]R3D" in printed:
                exact = ("\x1b[2J", r"\u001b[2J")  # the second in a body, which is JSON as a string
                assert any(each in text for text in strings(document) for each in exact)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in DOCUMENTS])
def test_nor_does_one_that_prints_in_colour(name, place, capsysbinary, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "20000")
    for each in fed(name, place):
        for output in printed_by(name, place, each.arguments, capsysbinary):
            check(output, styled=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_nor_do_errors_about_options(name, place, capsysbinary):
    command = COMMANDS[name]
    wrong = [[f"--{ARGUMENT}"]]
    wrong += [
        [each.opts[0], ARGUMENT]
        for each in command.get_params(click.Context(command))
        if isinstance(each, click.Option) and not each.is_flag and _refuses(each)
    ]
    for arguments in wrong:
        out, err = printed_by(name, place, arguments, capsysbinary)
        assert out == b""
        assert b"R3D" in err, arguments
        check(err)


def _refuses(option: click.Option) -> bool:
    """Whether the option's type refuses the hostile argument, before the command runs."""
    try:
        option.type_cast_value(click.Context(click.Command("")), (ARGUMENT,) if option.multiple
                               else ARGUMENT)  # fmt: skip
    except (click.ClickException, TypeError):
        return option.nargs == 1
    return False


def fed(name: str, place: Place) -> list[Run]:
    feed = feed_of(name, COMMANDS[name])
    assert feed is not None
    return feed(place)


def printed_by(
    name: str, place: Place, arguments: Sequence[str], capsysbinary: pytest.CaptureFixture[bytes]
) -> tuple[bytes, bytes]:
    """Return what a command prints to standard output and to standard error."""
    program, *words = name.split()
    if words[:1] == ["ctl"]:
        words.insert(1, place.port)
    capsysbinary.readouterr()  # of what was made for it
    failure = ""
    try:
        with pytest.raises(SystemExit):
            MAINS[program]([*words, *arguments])
    except Exception:
        failure = traceback.format_exc()
    if failure:
        # Lone surrogates in an exception, or in one behind it, would end pytest-xdist.
        pytest.fail(failure.encode(errors="backslashreplace").decode(), pytrace=False)
    return capsysbinary.readouterr()
