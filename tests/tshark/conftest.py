"""What the comparison came to, printed at the end."""

import pytest

FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> list[str]:
    return pytestconfig.stash.setdefault(FIGURES, [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    lines = config.stash.get(FIGURES, [])
    if lines:
        terminalreporter.section("tshark")
    for line in lines:
        terminalreporter.write_line(line)
