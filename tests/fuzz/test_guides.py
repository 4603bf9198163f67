"""How a worker is started, and what is told of its run."""

from fuzz import guides
from fuzz.targets import TARGETS


def test_a_worker_starts_while_its_program_is_open_for_writing():
    """As it is in a process that another thread forks in that moment, with `--jobs 2`."""
    program = guides.CACHE / "znodes-none.sh"
    program.parent.mkdir(parents=True, exist_ok=True)
    with program.open("ab"):
        ran = guides.fuzz_afresh(TARGETS["znodes"], "none", executions=50, seed=1)
    assert (ran.executions, ran.kept) == (50, "")
