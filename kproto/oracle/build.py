"""Build class paths for ``Oracle.java``: jars by Maven, a folder per release, then ``javac``.

Where they are kept and how a download is retried is decided by ``kspec.runner.install``. Other
folders with a ``pom.xml`` and Java sources can be built the same way.
"""

from __future__ import annotations

import os
from pathlib import Path

from kproto.builds import built, run

__all__ = ["class_path"]

ORACLE = Path(__file__).resolve().parent / "java"

NATIVE_COMPRESSION = "org.rocksdb,com.github.luben"
"""Groups left out because they are large and no message class needs them."""


def class_path(release: str, folder: Path = ORACLE, leave_out: str = NATIVE_COMPRESSION) -> str:
    """Return the class path that runs the program in ``folder`` with the classes of Kafka
    ``release``.

    ``leave_out`` lists groups whose jars are not needed. Raises AbsentError with the tool's own
    message if Maven or javac fails.
    """
    pom, sources = folder / "pom.xml", sorted(folder.rglob("*.java"))

    def download(into: Path) -> None:
        command = [
            "mvn", "-B", "-q", "-f", str(pom), f"-Dkafka.version={release}",
            "dependency:copy-dependencies", "-DincludeScope=runtime",
            f"-DexcludeGroupIds={leave_out}", f"-DoutputDirectory={into}",
        ]  # fmt: skip
        run(command, cwd=folder)

    made_of = [release, pom.read_text("utf-8"), leave_out]
    jars = built(f"oracle/{release}-jars", made_of, download)

    def compiled(into: Path) -> None:
        run(["javac", "-d", str(into), "-cp", f"{jars}/*", *map(str, sources)], cwd=folder)

    made_of += [source.read_text("utf-8") for source in sources]
    classes = built(f"oracle/{release}-classes", made_of, compiled)
    return os.pathsep.join(map(str, [classes, *sorted(jars.glob("*.jar"))]))
