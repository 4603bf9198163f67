"""Create ``.venv`` and install this project into it. Standard library only, Python 3.7 or newer.

It works where Debian's python3 lacks ``ensurepip`` (the package ``python3-venv``): each way of
getting pip into an environment is tried in turn, and if none works the error names what is missing
and how to install it. A stamp inside ``.venv`` makes the next run instant. Bytecode of the packages
is written here: an editable install has none, and where PYTHONDONTWRITEBYTECODE is set (as in many
containers) every start would compile them again.

    python3 scripts/bootstrap.py                    # everything that tests and the demo need
    python3 scripts/bootstrap.py --with bench       # and the peers of `make bench`
    python3 scripts/bootstrap.py --with fuzz        # and the guides of `make fuzz`
    python3 scripts/bootstrap.py --with docs        # and the generator of `make docs`
    python3 scripts/bootstrap.py --with bundle      # and PyInstaller, for `make bundle`
    python3 scripts/bootstrap.py --packages-of PYTHON  # kproto alone, beside PYTHON's packages

Environment: ``KPROTO_PYTHON`` names the interpreter to build on; ``KPROTO_REQUIRE=all`` makes it an
error, not a warning, if a real client cannot be installed. Exits with 1 if the set-up fails.
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
REQUIRED_EXTRAS = ["dev"]
OPTIONAL_EXTRAS = ["mock", "clients", "spark", "browser"]
COMPILERS = ["cc", "gcc", "clang", "cl"]
ATTEMPTS = 3
SHOWN_LINES = 12


class SetupError(Exception):
    """The set-up cannot continue; the text says what is missing and how to install it."""


def say(text: str) -> None:
    print("bootstrap: " + text, file=sys.stderr, flush=True)


def run(command: list[str], quiet: bool = False) -> bool:
    """Run ``command``; True if it exits with 0. ``quiet`` hides its output."""
    sink = subprocess.DEVNULL if quiet else None
    try:
        return subprocess.call(command, stdout=sink, stderr=sink) == 0
    except OSError:
        return False


def run_captured(command: list[str]) -> tuple[bool, str]:
    """Whether ``command`` exits with 0, and its output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode == 0, done.stdout.decode(errors="replace")


# ---- which Python -----------------------------------------------------------------------------


def version_of(python: str) -> tuple[int, int] | None:
    """(major, minor) of an interpreter; None if it does not start."""
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
    """The first interpreter that is new enough. Raises SetupError with a list of those found."""
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


# ---- an environment with pip ------------------------------------------------------------------


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
    """Let the system's pip (22.3 or newer) install pip into a bare environment."""
    return bare_venv(python) and run(
        [python, "-m", "pip", "--python", venv_python(), "install", "--quiet", "pip"], quiet=True
    )


def with_virtualenv(python: str) -> bool:
    return run([python, "-m", "virtualenv", "--quiet", str(VENV)], quiet=True) or run(
        ["virtualenv", "--quiet", "--python", python, str(VENV)], quiet=True
    )


def with_wheels(python: str) -> bool:
    """Run the distribution's own pip wheel in place."""
    wheels = sorted(glob.glob("/usr/share/python-wheels/pip-*.whl"))
    return (
        bool(wheels)
        and bare_venv(python)
        and run([venv_python(), wheels[-1] + "/pip", "install", "--quiet", wheels[-1]], quiet=True)
    )


def with_apt(python: str) -> bool:
    """As root on Debian or Ubuntu, install the package that contains ensurepip."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    say("pip is not available; installing python3-venv with apt-get")
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
    """Create a working ``.venv``, replacing one that does not work."""
    for name, way in WAYS:
        if VENV.exists():
            shutil.rmtree(str(VENV))
        if way(python) and has_pip():
            say(f"created .venv with {python} ({name})")
            return
        say(f"{name}: not available")
    if VENV.exists():
        shutil.rmtree(str(VENV))
    raise SetupError(
        f"{python} cannot create a virtual environment with pip. Install one of these and run "
        "again: ensurepip (Debian, Ubuntu: apt-get install python3-venv), pip 22.3 or newer "
        "(apt-get install python3-pip), or virtualenv (pip install virtualenv)."
    )


def environment_works() -> bool:
    version = version_of(venv_python())
    return version is not None and version >= OLDEST and has_pip()


# ---- packages ---------------------------------------------------------------------------------


def install(extras: list[str], attempts: int = 1, *options: str) -> bool:
    """Run ``pip install -e .[extras]``, up to ``attempts`` times, as registries fail at times.

    Only the end of the last failed attempt's output is printed.
    """
    target = "{}[{}]".format(ROOT, ",".join(extras)) if extras else str(ROOT)
    # compat puts the checkout on the path. The default, an import hook at the path's end, loses to
    # any folder `kproto` in the current directory, such as the checkout seen from its parent.
    command = [venv_python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               "--retries", "5", "--config-settings", "editable_mode=compat",
               "--constraint", str(ROOT / "constraints.txt"),
               *options, "--editable", target]  # fmt: skip
    words = ""
    for attempt in range(1, attempts + 1):
        done, words = run_captured(command)
        if done:
            return True
        if attempt < attempts:
            say(f"pip failed (attempt {attempt} of {attempts}); trying again in {attempt * 3} s")
            time.sleep(attempt * 3)
    sys.stderr.write("\n".join(words.splitlines()[-SHOWN_LINES:]) + "\n")
    return False


def install_all(required: list[str], optional: list[str]) -> list[str]:
    """Install everything; returns the optional extras that could not be installed."""
    say("installing kproto with {}".format(", ".join(required + optional)))
    if install(required + optional, ATTEMPTS):
        return []
    say("pip failed; trying without {}".format(", ".join(optional)))
    if not install(required):
        raise SetupError(
            "pip could not install kproto[{}]; its messages are above. The first set-up needs "
            "access to a package registry.".format(",".join(required))
        )
    failed = [extra for extra in optional if not install([extra])]
    if failed and os.environ.get("KPROTO_REQUIRE") == "all":
        raise SetupError("pip could not install kproto[{}]".format(",".join(failed)))
    return failed


def set_up_beside(python: str) -> None:
    """Create ``.venv`` anew with kproto alone, beside the packages of another environment.

    Raises SetupError if that environment does not start, or pip fails.
    """
    make_environment(choose_python())
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    try:
        theirs, ours = (
            subprocess.check_output([name, "-c", code]).decode() for name in (python, venv_python())
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SetupError(f"{python} does not start: {error}") from None
    # Python reads no .pth file in a folder that it has from one: theirs has another checkout.
    Path(ours.strip(), "packages.pth").write_text(theirs)
    say(f"installing kproto beside the packages of {python}")
    if not install([], ATTEMPTS, "--no-deps"):
        raise SetupError("pip could not install kproto; its messages are above")
    report_engine()


def fingerprint(extras: list[str]) -> str:
    """A digest that changes whenever something else would be installed."""
    digest = hashlib.sha256(" ".join(sorted(extras)).encode())
    for name in ("pyproject.toml", "setup.py", "constraints.txt", "scripts/bootstrap.py"):
        digest.update((ROOT / name).read_bytes())
    # The native engine's sources, and the compilers: with a new one the build is tried again.
    for source in sorted((ROOT / "kproto" / "native").glob("*.[ch]")):
        digest.update(source.read_bytes())
    digest.update(str([shutil.which(name) for name in COMPILERS]).encode())
    # An editable install has this path, so a moved checkout needs a new one.
    digest.update(str(ROOT).encode())
    return digest.hexdigest()


def set_up(extras: list[str]) -> None:
    """Bring ``.venv`` up to date, unless the stamp says that it is."""
    stamp = STAMP.read_text().split() if STAMP.exists() else []
    installed = set(stamp[1:]) & {"bench", "bundle", "docs", "fuzz"}
    wanted = sorted(set(extras) | installed)
    mark = fingerprint(wanted)
    if stamp[:1] == [mark] and environment_works():
        return
    if not environment_works():
        make_environment(choose_python())
    optional = [extra for extra in wanted if extra not in REQUIRED_EXTRAS]
    failed = install_all(REQUIRED_EXTRAS, optional)
    if failed:  # no stamp: the next run tries again
        say("could not install {}; tests that need them are skipped".format(", ".join(failed)))
        return
    report_engine()
    STAMP.write_text(" ".join([mark, *wanted]) + "\n")


def compile_sources() -> None:
    """Write bytecode of files that changed; files that do not compile are ignored."""
    folders = [str(ROOT / name) for name in PACKAGES]
    run([venv_python(), "-m", "compileall", "-qq", *folders], quiet=True)


def report_engine() -> None:
    """Print kproto's note on its engine, if any: usually that the C engine was not built."""
    code = (
        "from kproto import engine, engine_note as note\nprint(note and f'{engine} engine: {note}')"
    )
    environment = {key: value for key, value in os.environ.items() if key != "KPROTO_ENGINE"}
    try:
        text = subprocess.check_output(
            [venv_python(), "-c", code], stderr=subprocess.DEVNULL, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return  # the checkout does not import; the next command reports that
    note = text.decode(errors="replace").strip()
    if note:
        say(note)


def fail(text: str) -> NoReturn:
    say("error: " + text)
    sys.exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Create .venv and install kproto into it.")
    parser.add_argument("--with", dest="more", action="append", default=[], metavar="EXTRA",
                        help="install another extra of pyproject.toml")  # fmt: skip
    parser.add_argument("--toolchains", action="store_true", help="list the language toolchains")
    parser.add_argument("--packages-of", metavar="PYTHON",
                        help="install kproto beside this interpreter's packages")  # fmt: skip
    arguments = parser.parse_args()
    try:
        if arguments.packages_of:
            set_up_beside(arguments.packages_of)
        else:
            set_up([*REQUIRED_EXTRAS, *OPTIONAL_EXTRAS, *arguments.more])
    except SetupError as error:
        fail(str(error))
    except OSError as error:  # a full disk, a read-only checkout
        fail(f"{error}; {VENV} must be writable")
    except KeyboardInterrupt:
        fail("interrupted; run again to continue")
    compile_sources()
    if arguments.toolchains:
        say("toolchains of this machine")
        print("\n".join(toolchains.report()), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
