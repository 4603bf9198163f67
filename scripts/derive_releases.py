"""Write ``schemas/releases.json``: what a broker of each Kafka release advertises to clients, and
``schemas/controllers.json``: what a KRaft controller does.

Knows which releases there are, which broker modes each has, and the two facts that a release's
client jar cannot tell (see ``EXTRA``). Everything else comes out of the release itself: every jar
is loaded by ``scripts/java/AdvertisedApis.java``, which makes the call that brokers of that era
make to build their ApiVersions response. Knows nothing of message layouts.

    python scripts/derive_releases.py             # writes both files
    python scripts/derive_releases.py --check     # fails if one of them would change

Needs a JDK (11 or newer) and Maven; the jars (about 120 MB) are kept in ``.cache/releases``.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["RELEASES", "derive", "main", "render"]

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "schemas" / "releases.json"
CONTROLLERS = ROOT / "schemas" / "controllers.json"
CACHE = ROOT / ".cache" / "releases"
PROGRAM = ROOT / "scripts" / "java" / "AdvertisedApis.java"
SLF4J = "1.7.36"
DOWNLOAD_ATTEMPTS = 3

RELEASES: tuple[str, ...] = (
    "0.10.0.1", "0.10.1.1", "0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1",
    "2.0.1", "2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2",
    "3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.2",
    "4.0.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0",
)  # fmt: skip
"""The last patch of every minor release on Maven Central on 2026-11-21. ApiVersions appeared in
0.10.0 (KIP-35)."""

ENVELOPE = {58: (0, 0)}
EXTRA: dict[tuple[str, str], dict[int, tuple[int, int]]] = {
    ("2.8", "kraft"): ENVELOPE,
    ("3.0", "kraft"): ENVELOPE,
    ("3.1", "kraft"): ENVELOPE,
}
"""What the broker adds to the ranges of its ApiVersionsResponse class: in 2.8 to 3.1,
``kafka.server.DefaultApiVersionManager.apiVersionResponse`` adds ENVELOPE if the broker forwards
requests, which every KRaft broker does."""

PREVIEW = {"2.8", "3.0", "3.1", "3.2"}
"""Releases whose KRaft mode was early access or preview; 3.3 declared it ready (KIP-833)."""

ASSUMES = [
    "inter-broker protocol, feature levels and record format at the release's own newest",
    "unstable.api.versions.enable is off, where the release has that switch",
    "no client telemetry receiver is configured, so 71 and 72 are not advertised",
    "a KRaft broker is a process of its own and has forwarded a request to its controller, which "
    "runs the same release: what it forwards is advertised in the versions both take (up to 3.1 a "
    "broker that has not, or that is its own controller, shows a key more or less)",
    "a ZooKeeper broker is not migrating to KRaft",
]
"""Held against the ApiVersions responses of brokers started from the releases' own jars: 2.4.1 and
3.9.2 on ZooKeeper, 3.1.2 (broker apart from its controller), 3.9.2 and 4.4.0 on KRaft: equal."""

CONTROLLERS_ASSUME = ["unstable.api.versions.enable is off, where the release has that switch"]
"""Equal to the ApiVersions responses of 3.9.2 and 4.4.0 whose brokers are their own controllers;
controllers apart from brokers were not compared."""


def profile_name(line: str, mode: str, dual: bool) -> str:
    """Return ``kafka-3.9``, which is KRaft if the release has both modes, or ``kafka-3.9-zk``."""
    return f"kafka-{line}-zk" if dual and mode == "zk" else f"kafka-{line}"


def minor(release: str) -> str:
    """Turn ``0.10.2.2`` into ``0.10.2`` and ``2.4.1`` into ``2.4``; 0.11.0 had no sibling and keeps
    its 0."""
    return release.rpartition(".")[0]


def download(releases: Sequence[str], cache: Path) -> None:
    """Download the jars that ``cache`` lacks, with Maven. Raises CalledProcessError."""
    wanted = [("org.apache.kafka", "kafka-clients", release) for release in releases]
    wanted.append(("org.slf4j", "slf4j-api", SLF4J))
    lacking = [item for item in wanted if not (cache / f"{item[1]}-{item[2]}.jar").exists()]
    if not lacking:
        return
    cache.mkdir(parents=True, exist_ok=True)
    items = "".join(
        f"<artifactItem><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></artifactItem>"
        for group, artifact, version in lacking
    )
    pom = cache / "pom.xml"
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>kproto</groupId>"
        "<artifactId>releases</artifactId><version>1</version><packaging>pom</packaging>"
        "<build><plugins><plugin><groupId>org.apache.maven.plugins</groupId>"
        "<artifactId>maven-dependency-plugin</artifactId><configuration>"
        f"<outputDirectory>{cache}</outputDirectory><artifactItems>{items}</artifactItems>"
        "</configuration></plugin></plugins></build></project>"
    )
    command = ["mvn", "-B", "-q", "-f", str(pom), "dependency:copy"]
    for attempt in range(1, DOWNLOAD_ATTEMPTS + 1):
        # Mirrors of Central fail occasionally; Maven's own repository keeps what has arrived.
        if subprocess.run(command, check=attempt == DOWNLOAD_ATTEMPTS).returncode == 0:
            return


def ask_java(releases: Sequence[str], cache: Path) -> Iterable[tuple[str, str, str, str]]:
    """Return (release, mode, call, ranges) for each broker mode of each release, and for the mode
    "controller"."""
    jars = [str(cache / f"kafka-clients-{release}.jar") for release in releases]
    command = ["java", str(PROGRAM), str(cache / f"slf4j-api-{SLF4J}.jar"), *jars]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{PROGRAM.name} failed:\n{done.stderr}")
    for row in done.stdout.splitlines():
        jar, mode, call, ranges = row.split("\t")
        yield jar.removeprefix("kafka-clients-").removesuffix(".jar"), mode, call, ranges


@functools.cache
def _rows(releases: tuple[str, ...], cache: Path) -> Sequence[tuple[str, str, str, str]]:
    download(releases, cache)
    return list(ask_java(releases, cache))


def derive(
    releases: Sequence[str] = RELEASES, cache: Path = CACHE, *, controllers: bool = False
) -> dict[str, Any]:
    """Return the brokers of those releases by the profile's name, in the form of
    ``releases.json``, or their ``controllers``."""
    rows = _rows(tuple(releases), cache)
    dual = {release for release, mode, _, _ in rows if mode == "zk"} & {
        release for release, mode, _, _ in rows if mode == "kraft"
    }
    profiles: dict[str, Any] = {}
    for release, found, call, ranges in rows:
        if controllers != (found == "controller"):
            continue
        line, mode = minor(release), "kraft" if controllers else found
        apis: dict[int, tuple[int, int]] = {}
        for item in ranges.split():
            key, _, span = item.partition(":")
            lowest, _, highest = span.partition("-")
            apis[int(key)] = (int(lowest), int(highest))
        obtained = f"{call} of kafka-clients {release}, called in Java"
        extra = {} if controllers else EXTRA.get((line, mode), {})
        if extra:
            keys = ", ".join(map(str, extra))
            obtained += f"; {keys} as DefaultApiVersionManager of that release's broker adds it"
        if mode == "kraft" and line in PREVIEW:
            obtained += "; KRaft was not yet for production"
        profiles[profile_name(line, mode, release in dual)] = {
            "release": release,
            "mode": mode,
            "obtained": obtained,
            "apis": dict(sorted({**apis, **extra}.items())),
        }
    return profiles


def render(profiles: dict[str, Any], assumes: Sequence[str] = ASSUMES) -> str:
    """Return the file's text, one API per line, so that a diff shows a release's changes."""
    out = ["{", '  "format": 1,', f'  "assumes": {_lines(map(json.dumps, assumes), 2, "[]")},']
    entries = []
    for name, profile in profiles.items():
        fields = [
            f"{json.dumps(key)}: {json.dumps(profile[key])}"
            for key in ("release", "mode", "obtained")
        ]
        apis = [f'"{key}": [{span[0]}, {span[1]}]' for key, span in profile["apis"].items()]
        fields.append(f'"apis": {_lines(apis, 6, "{}")}')
        entries.append(f"{json.dumps(name)}: {_lines(fields, 4, '{}')}")
    out += [f'  "profiles": {_lines(entries, 2, "{}")}', "}"]
    return "\n".join(out) + "\n"


def _lines(items: Iterable[str], indent: int, brackets: str) -> str:
    pad = " " * indent
    body = ",\n".join(f"{pad}  {item}" for item in items)
    return f"{brackets[0]}\n{body}\n{pad}{brackets[1]}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Derive schemas/releases.json from Kafka's jars.")
    parser.add_argument(
        "--check", action="store_true", help="compare only; exit with 1 on a difference"
    )
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder to keep the jars in")
    options = parser.parse_args(arguments)
    texts = {
        OUTPUT: render(derive(cache=options.cache)),
        CONTROLLERS: render(derive(cache=options.cache, controllers=True), CONTROLLERS_ASSUME),
    }
    for path, text in texts.items():
        if not options.check:
            path.write_text(text)
        elif path.read_text() != text:
            print(f"{path} differs from what the releases say; run {__file__}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
