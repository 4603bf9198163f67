"""The pages are true: their code runs, their commands exist and print what is shown.

Of each page of the site, of README.md and of CONTRIBUTING.md, the blocks are run in order in one
empty folder, which has the checkout's ``schemas``, ``tests`` and ``demo``, and in one namespace:

``python``   is executed. With a title it becomes a file of that name instead, which a later
             command has to use; a function ``test_...`` with arguments is run by pytest.
``pycon``    runs as a doctest.
``console``  each ``$`` line is run and what it prints compared; ``...`` stands for any text. A
             cluster of ``mockbroker serve`` runs until the page ends, on free ports.
``sh``       each line is parsed by the command, so that it exists with its options. Not run.
``json``, ``yaml``, ``toml``  are parsed, and become files where they have a title.

A block that needs a toolchain or minutes, and any block in another language but ``text``, has an
HTML comment above it: ``<!-- not run: REASON -->``.
"""

import ast
import contextlib
import doctest
import importlib
import json
import linecache
import pkgutil
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from _pytest.mark import ParameterSet

import kproto.cli
import kproto.tools
from tests.docs.blocks import Block, blocks_of, commands_of
from tests.docs.shell import ROOT, Session, check, pages

pytest_plugins = ["pytester"]

# pytester forgets the modules that a test imported. The first two cannot be loaded a second time;
# the modules of the tools would come back with other classes of errors than those that are kept.
for module in (
    "numpy",
    "duckdb",
    *(each.name for each in pkgutil.iter_modules(kproto.tools.__path__, "kproto.tools.")),
    *(each.name for each in pkgutil.iter_modules(kproto.cli.__path__, "kproto.cli.")),
):
    with contextlib.suppress(ImportError):
        importlib.import_module(module)

RUN = ("python", "pycon", "console")
DATA: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "toml": tomllib.loads,
}


def run_page(page: str, pytester: pytest.Pytester, name: str = "page.md") -> list[Block]:
    """Run the blocks of a page in the current folder; returns those that were run or parsed."""
    namespace: dict[str, object] = {"__name__": "page"}
    done, files, lines = [], [], []

    def run_pytest(arguments: Sequence[str]) -> tuple[int, str]:
        # Rewriting assertions parses modules, where CPython 3.11 may raise SystemError while
        # another thread runs (gh-106905), and these tests have a broker's thread.
        plain = ("--assert=plain", "-p", "no:cacheprovider",
                 "-o", "asyncio_default_fixture_loop_scope=function")  # fmt: skip
        # In a process of its own: clients leave sockets behind, which would fail this test.
        result = pytester.run(sys.executable, "-m", "pytest", *plain, *arguments, timeout=120)
        return int(result.ret), "\n".join(result.outlines)

    with Session(run_pytest) as session:
        for number, block in enumerate(blocks_of(page), 1):
            where = f"{name}:{block.line}"
            if block.reason:
                for line, _ in commands_of(block) if block.language in ("console", "sh") else []:
                    check(line)
                continue
            if block.title:
                Path(block.title).write_text(session.real(block.text))
                files.append(block.title)
            if block.language in DATA:
                DATA[block.language](block.text)
            elif block.language == "python" and not block.title:
                if _takes_fixtures(block.text):
                    Path(f"test_{number}.py").write_text(session.real(block.text))
                    code, printed = run_pytest(["-q", f"test_{number}.py"])
                    assert code == 0, f"{where}\n{printed}"
                else:
                    _execute(session.real(block.text), namespace, where)
            elif block.language == "pycon":
                _run_doctest(session.real(block.text), namespace, where)
            elif block.language == "console":
                commands = commands_of(block)
                assert commands, f"{where}: a console block has lines that begin with $"
                for index, (line, shown) in enumerate(commands, 1):
                    session.run(line, shown, block.code if index == len(commands) else 0)
            elif block.language == "sh":
                for line, _ in commands_of(block):
                    check(line)
            else:
                assert block.title or block.language in ("", "text"), (
                    f"{where}: say why this is not run"
                )
                continue
            lines += [line for line, _ in commands_of(block)]
            done.append(block)
    unused = [file for file in files if not any(file in line for line in lines)]
    assert unused == [], f"{name}: no command uses these files"
    return done


def _takes_fixtures(source: str) -> bool:
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and node.args.args
        for node in ast.parse(source).body
    )


def _execute(text: str, namespace: dict[str, object], where: str) -> None:
    linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)
    exec(compile(text, where, "exec"), namespace)


def _run_doctest(text: str, namespace: dict[str, object], where: str) -> None:
    examples = doctest.DocTestParser().get_doctest(text, namespace, where, None, 0)
    examples.globs = namespace  # not its copy: later blocks use what this one defines
    out: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(
        examples, out=out.append, clear_globs=False
    )
    assert out == [], "".join(out)


def _cases() -> Iterator[ParameterSet]:
    for page in pages():
        blocks = [*blocks_of((ROOT / page).read_text())]
        starts = any(block.language == "console" or "mock_kafka" in block.text for block in blocks)
        if blocks:
            yield pytest.param(str(page), marks=[pytest.mark.slow] if starts else [])


@pytest.mark.parametrize("page", [*_cases()])
def test_the_page_is_true(page: str, pytester: pytest.Pytester) -> None:
    for folder in ("schemas", "tests", "demo"):
        (pytester.path / folder).symlink_to(ROOT / folder)
    text = (ROOT / page).read_text()
    done = run_page(text, pytester, page)
    wanted = [block for block in blocks_of(text) if block.language in (*RUN, "sh", *DATA)]
    assert done or all(block.reason for block in wanted)


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("```python\nassert 1 == 2, 'sums'\n```", "sums"),
        ("```pycon\n>>> 1 + 1\n3\n```", "Got:\n +2"),
        ("```python\ndef test_it(tmp_path):\n    assert not tmp_path\n```", "1 failed"),
        ('```python title="a.py"\n```', "no command uses"),
        ("```console\n$ kproto show HeartbeatRequest 9\n...\n```", "exit code"),
        ("```console\n$ kproto --version\nkproto 17\n```", "kproto --version"),
        ("```console\n$ curl localhost\n```", "only cat"),
        ("```console\nkproto --version\n```", "begin with"),
        ("```sh\nkproto show --dialects kafka\n```", "No such option"),
        ("```sh\nmockbroker scenario walk\n```", "No such command"),
        ("```sh\nkproto show\n```", "Missing argument"),
        ("<!-- not run: x -->\n```sh\nkproto swow\n```", "No such command"),
        ("```sh\nmake tset\n```", "no such target"),
        ("```sh\npip install 'kproto[tls,wire]'\n```", "no such extra"),
        ("```go\n```", "say why"),
    ],
)
def test_what_is_wrong_on_a_page_is_found(page, message, pytester):
    with pytest.raises(AssertionError, match=message):
        run_page(page, pytester)


@pytest.mark.slow
def test_what_is_right_on_a_page_passes(pytester: pytest.Pytester) -> None:
    done = run_page(
        """\
        ```json title="faults.json"
        [{"api": "Heartbeat", "error": 27}]
        ```

        ```console
        $ mockbroker serve --brokers 1 --faults faults.json --control 127.0.0.1:9000
        {"bootstrap": "127.0.0.1:9092", "brokers": {"1": "127.0.0.1:9092"}, "control": ...}
        $ mockbroker ctl http://127.0.0.1:9000 state --json
        {"controller": 1, ...}
        $ kproto admin topics --bootstrap-server 127.0.0.1:9092 --list
        $ kproto encode HeartbeatRequest 0 '{"groupId":"g","generationId":7,"memberId":""}' | cat
        000167000000070000
        ```

        ```python
        address = "127.0.0.1:9092"
        ```

        ```pycon
        >>> address
        '127.0.0.1:...'
        ```

        <!-- not run: needs Go -->
        ```go
        ```

        <!-- exits with 2 -->
        ```console
        $ kproto show
        kproto: Missing argument ...
        ```
        """,
        pytester,
    )
    assert [block.language for block in done] == ["json", "console", "python", "pycon", "console"]
