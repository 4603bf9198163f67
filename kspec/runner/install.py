"""Install clients: fetch a release, build its adapter, and return the command that starts it.

Each has a folder of the cache (``builds``), by the hash of its inputs, so that a second run
installs nothing and a changed manifest or adapter installs anew.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kproto.builds import built, download, run
from kproto.errors import AbsentError
from kspec.client_catalog import Client
from kspec.client_catalog import client as client_named
from kspec.runner import toolchains
from kspec.runner.librdkafka import built_library, package_config

__all__ = ["Launch", "install"]

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "kspec" / "adapters"


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start an adapter: command, working directory and additional environment."""

    command: tuple[str, ...]
    cwd: Path | None
    environment: dict[str, str] = field(default_factory=dict)


def install(client: Client) -> Launch:
    """Install ``client`` if necessary. Raises AbsentError if this machine cannot run it."""
    missing = toolchains.missing(list(client.toolchains))
    if missing:
        raise AbsentError("; ".join(missing))
    return _INSTALLERS[client.language](client)


# ---- one function per language -------------------------------------------------------------------


def _python(client: Client) -> Launch:
    module = f"kspec.adapters.python.{client.adapter}_adapter"
    path = [str(ROOT)]
    environment = {"PYTHONHASHSEED": "0"}  # what a client keeps in a set has one order
    if client.packages:
        environment |= _packaged(client)
    elif client.release and not _is_importable(client):
        requirement = f"{client.registered}=={client.release}"

        def build(folder: Path) -> None:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
            run([*command, requirement], cwd=ROOT)

        path.insert(0, str(_built(client, [requirement, sys.version], build)))
    command = (sys.executable, "-W", "ignore", "-m", module)
    return Launch(command, ROOT, {"PYTHONPATH": os.pathsep.join(path), **environment})


def _packaged(client: Client) -> dict[str, str]:
    """Return the environment in which the command of the same name runs.

    Debian packages are unpacked into the cache rather than installed, which needs no privileges and
    leaves the system unchanged.
    """
    if toolchains.find(client.name) is not None:
        return {}
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise AbsentError("; ".join(toolchains.missing([client.name])))

    def build(folder: Path) -> None:
        download(client.packages, folder)
        for package in folder.glob("*.deb"):
            run(["dpkg-deb", "-x", str(package), str(folder)], cwd=folder)
            package.unlink()
        command = str(folder / "usr" / "bin" / client.name)
        # This shows whether the machine has the libraries that are not among the packages.
        run(
            [command, *toolchains.TOOLCHAINS[client.name].version_arguments],
            folder,
            _unpacked(folder),
        )

    return _unpacked(_built(client, [*client.packages, client.release], build))


def _unpacked(folder: Path) -> dict[str, str]:
    libraries = {str(path.parent) for path in folder.glob("usr/lib/**/*.so*")}
    return {
        "PATH": os.pathsep.join([str(folder / "usr" / "bin"), os.environ.get("PATH", "")]),
        "LD_LIBRARY_PATH": os.pathsep.join(sorted(libraries)),
    }


def _is_importable(client: Client) -> bool:
    """Return whether this interpreter already has exactly the catalog's release."""
    try:
        return importlib.metadata.version(client.registered) == client.release
    except importlib.metadata.PackageNotFoundError:
        return False


_QUIET: Final = ("--no-audit", "--no-fund", "--loglevel=error")


def _node(client: Client) -> Launch:
    _check_node(client)
    source = SOURCES / "node"
    files = sorted(source.glob("*.mjs" if client.apart else "*.*"))
    packages = _node_packages(client) if client.apart else None

    def build(folder: Path) -> None:
        for file in files:
            shutil.copy(file, folder)
        if packages is not None:
            return (folder / "node_modules").symlink_to(packages)
        # `ci` installs what the lock file says or fails. Its only engine warning is about a minor
        # release of Node on which the package does run.
        run(["npm", "ci", *_QUIET], cwd=folder)
        if client.chosen:
            package = f"{client.registered}@{client.release}"
            run(["npm", "install", "--no-save", *_QUIET, package], cwd=folder)

    made_of = [*(file.read_text() for file in files), toolchains.find("node") or ""]
    of_packages = [str(packages)] if packages else _chosen(client)
    name = None if client.apart else "node"
    folder = _built(client, [*made_of, *of_packages], build, name=name)
    node = str(packages / "node" / "bin" / "node") if packages and client.node else "node"
    return Launch((node, f"{client.adapter}_adapter.mjs"), folder)


def _node_packages(client: Client) -> Path:
    """Install a client that is not in the manifest, because it compiles for minutes or because npm
    has to bring another Node.js. Return its folder of packages, which no adapter is a part of."""
    wanted = [f"{client.registered}@{client.release}"]
    wanted += [f"node@{client.node}"] if client.node else []
    # What compiles looks for the headers beside this Node.js rather than on the internet.
    prefix = Path(shutil.which("node") or "").resolve().parents[1]
    headers = [f"--nodedir={prefix}"] if (prefix / "include" / "node").is_dir() else []

    def build(folder: Path) -> None:
        run(["npm", "install", "--no-package-lock", *_QUIET, *headers, *wanted], cwd=folder)

    found = _built(client, [*wanted, toolchains.find("node") or ""], build, name="node-packages")
    return found / "node_modules"


def _check_node(client: Client) -> None:
    text = toolchains.find("node") or ""
    numbers = [int(part) for part in text.lstrip("v").split(".")[:2] if part.isdigit()]
    if client.oldest_node is not None and tuple(numbers) < client.oldest_node:
        wanted = ".".join(map(str, client.oldest_node))
        raise AbsentError(f"needs Node.js {wanted} or newer, but this is {text}; see nodejs.org")


def _java(client: Client) -> Launch:
    source = SOURCES / "java"
    pom, adapters = source / "pom.xml", sorted(source.glob("*.java"))

    def build(folder: Path) -> None:
        shutil.copy(pom, folder)
        run(
            [
                "mvn", "-B", "-q", "dependency:copy-dependencies", "-DincludeScope=runtime",
                f"-Dkafka.version={client.release}", f"-DoutputDirectory={folder / 'lib'}",
            ],
            cwd=folder,
        )  # fmt: skip
        jars = str(folder / "lib" / "*")
        names = [str(each) for each in adapters]
        run(["javac", "-nowarn", "-cp", jars, "-d", str(folder), *names], cwd=folder)

    sources = [each.read_text() for each in (pom, *adapters)]
    made_of = [*sources, client.release, toolchains.find("java") or ""]
    folder = _built(client, made_of, build)
    path = os.pathsep.join([str(folder), str(folder / "lib" / "*")])
    # An adapter lives for a few cases, so it must start fast. The JVM chooses the heap size, as in
    # a client's program; the adapter reports these options and the maximum heap size.
    options = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
    return Launch(("java", *options, "-cp", path, client.adapter), folder)


def _go(client: Client) -> Launch:
    """Each adapter is built of the shared package and its own alone: Go compiles what they share
    once, and a machine that cannot build one client has the others."""
    source = SOURCES / "go"
    own = [*source.glob("go.*"), *source.glob("lines/*.go"), *source.glob(f"{client.adapter}/*.go")]
    files = sorted(own)

    def build(folder: Path) -> None:
        made = source
        if client.chosen:
            made = folder / "source"
            shutil.copytree(source, made)
            _choose_module(client, made)
        run(
            ["go", "build", "-trimpath", "-o", str(folder) + os.sep, f"./{client.adapter}"],
            cwd=made,
        )

    tools = [toolchains.find(each) or "" for each in client.toolchains]
    made_of = [*(file.read_text() for file in files), *tools]
    folder = _built(client, [*made_of, *_chosen(client)], build)
    return Launch((str(folder / client.adapter),), folder)


def _choose_module(client: Client, source: Path) -> None:
    """Change the module's release in the sources of an adapter. Other modules may need a newer one,
    and Go then takes that."""
    wanted = f"v{client.release.removeprefix('v')}"
    run(["go", "get", f"{client.registered}@{wanted}"], cwd=source)
    run(["go", "mod", "tidy"], cwd=source)
    listing = ["go", "list", "-m", "-f", "{{.Version}}", client.registered]
    found = subprocess.run(listing, cwd=source, capture_output=True, text=True).stdout.strip()
    if found != wanted:
        raise AbsentError(f"the adapter's other modules need {client.registered} {found} or newer")


def _rust(client: Client) -> Launch:
    source = SOURCES / "rust" / client.adapter
    files = [source / "Cargo.toml", *sorted((source / "src").glob("*.rs"))]
    release = client_named(client.engine).release if client.engine else ""
    library = built_library(release) if release else None

    def build(folder: Path) -> None:
        (folder / "src").mkdir()
        for file in files:
            shutil.copy(file, folder / file.relative_to(source))
        if client.chosen:
            requirement = f"{client.registered}@={client.release}"
            run(["cargo", "add", "--quiet", requirement], cwd=folder)
        environment = {}
        if library is not None:
            (folder / "rdkafka.pc").write_text(package_config(library, release))
            environment = {"PKG_CONFIG_PATH": str(folder)}
        run(["cargo", "build", "--release", "--quiet"], folder, environment)
        shutil.copy(folder / "target" / "release" / "kspec-adapter", folder)
        shutil.rmtree(folder / "target")  # hundreds of megabytes that are no longer needed

    made_of = [*(file.read_text() for file in files), toolchains.find("rust") or ""]
    made_of += [] if library is None else [str(library)]
    folder = _built(client, [*made_of, *_chosen(client)], build)
    return Launch((str(folder / "kspec-adapter"),), folder)


def _c(client: Client) -> Launch:
    source = SOURCES / "c"
    library = built_library(client.release)

    def build(folder: Path) -> None:
        made = folder / client.adapter
        run(["make", "-s", "-C", str(source), f"LIBRDKAFKA={library}", f"OUT={made}"], cwd=folder)

    tools = [toolchains.find(each) or "" for each in client.toolchains]
    sources = [each.read_text() for each in sorted(source.iterdir())]
    folder = _built(client, [*sources, *tools, str(library)], build)
    return Launch((str(folder / client.adapter),), folder)


_INSTALLERS: dict[str, Callable[[Client], Launch]] = {
    "python": _python,
    "node": _node,
    "java": _java,
    "go": _go,
    "rust": _rust,
    "c": _c,
}


def _chosen(client: Client) -> list[str]:
    """What a folder is made of besides the sources, if the release is not that of the manifests."""
    return [client.registered, client.release] if client.chosen else []


# ---- folders -------------------------------------------------------------------------------------


def _built(
    client: Client, made_of: Iterable[str], build: Callable[[Path], None], name: str | None = None
) -> Path:
    label = name or client.name.strip("@").replace("/", "-").replace("@", "-")
    return built(f"kspec/{label}", made_of, build)
