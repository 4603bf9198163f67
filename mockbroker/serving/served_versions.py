"""The versions that a listener serves: the profile's, limited by the dialect and by the user.

Invalid choices raise ``ClusterError`` with a one-line message that names valid ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from kproto.dialects import AutoDialect, Dialect, dialect
from kproto.errors import UnknownNameError
from kproto.schema.releases import load_controllers
from kproto.schema.versions import Versions
from mockbroker.apis.common.dialect_handlers import dialect_handlers
from mockbroker.errors import ClusterError
from mockbroker.options.option_types import parse_api_override
from mockbroker.profiles import Profile, all_profiles, profile
from mockbroker.simulation.brokers.inter_broker.software_versions import INTER_BROKER

__all__ = ["check_release", "controller_versions", "own_versions", "served_versions"]


def served_versions(
    profile: Profile,
    codec: Dialect,
    overrides: Mapping[int, Versions | None] | None = None,
    *,
    implemented_only: bool = False,
    client_telemetry: bool = False,
    unstable: bool = False,
) -> dict[int, Versions]:
    """Return API key -> versions, keys ascending.

    They are those of ``profile``, all versions of the APIs that a draft ``codec`` adds or replaces,
    and the ``overrides``, in which None hides a key. ``implemented_only`` drops APIs without a
    handler. ``client_telemetry`` adds the APIs of a broker with a receiver of metrics,
    ``unstable`` the versions that releases do not advertise by default.
    """
    if client_telemetry and not profile.optional_versions:
        raise ClusterError(
            f"profile {profile.name} takes no metrics of clients; kafka-3.7 and later do"
        )
    served = {
        key: versions
        for key, listed in profile.versions.items()
        if key in codec.apis and (versions := listed.intersect(codec.apis[key].valid_versions))
    }
    if client_telemetry:
        served.update(profile.optional_versions)
    if unstable:
        served.update(profile.unstable_versions)
    served.update(_of_draft(codec))
    if implemented_only:
        handlers = dialect_handlers(codec)
        served = {
            key: both
            for key, versions in served.items()
            if key in handlers and (both := versions.intersect(handlers[key].versions))
        }
    for key, requested in (overrides or {}).items():
        if requested is not None:
            served[key] = _checked(codec, key, requested)
        elif key in codec.apis:
            served.pop(key, None)
        else:
            raise ClusterError(f"dialect {codec.name} has no API key {key}")
    return dict(sorted(served.items()))


def controller_versions(
    profile: Profile, codec: Dialect, overrides: Mapping[int, Versions | None]
) -> dict[int, Versions]:
    """Return what the release's KRaft controllers serve, as ``served_versions`` does for brokers.
    Overrides narrow it."""
    listed = load_controllers()["kafka-{}.{}".format(*profile.line)].apis
    return {
        key: both
        for key, versions in listed.items()
        if key in codec.apis
        and (own := overrides.get(key, versions)) is not None
        and (both := versions.intersect(codec.apis[key].valid_versions).intersect(own))
    }


def check_release(
    profile: Profile, codec: Dialect, requested: Mapping[int, Versions | None]
) -> None:
    """Refuse versions newer than the release's, of APIs that the mock has handlers for.

    The handlers act like that release's controller, which does not know the features of newer
    versions. Older versions have no new features, and an API without a handler is answered by
    scripts or with error 35. APIs of a draft are not checked.
    """
    if not requested:
        return
    handlers, brought = dialect_handlers(codec), _of_draft(codec)
    for key, versions in requested.items():
        if versions is None or key not in handlers or key in brought:
            continue
        own = profile.versions.get(key) or profile.optional_versions.get(key, Versions.NONE)
        carried_out = versions.intersect(handlers[key].versions)
        if not carried_out or carried_out.highest <= (own.highest if own else -1):
            continue
        has = f"at versions {own}, not {versions}" if own else "at no version"
        names = [
            each.name
            for each in all_profiles()
            if each.versions.get(key, Versions.NONE).covers(carried_out)
        ]
        instead = f"; {names[0]} has" if names else ""
        api = codec.apis[key].name
        raise ClusterError(f"profile {profile.name} has {api} ({key}) {has}{instead}")


def own_versions(
    codec: Dialect, served: Mapping[int, Versions], level: str
) -> dict[int, Versions | None]:
    """Return the versions of one broker that differ from ``served``.

    ``level`` is ``4=0-2,45=off``, a release by its profile's name, or ``cluster`` for no
    difference. Raises ClusterError.
    """
    if level == "cluster":
        return {}
    if "=" not in level:
        try:
            release = profile(level).versions
        except UnknownNameError as error:
            raise ClusterError(f"{error}; or give versions, as in 4=0-2,45=off") from None
        return {
            key: versions.intersect(release.get(key, Versions.NONE)) or None
            for key, versions in served.items()
            if not release.get(key, Versions.NONE).covers(versions)
        }
    return dict(_own_versions(codec, each) for each in level.split(","))


def _own_versions(codec: Dialect, text: str) -> tuple[int, Versions | None]:
    key, versions = parse_api_override(text)
    if versions is None:
        return key, None
    checked = _checked(codec, key, versions)
    if key in INTER_BROKER and checked.lowest != 0:
        raise ClusterError(f"{text!r}: requests between brokers must be served from version 0 on")
    return key, checked


def _of_draft(codec: Dialect) -> dict[int, Versions]:
    """Return the APIs whose messages differ from the released ones. A listener of several dialects
    has none: its profile lists what it serves beside the released APIs."""
    if isinstance(codec, AutoDialect) or codec is dialect("kafka"):
        return {}
    released = dialect("kafka").apis
    return {key: api.valid_versions for key, api in codec.apis.items() if released.get(key) != api}


def _checked(codec: Dialect, api_key: int, versions: Versions) -> Versions:
    api = codec.apis.get(api_key)
    if api is None:
        raise ClusterError(f"dialect {codec.name} has no API key {api_key}")
    if versions.highest == 32767:
        versions = Versions(versions.lowest, api.valid_versions.highest)
    if not versions or not api.valid_versions.covers(versions):
        raise ClusterError(
            f"dialect {codec.name} has {api.name} ({api_key}) at versions {api.valid_versions}, "
            f"not {versions}"
        )
    return versions
