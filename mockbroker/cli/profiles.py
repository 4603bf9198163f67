"""``mockbroker profiles``: the releases that the mock can behave as, and their differences."""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Final

import click

from kproto.cli.terminal import echo, echo_json

if TYPE_CHECKING:
    from mockbroker.profiles import Profile

__all__ = ["profile_names", "profiles"]

_COLUMNS: Final = {
    18: "ApiVersions",
    3: "Metadata",
    43: "ElectLeaders",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
}
"""The API keys whose versions the table shows."""


def profile_names(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a profile."""
    from mockbroker.profiles import all_profiles

    return [each.name for each in all_profiles() if each.name.startswith(incomplete)]


@click.command()
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, with the versions of every API key."
)
@click.option(
    "--coverage",
    "only_coverage",
    is_flag=True,
    help="Print how many of the advertised API keys each profile serves, and why it does not serve "
    "the others.",
)
@click.option(
    "--fixes",
    "only_fixes",
    is_flag=True,
    help="Print the fixes of Kafka that --fix switches: the releases that have them, and what a "
    "client notices.",
)
def profiles(as_json: bool, only_coverage: bool, only_fixes: bool) -> None:
    """List the profiles and their differences."""
    from mockbroker.profiles import DEFAULT_PROFILE, all_profiles

    if only_coverage and only_fixes:
        raise click.UsageError("--coverage and --fixes exclude each other")
    if only_fixes:
        _print_fixes(as_json=as_json)
        return
    found = all_profiles()
    if only_coverage and as_json:
        echo_json([_coverage_row(each) for each in found], indent=1)
    elif only_coverage:
        _print_coverage(found)
    elif as_json:
        rows = [_row(each, default=each.name == DEFAULT_PROFILE) for each in found]
        echo_json(rows, indent=1)
    else:
        _print_table(found, DEFAULT_PROFILE)


def _row(profile: Profile, *, default: bool) -> dict[str, Any]:
    return {
        "name": profile.name,
        "default": default,
        "release": profile.release,
        "mode": profile.mode,
        "dialect": profile.dialect,
        "reassignment": profile.reassignment,
        "forwarding": profile.forwarding,
        "api_versions_fallback_row": profile.fallback_row,
        "changes": profile.summary,
        "features": {
            each.name: {"supported": list(each.supported), "finalized": each.finalized}
            for each in profile.features
        },
        "apis": {
            str(key): [versions.lowest, versions.highest]
            for key, versions in profile.versions.items()
        },
    }


def _coverage_row(profile: Profile) -> dict[str, Any]:
    from mockbroker.apis.coverage import coverage

    return {
        "name": profile.name,
        "apis": {
            str(each.api_key): {
                "name": each.name,
                "advertised": [each.advertised.lowest, each.advertised.highest],
                "served": [each.served.lowest, each.served.highest] if each.served else None,
                "reason": each.reason or None,
            }
            for each in coverage(profile)
        },
    }


def _print_fixes(*, as_json: bool) -> None:
    """A line for each fix, in the order of their numbers."""
    from rich.table import Table

    from kproto.cli.tables import print_table
    from mockbroker.profiles import all_profiles
    from mockbroker.simulation.releases.fixes import FIXES

    releases = [each for each in all_profiles() if not each.is_proposal]
    rows = {
        issue: [each.name for each in releases if not each.software.has(fix)]
        for issue, fix in FIXES.items()
    }
    if as_json:
        echo_json(
            [
                {"issue": issue, "since": list(fix.names), "without": rows[issue], "says": fix.says}
                for issue, fix in FIXES.items()
            ],
            indent=1,
        )
        return
    table = Table(box=None, pad_edge=False)
    for title in ("fix", "since", "what a client notices"):
        table.add_column(title)
    for issue, fix in FIXES.items():
        table.add_row(issue, ", ".join(fix.names), fix.says)
    print_table(table)


def _print_coverage(found: list[Profile]) -> None:
    """A line for each profile, and the reasons below."""
    from rich.table import Table

    from kproto.cli.tables import print_table
    from mockbroker.apis.coverage import coverage, gaps

    table = Table(box=None, pad_edge=False)
    for title in ("profile", "keys", "served", "not served"):
        table.add_column(title)
    for profile in found:
        apis = coverage(profile)
        lacking = [str(each.api_key) for each in apis if not each.complete]
        served = str(len(apis) - len(lacking))
        table.add_row(profile.name, str(len(apis)), served, ", ".join(lacking) or "-")
    print_table(table)
    for api, _ in gaps(found):
        echo(f"{api.api_key} {api.name}: {api.reason}")


def _print_table(found: list[Profile], default: str) -> None:
    """A table of 80 columns: letters stand for the differences, which are listed below it."""
    from rich.table import Table

    from kproto.cli.tables import print_table

    letters = dict(
        zip(dict.fromkeys(each.summary for each in found), ascii_lowercase, strict=False)
    )
    table = Table(box=None, pad_edge=False)
    for title in ("profile", "release", "mode", "keys", *map(str, _COLUMNS), "changes"):
        table.add_column(title)
    for profile in found:
        cells = [str(profile.versions.get(key, "-")) for key in _COLUMNS]
        name = f"{profile.name} (default)" if profile.name == default else profile.name
        mark = letters.get(profile.summary, profile.summary)
        table.add_row(name, profile.release, profile.mode, str(len(profile.versions)), *cells, mark)
    print_table(table)
    names = ", ".join(f"{key} {name}" for key, name in _COLUMNS.items())
    notes = [f"Versions of {names}."]
    notes += [f"{letter}: {summary}" for summary, letter in letters.items()]
    for note in notes:
        echo(note)
