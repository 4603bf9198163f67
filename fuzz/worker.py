"""The process that fuzzes one target: ``python -m fuzz.worker GUIDE TARGET ITSELF [ARGUMENT]...``.

``guides`` starts it in its own environment. The arguments are libFuzzer's, which both guides
understand. ``ITSELF`` is a program that starts this process again, which libFuzzer needs for
merging. The packages must not be imported before the guide is in place, so that imports of them are
inside functions.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from fuzz import bounds, instruments, mutations
from fuzz.targets import TARGETS, TargetModule, load

__all__ = ["main"]

ADDRESS_SPACE: Final = 3 << 30
"""Address space limit of a process without sanitizers, in bytes. Their shadow memory alone is
larger."""
CALLED_PLAINLY: Final = 0.5

Mutator = Callable[[bytes, int, int], bytes]


def main() -> None:
    guide, name, *arguments = sys.argv[1:]  # libFuzzer takes the first argument for its program
    target = TARGETS[name]
    bounds.save_time()
    if guide == "c":
        os.environ.pop("LD_PRELOAD")  # not for the programs that symbolise a stack
        driver = _driver()
        from fuzz.native.build import EXTENSIONS

        instruments.guide_in_c(EXTENSIONS)
        loaded = load(target)
        _assert_rebuilt(EXTENSIONS)
        driver.run(arguments, loaded.check, _mutator(loaded, driver))
        return
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    if guide == "python":
        import atheris

        instruments.guide_in_python(atheris, target.under_test)
        loaded = load(target)
        mutator = _mutator(loaded, atheris)
        extra: dict[str, Any] = {} if mutator is None else {"custom_mutator": mutator}
        atheris.Setup(arguments, loaded.check, **extra)
        atheris.Fuzz()
        return
    _blindly(load(target), arguments[1:])


def _driver() -> ModuleType:
    """It is already loaded (``native.build.environment``)."""
    from fuzz.native.build import DRIVER

    loader = importlib.machinery.ExtensionFileLoader("_driver", str(DRIVER))
    spec = importlib.util.spec_from_file_location("_driver", DRIVER, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _assert_rebuilt(extensions: dict[str, Path]) -> None:
    import kproto.native._engine  # noqa: F401 - whether it is ours
    import wiredump.native._quick  # noqa: F401

    for name, file in extensions.items():
        assert sys.modules[name].__file__ == str(file), f"{name} is another build"


def _mutator(loaded: TargetModule, guide: Any) -> Mutator | None:
    """The target's own mutation, as guides call it: half of the time, and the guide's own
    otherwise."""
    own = getattr(loaded, "mutate", None)
    if own is None:
        return None
    always = hasattr(guide, "mutate_plainly")  # the driver itself calls it half of the time

    def plainly(data: bytes, max_size: int) -> bytes:
        # Looked up here, as atheris replaces it when it starts.
        return bytes((guide.mutate_plainly if always else guide.Mutate)(data, max_size))

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if not always and rng.random() < CALLED_PLAINLY:
            return plainly(data, max_size)
        made: bytes = own(bytes(data), max_size, rng, plainly)
        return made[:max_size]

    return mutate


def _blindly(loaded: TargetModule, arguments: list[str]) -> None:
    """Mutate the existing inputs without looking at their coverage."""
    options = dict(each[1:].split("=", 1) for each in arguments if each.startswith("-"))
    folders = [Path(each) for each in arguments if not each.startswith("-")]
    inputs = [path.read_bytes() for folder in folders for path in sorted(folder.iterdir())] or [b""]
    rng = random.Random(int(options["seed"]))
    longest = int(options["max_len"])
    own = getattr(loaded, "mutate", None)

    def plainly(data: bytes, max_size: int) -> bytes:
        return mutations.plain(data, max_size, rng)

    end = time.monotonic() + float(options.get("max_total_time", "inf"))
    most, tried = float(options.get("runs", "inf")), 0
    while time.monotonic() < end and tried < most:
        data = rng.choice(inputs)
        if own is not None and rng.random() < CALLED_PLAINLY:
            data = own(data, longest, rng, plainly)[:longest]
        else:
            data = plainly(data, longest)
        try:
            loaded.check(data)
        except BaseException:
            place = Path(options["artifact_prefix"] + "blind")
            place.write_bytes(data)
            print(f"Test unit written to {place}", file=sys.stderr)
            raise
        tried += 1
    print(f"stat::number_of_executed_units: {tried}", file=sys.stderr)


if __name__ == "__main__":
    main()
