"""A page for a client's maintainers: what each finding says, in Markdown and in HTML."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from kspec.cli import commands
from kspec.report.maintainers import inline

WRONG = "wrong:ignores-the-top-level-error"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out")
    CliRunner().invoke(commands, ["run", "--case", "reassignment/004", "--case", "reassignment/010",
                                  "--client", "reference", "--client", WRONG, "--once",
                                  "--out", str(out)])  # fmt: skip
    return out


def page(run: Path, *options: str) -> str:
    words = ["report", str(run), "--client", WRONG, "--for-maintainers", *options]
    done = CliRunner().invoke(commands, words)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.slow
def test_a_finding_has_a_rule_the_traffic_a_reproducer_and_the_others(run):
    text = page(run)
    assert text.startswith(f"# {WRONG} 1: findings for its maintainers\n")
    assert "2 failed, of 2 causes" in text
    first = text[text.index("## 1. ") :]
    assert "Severity: wrong result. Seen in case reassignment/004." in first
    assert "**Rule.** " in first
    assert "Source: [KIP-455](https://cwiki.apache.org/" in first
    assert "**Observed.** `" in first, "the judge's words, where nobody explained it"
    assert re.search(r"broker \d <- .* AlterPartitionReassignments v\d", first)
    assert re.search(r"^    [0-9a-f]{8}( [0-9a-f]{1,8})+", first, re.M), "bytes"
    assert f"there is no template for {WRONG}" in first
    assert f"kspec run --client {WRONG} --case reassignment/004 --out report" in first
    assert "**Other clients in this case.** pass: reference." in first


@pytest.mark.slow
def test_the_page_has_the_program_of_a_client_with_a_template(run, tmp_path):
    results = json.loads((run / "results.json").read_text())
    text = json.dumps(results).replace(WRONG, "kafka-python")
    (tmp_path / "results.json").write_text(text)
    words = ["report", str(tmp_path), "--client", "kafka-python", "--for-maintainers"]
    found = CliRunner().invoke(commands, words).stdout
    assert "```sh\nmockbroker serve --listen 127.0.0.1:9092" in found
    assert "```yaml\n# faults.yaml\n- " in found
    assert "```python\n# repeat.py\n" in found
    assert "**On the wire.**" not in found, "the folder has no journals"


@pytest.mark.slow
def test_a_journal_whose_last_line_is_incomplete_is_reported(run, tmp_path):
    torn = tmp_path / "run"
    shutil.copytree(run, torn)
    for journal in torn.rglob("*.jsonl"):
        journal.write_bytes(journal.read_bytes()[:-9])
    words = ["report", str(torn), "--client", WRONG, "--for-maintainers"]
    done = CliRunner().invoke(commands, words)
    assert done.exit_code == 0
    assert ": 1 truncated file: its last line is incomplete" in done.stderr
    assert (
        "truncated" not in CliRunner().invoke(commands, [*words[:1], str(run), *words[2:]]).stderr
    )


def test_an_adapter_of_ones_own_has_its_name_and_the_command_that_ran_it(run, tmp_path):
    results = json.loads((run / "results.json").read_text())
    results["clients"][WRONG] |= {"name": "kafka-mine", "selection": "--adapter 'node mine.mjs'"}
    (tmp_path / "results.json").write_text(json.dumps(results))
    text = page(tmp_path)
    assert text.startswith("# kafka-mine 1: findings for its maintainers\n")
    assert "there is no template for kafka-mine" in text
    assert "kspec run --adapter 'node mine.mjs' --case reassignment/004 --out report" in text


@pytest.mark.slow
def test_html_says_the_same(run, tmp_path):
    (tmp_path / "pages").mkdir()
    page(run, "--out", str(tmp_path / "pages" / "a.html"))
    page(run, "--out", str(tmp_path / "pages" / "a.md"))
    html = (tmp_path / "pages" / "a.html").read_text()
    assert "<h2>1. " in html
    assert '<a href="https://cwiki.apache.org/' in html
    assert "<b>Rule.</b>" in html
    assert html.count("<h2>") == (tmp_path / "pages" / "a.md").read_text().count("\n## ")


def test_markup_of_a_client_stays_text():
    assert inline("a <b> [x](https://e.example/) `<c>` **d**") == (
        'a &lt;b&gt; <a href="https://e.example/">x</a> <code>&lt;c&gt;</code> <b>d</b>'
    )


def test_a_client_that_was_not_played_is_an_error(run):
    words = ["report", str(run), "--client", "kcat", "--for-maintainers"]
    done = CliRunner().invoke(commands, words)
    assert done.exit_code != 0
    assert "'kcat' is not in this run; it has reference, " in str(done.exception)
