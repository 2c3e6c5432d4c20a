"""`millstream config`: settings of topics, brokers, groups and client metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.cli.connect import key_value
from millstream.cli.declare import Group, UsageError, argument, flag, option
from millstream.cli.output import Rows
from millstream.client.admin import raise_first
from millstream.client.admin.configs import (
    Change,
    Operation,
    Resource,
    ResourceKind,
    alter_configs,
    describe_configs,
    list_config_resources,
)

if TYPE_CHECKING:
    from millstream.client.sync import SyncClient

GROUP = Group("config", "Settings of topics, brokers (or `broker default` for all of them), groups and client metrics.")
GROUPS = {"config": GROUP}

KINDS = {kind.name.lower().replace("_", "-"): kind for kind in ResourceKind}
KIND = argument("kind", "what has the setting", choices=sorted(KINDS))
NAME = argument("name", "its name; for brokers the id, or `default` for all of them")


def resource(kind: str, name: str) -> Resource:
    if kind == "broker" and name == "default":
        return Resource(ResourceKind.BROKER, "")
    if kind in ("broker", "broker-logger") and not name.isdecimal():
        raise UsageError(f"{name!r} is not a broker's id")
    return Resource(KINDS[kind], name)


@GROUP.command(
    "describe",
    KIND,
    NAME,
    argument("settings", "only these", nargs="*"),
    flag("--all", help="also those that have their defaults"),
    flag("--docs", help="with their documentation"),
    example="millstream config describe topic orders",
)
def describe(
    client: SyncClient,
    *,
    kind: str,
    name: str,
    settings: list[str],
    all: bool,  # noqa: A002 - the option's name
    docs: bool,
) -> Rows:
    """Show settings: those that were changed, or all."""
    wanted = resource(kind, name)
    found = raise_first(client.run(describe_configs, [wanted], names=settings or None, documentation=docs))
    rows = [
        (config.name, config.value, config.source.name, config.read_only, *([config.documentation] if docs else []))
        for config in found.get(wanted, [])
        if all or settings or not config.is_default
    ]
    columns = ("name", "value", "source", "read_only", *(["documentation"] if docs else []))
    return Rows(columns, rows)


@GROUP.command(
    "set",
    KIND,
    NAME,
    argument("settings", "NAME=VALUE", nargs="+"),
    flag("--dry-run", help="check only"),
    example="millstream config set topic orders retention.ms=3600000 cleanup.policy=compact,delete",
)
def set_(client: SyncClient, *, kind: str, name: str, settings: list[str], dry_run: bool) -> Rows:
    """Set settings."""
    changes = [Change(*key_value(text)) for text in settings]
    raise_first(client.run(alter_configs, {resource(kind, name): changes}, validate_only=dry_run))
    note = "checked, nothing was changed" if dry_run else ""
    return Rows(("name", "value"), [(change.name, change.value) for change in changes], note=note)


@GROUP.command(
    "unset",
    KIND,
    NAME,
    argument("settings", "names", nargs="+"),
    example="millstream config unset topic orders retention.ms",
)
def unset(client: SyncClient, *, kind: str, name: str, settings: list[str]) -> Rows:
    """Take settings back to their defaults."""
    changes = [Change(each, None, Operation.DELETE) for each in settings]
    raise_first(client.run(alter_configs, {resource(kind, name): changes}))
    return Rows(("unset",), [(each,) for each in settings])


@GROUP.command(
    "list",
    option("--kind", choices=sorted(KINDS), help="only of this kind"),
    example="millstream config list --kind client-metrics",
)
def list_(client: SyncClient, *, kind: str | None) -> Rows:
    """List everything that has settings."""
    kinds = [] if kind is None else [KINDS[kind]]
    resources = client.run(list_config_resources, kinds)
    rows = sorted((each.kind.name.lower().replace("_", "-"), each.name) for each in resources)
    return Rows(("kind", "name"), list(rows))
