"""Spark's settings from outside of the command: spark-submit, PYSPARK_SUBMIT_ARGS and
spark-defaults.conf. They take precedence over the command's own."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

__all__ = ["has_log_settings", "is_submitted", "outer_settings"]

_ALIASES = {"--master": "spark.master", "--name": "spark.app.name"}


def is_submitted() -> bool:
    """Whether spark-submit started this process, and with it the JVM."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def outer_settings() -> dict[str, str]:
    """Return names and values. Under spark-submit the JVM has all of them, always with
    ``spark.master``; otherwise they are those with which a JVM would start."""
    if is_submitted():
        from pyspark import SparkConf, SparkContext

        SparkContext._ensure_initialized()
        return dict(SparkConf().getAll())
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    file, set_ = _of_arguments(arguments)
    return {**_of_file(file or os.path.join(_conf_folder(), "spark-defaults.conf")), **set_}


def _of_arguments(arguments: list[str]) -> tuple[str | None, dict[str, str]]:
    """Return the file of ``--properties-file``, and the settings of spark-submit's other
    options."""
    file: str | None = None
    found: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        option, equals, value = word.partition("=")
        if option not in (*_ALIASES, "--conf", "-c", "--properties-file"):
            continue
        if not equals:
            value = next(words, "")
        if option == "--properties-file":
            file = value
        elif option in _ALIASES:
            found[_ALIASES[option]] = value
        else:
            name, _, text = value.partition("=")
            found[name.strip()] = text
    return file, found


def has_log_settings() -> bool:
    """Whether Spark's folder of settings has a configuration of its log."""
    names = "log4j2.properties", "log4j2.xml", "log4j2.yaml", "log4j2.json"
    return any(os.path.exists(os.path.join(_conf_folder(), name)) for name in names)


def _conf_folder() -> str:
    """Return Spark's folder of settings; without one, a path that does not exist."""
    home = os.environ.get("SPARK_HOME") or os.devnull
    return os.environ.get("SPARK_CONF_DIR") or os.path.join(home, "conf")


def _of_file(path: str) -> dict[str, str]:
    """Parse lines of a name and a value, separated by white space, ``=`` or ``:``."""
    try:
        text = Path(path).read_text()
    except OSError:
        return {}
    lines = (line.strip() for line in text.splitlines())
    pairs = (re.split(r"\s*[\s=:]\s*", line, maxsplit=1) for line in lines if line[:1] not in "#!")
    return {name: value for name, value, *_ in ([*pair, ""] for pair in pairs)}
