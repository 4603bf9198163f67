"""What the four command lines have in common: versions, usage errors and completion."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

import kproto
from kspec.runner.files import CASES
from mockbroker.profiles import all_profiles
from tests.cli.programs import MAINS, PROGRAMS

ROOT = Path(__file__).parents[2]
SECONDS = 60


@dataclass
class Done:
    status: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Run a program in this process, as its entry point does."""

    def run_program(program: str, *arguments: str) -> Done:
        with pytest.raises(SystemExit) as ended:
            MAINS[program](list(arguments))
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, *capsys.readouterr())

    return run_program


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_version_names_the_program_and_the_engine(program, run):
    done = run(program, "--version")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"{program} {kproto.__version__} ({kproto.engine} engine)")


USAGE_ERRORS = [
    ("kproto", [], "Missing command. (see kproto --help)"),
    ("mockbroker", ["--bogus"], "No such option '--bogus'. (see mockbroker --help)"),
    ("wiredump", ["bogus"], "No such command 'bogus'. (see wiredump --help)"),
    ("kspec", [], "Missing command. (see kspec --help)"),
    ("kspec", ["bogus"], "No such command 'bogus'. (see kspec --help)"),
    ("kspec", ["run", "--jobs", "0"], "(see kspec run --help)"),
    ("mockbroker", ["fuzz", "--bogus"], "(see mockbroker fuzz --help)"),
]


@pytest.mark.parametrize(("program", "arguments", "ending"), USAGE_ERRORS)
def test_a_usage_error_is_one_line_and_exits_with_2(program, arguments, ending, run):
    done = run(program, *arguments)
    assert (done.status, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith(f"{program}: ")
    assert line.endswith(ending)


@pytest.mark.slow
def test_other_errors_of_kspec_have_the_same_form(run: Callable[..., Done]) -> None:
    done = run("kspec", "list", "zzzzzzzz")
    assert (done.status, done.out) == (2, "")
    assert done.err == "kspec: no case matches 'zzzzzzzz'; `kspec list` lists all\n"


# ---- completion ----------------------------------------------------------------------------------


def completed(program: str, *words: str) -> list[str]:
    """What click offers for the last word."""
    made = ShellComplete(PROGRAMS[program], {}, program, "")
    return [item.value for item in made.get_completions(list(words[:-1]), words[-1])]


PROFILES = {each.name for each in all_profiles()}
CASE_IDS = {f"{each.parent.name}/{each.stem}" for each in CASES.glob("*/*.yaml")}


@pytest.mark.parametrize(
    ("words", "some"),
    [
        ("kproto sh", {"show"}),
        ("kproto show Metadata", {"MetadataRequest", "MetadataResponse"}),
        ("kproto show metadatareq", {"MetadataRequest"}),
        ("kproto show --dialect kip-240 ListReass", {"ListReassignmentsRequest"}),
        ("kproto encode AlterPartitionR", {"AlterPartitionReassignmentsRequest"}),
        ("kproto codegen --show HeartbeatRe", {"HeartbeatRequest", "HeartbeatResponse"}),
        ("kproto decode --dialect kip-455", {"kip-455-old", "kip-455-new"}),
        ("mockbroker serve --profile ", PROFILES),
        ("mockbroker serve --auto-p", {"--auto-progress"}),
        ("mockbroker ctl http://127.0.0.1:1 fail", {"failover"}),
        ("mockbroker ctl http://127.0.0.1:1 journal --api ElectL", {"ElectLeaders"}),
        ("mockbroker scenario run a", {"all"}),
        ("mockbroker fuzz --client confl", {"confluent-kafka"}),
        ("wiredump show --api Meta", {"Metadata"}),
        ("wiredump show --dialect a", {"auto"}),
        ("wiredump table --dialect kip-1", {"kip-183"}),
        ("wiredump audit --to kafka-2.4", {"kafka-2.4"}),
        ("kspec run --case ", CASE_IDS),
        ("kspec list election/001", {"election/001-null-elects-everywhere"}),
        ("kspec run --client ref", {"reference"}),
        ("kspec run --client wrong:claims", {"wrong:claims-success"}),
        ("mockbroker fuzz seeds --api Metad", {"Metadata"}),
    ],
)
def test_names_are_completed(words: str, some: set[str]) -> None:
    program, *rest = words.split(" ")
    found = completed(program, *rest)
    assert some <= set(found)
    assert len(found) == len(set(found))
    assert all(each.lower().startswith(rest[-1].lower()) for each in found)


def test_an_unknown_dialect_completes_nothing() -> None:
    assert completed("kproto", "show", "--dialect", "bogus", "Metadata") == []


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_program_prints_its_completion_script(program, shell, capsys):
    PROGRAMS[program].main(["completion", shell], prog_name=program, standalone_mode=False)
    script = capsys.readouterr().out
    assert f"_{program.upper()}_COMPLETE={shell}_complete" in script


def test_the_script_works_in_bash(tmp_path: Path) -> None:
    """A bash with the script loaded completes what a user types."""
    program = tmp_path / "kproto"
    program.write_text(f"#!{sys.executable}\nfrom kproto.__main__ import main\nmain()\n")
    program.chmod(0o755)
    typed = """
    eval "$(kproto completion bash)"
    COMP_WORDS=(kproto show MetadataRe) COMP_CWORD=2
    _kproto_completion kproto
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "-c", typed], capture_output=True, text=True, timeout=SECONDS, check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.split() == ["MetadataRequest", "MetadataResponse"]


def test_the_options_of_serve_are_grouped(capsys: pytest.CaptureFixture[str]) -> None:
    """Every option but two has a group, and none is listed twice."""
    PROGRAMS["mockbroker"].main(["serve", "--help"], standalone_mode=False)
    groups: dict[str, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        if re.fullmatch(r"[A-Z][A-Za-z -]+:", line):
            options = groups[line.removesuffix(":")] = []
        elif found := re.match(r"  (?:-h, )?(--[a-z0-9-]+)", line):
            options.append(found[1])
    assert groups.pop("Other options") == ["--exit-with-parent", "--exit-on-stdin-eof", "--help"]
    assert {"Cluster", "Addresses", "Faults", "Security", "Limits"} <= set(groups)
    assert all(2 <= len(options) <= 8 or name == "Recording" for name, options in groups.items())
    listed = [option for options in groups.values() for option in options]
    assert len(listed) == len(set(listed)) > 35
