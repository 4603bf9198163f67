"""Make ``.venv`` and install this project into it. Standard library only, any Python 3.7 or newer.

Works where Debian's python3 has no ``ensurepip`` (no ``python3-venv`` package): each way of getting
pip into an environment is tried in turn, and if none works the message names what is missing and
how to get it. A stamp inside ``.venv`` makes a second run instant. Bytecode of the packages is
written here, because nothing else would: an editable install has none, and with
PYTHONDONTWRITEBYTECODE set (as in many containers) every start would compile them anew.

    python3 scripts/bootstrap.py                    # everything tests and the demo need
    python3 scripts/bootstrap.py --with bench       # and what `make bench` compares with
    python3 scripts/bootstrap.py --with fuzz        # and what guides `make fuzz`

Environment: ``KPROTO_PYTHON`` names the interpreter to build on; ``KPROTO_REQUIRE=all`` turns a
real client that does not install from a warning into an error. Exit 1 where set-up failed.
"""

from __future__ import annotations

import argparse
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Iterable, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kspec.runner import toolchains

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / ".kproto-stamp"
OLDEST = (3, 11)
NEWEST = 14
PACKAGES = ["kproto", "mockbroker", "wiredump", "kspec"]
REQUIRED_EXTRAS = ["dev", "control"]
OPTIONAL_EXTRAS = ["speed", "clients", "spark", "spark-connect", "browser"]
COMPILERS = ["cc", "gcc", "clang", "cl"]
ATTEMPTS = 3
SHOWN_LINES = 12


class SetupError(Exception):
    """Set-up cannot go on; the text says what is missing and how to get it."""


def say(text: str) -> None:
    print("bootstrap: " + text, file=sys.stderr, flush=True)


def run(command: list[str], quiet: bool = False) -> bool:
    """Run ``command``; True where it exits 0. ``quiet`` hides what a failed attempt prints."""
    sink = subprocess.DEVNULL if quiet else None
    try:
        return subprocess.call(command, stdout=sink, stderr=sink) == 0
    except OSError:
        return False


def run_captured(command: list[str]) -> tuple[bool, str]:
    """Whether ``command`` exits 0, and all that it printed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode == 0, done.stdout.decode(errors="replace")


# ---- which Python -----------------------------------------------------------------------------


def version_of(python: str) -> tuple[int, int] | None:
    """(major, minor) of an interpreter, None where it does not start."""
    code = "import sys; print(sys.version_info[0], sys.version_info[1])"
    try:
        text = subprocess.check_output([python, "-c", code], stderr=subprocess.DEVNULL)
        major, minor = text.split()
        return int(major), int(minor)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def candidates() -> Iterable[str]:
    named = os.environ.get("KPROTO_PYTHON")
    if named:
        yield named
        return
    yield sys.executable
    for minor in range(OLDEST[1], NEWEST + 1):
        found = shutil.which(f"python3.{minor}")
        if found:
            yield found


def choose_python() -> str:
    """The first interpreter that is new enough; SetupError lists what was seen otherwise."""
    seen = []
    for python in candidates():
        version = version_of(python)
        if version is not None and version >= OLDEST:
            return python
        seen.append("{} ({})".format(python, "does not start" if version is None else
                                     "{}.{}".format(*version)))  # fmt: skip
    raise SetupError(
        "Python {}.{} or newer is needed; found only {}. Install one (Debian 12 and newer: "
        "apt-get install python3 python3-venv; or python.org, pyenv, uv) and put it on PATH, "
        "or name it in KPROTO_PYTHON.".format(OLDEST[0], OLDEST[1], ", ".join(seen) or "none")
    )


# ---- an environment with pip, one way or another ------------------------------------------------


def venv_python() -> str:
    folder = "Scripts" if os.name == "nt" else "bin"
    return str(VENV / folder / "python")


def has_pip() -> bool:
    return run([venv_python(), "-m", "pip", "--version"], quiet=True)


def with_ensurepip(python: str) -> bool:
    return run([python, "-m", "venv", str(VENV)], quiet=True)


def bare_venv(python: str) -> bool:
    return run([python, "-m", "venv", "--without-pip", str(VENV)], quiet=True)


def with_system_pip(python: str) -> bool:
    """The system's pip installs another pip into the bare environment (pip 22.3 or newer)."""
    return bare_venv(python) and run(
        [python, "-m", "pip", "--python", venv_python(), "install", "--quiet", "pip"], quiet=True
    )


def with_virtualenv(python: str) -> bool:
    return run([python, "-m", "virtualenv", "--quiet", str(VENV)], quiet=True) or run(
        ["virtualenv", "--quiet", "--python", python, str(VENV)], quiet=True
    )


def with_wheels(python: str) -> bool:
    """A pip wheel that the distribution keeps on disk can be run in place, as a folder."""
    wheels = sorted(glob.glob("/usr/share/python-wheels/pip-*.whl"))
    return (
        bool(wheels)
        and bare_venv(python)
        and run([venv_python(), wheels[-1] + "/pip", "install", "--quiet", wheels[-1]], quiet=True)
    )


def with_apt(python: str) -> bool:
    """As root on Debian or Ubuntu, install the package that holds ensurepip."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    say("no way to get pip is at hand; installing python3-venv with apt-get")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for command in (["apt-get", "-qq", "update"], ["apt-get", "-qq", "-y", "install",
                                                   "python3-venv"]):  # fmt: skip
        try:
            subprocess.call(command, env=environment, stdout=subprocess.DEVNULL)
        except OSError:
            return False
    return with_ensurepip(python)


WAYS: list[tuple[str, Callable[[str], bool]]] = [
    ("venv with ensurepip", with_ensurepip),
    ("venv and the system's pip", with_system_pip),
    ("virtualenv", with_virtualenv),
    ("venv and the distribution's pip wheel", with_wheels),
    ("venv after installing python3-venv", with_apt),
]


def make_environment(python: str) -> None:
    """Leave a working ``.venv``; whatever stood there and does not work is replaced."""
    for name, way in WAYS:
        if VENV.exists():
            shutil.rmtree(str(VENV))
        if way(python) and has_pip():
            say(f"made .venv from {python} ({name})")
            return
        say(f"{name}: not possible here")
    if VENV.exists():
        shutil.rmtree(str(VENV))
    raise SetupError(
        f"{python} cannot make a virtual environment with pip. What is missing is one of: "
        "ensurepip (Debian, Ubuntu: apt-get install python3-venv), pip 22.3 or newer (apt-get "
        "install python3-pip), or virtualenv (pip install virtualenv). Install any of them and "
        "run again."
    )


def environment_works() -> bool:
    version = version_of(venv_python())
    return version is not None and version >= OLDEST and has_pip()


# ---- what goes in -------------------------------------------------------------------------------


def install(extras: list[str], attempts: int = 1) -> bool:
    """``pip install -e .[extras]``, tried again where the registry was out of reach.

    What pip says is shown when it gave up, and then its end: a build backend's warnings are not
    for the reader of a set-up that worked, nor six copies of one failure for anybody.
    """
    target = "{}[{}]".format(ROOT, ",".join(extras))
    # compat: the checkout is put on the path. The default, an import hook behind it, loses to any
    # folder called `kproto` in the current directory, such as this one seen from its parent.
    command = [venv_python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               "--retries", "5", "--config-settings", "editable_mode=compat",
               "--constraint", str(ROOT / "constraints.txt"),
               "--editable", target]  # fmt: skip
    words = ""
    for attempt in range(1, attempts + 1):
        done, words = run_captured(command)
        if done:
            return True
        if attempt < attempts:
            say(f"pip failed (attempt {attempt} of {attempts}); again in {attempt * 3} s")
            time.sleep(attempt * 3)
    sys.stderr.write("\n".join(words.splitlines()[-SHOWN_LINES:]) + "\n")
    return False


def install_all(required: list[str], optional: list[str]) -> list[str]:
    """Install everything; returns the optional extras that could not be had."""
    say("installing kproto with {}".format(", ".join(required + optional)))
    if install(required + optional, ATTEMPTS):
        return []
    say("that failed; once more without {}".format(", ".join(optional)))
    if not install(required):
        raise SetupError(
            "pip could not install kproto[{}]; its messages are above. A package registry must be "
            "in reach for the first set-up.".format(",".join(required))
        )
    failed = [extra for extra in optional if not install([extra])]
    if failed and os.environ.get("KPROTO_REQUIRE") == "all":
        raise SetupError("pip could not install kproto[{}]".format(",".join(failed)))
    return failed


def fingerprint(extras: list[str]) -> str:
    """Changes whenever what should be installed does."""
    digest = hashlib.sha256(" ".join(sorted(extras)).encode())
    for name in ("pyproject.toml", "setup.py", "constraints.txt", "scripts/bootstrap.py"):
        digest.update((ROOT / name).read_bytes())
    # What the native engine is built from, and by: one that was skipped is tried again.
    for source in sorted((ROOT / "kproto" / "native").glob("*.[ch]")):
        digest.update(source.read_bytes())
    digest.update(str([shutil.which(name) for name in COMPILERS]).encode())
    # An editable install points here: a moved checkout needs another.
    digest.update(str(ROOT).encode())
    return digest.hexdigest()


def set_up(extras: list[str]) -> None:
    """Bring ``.venv`` up to date; does nothing where the stamp says it is."""
    stamp = STAMP.read_text().split() if STAMP.exists() else []
    asked_before = set(stamp[1:]) & {"bench", "fuzz"}
    wanted = sorted(set(extras) | asked_before)
    mark = fingerprint(wanted)
    if stamp[:1] == [mark] and environment_works():
        return
    if not environment_works():
        make_environment(choose_python())
    optional = [extra for extra in wanted if extra not in REQUIRED_EXTRAS]
    failed = install_all(REQUIRED_EXTRAS, optional)
    if failed:  # no stamp: the next run tries again
        say("without {}: what needs them will be skipped".format(", ".join(failed)))
        return
    report_engine()
    STAMP.write_text(" ".join([mark, *wanted]) + "\n")


def compile_sources() -> None:
    """Write bytecode of files that changed; one that does not compile is for its reader to meet."""
    folders = [str(ROOT / name) for name in PACKAGES]
    run([venv_python(), "-m", "compileall", "-qq", *folders], quiet=True)


def report_engine() -> None:
    """Say in one line what there is to say of kproto's engine: most often that it is not in C."""
    code = (
        "from kproto import engine, engine_note as note\nprint(note and f'{engine} engine: {note}')"
    )
    environment = {key: value for key, value in os.environ.items() if key != "KPROTO_ENGINE"}
    try:
        text = subprocess.check_output(
            [venv_python(), "-c", code], stderr=subprocess.DEVNULL, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return  # a checkout that does not import, which whoever runs it next will see
    note = text.decode(errors="replace").strip()
    if note:
        say(note)


def fail(text: str) -> NoReturn:
    say("error: " + text)
    sys.exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make .venv and install kproto into it.")
    parser.add_argument("--with", dest="more", action="append", default=[], metavar="EXTRA")
    parser.add_argument("--toolchains", action="store_true", help="also list language toolchains")
    arguments = parser.parse_args()
    try:
        set_up([*REQUIRED_EXTRAS, *OPTIONAL_EXTRAS, *arguments.more])
    except SetupError as error:
        fail(str(error))
    except OSError as error:  # a full disk, a checkout that may not be written to
        fail(f"{error}; {VENV} has to be writable")
    except KeyboardInterrupt:
        fail("interrupted; run again to go on")
    compile_sources()
    if arguments.toolchains:
        say("toolchains of this machine")
        print("\n".join(toolchains.report()), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
