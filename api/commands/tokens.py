"""pagemill token create | list | revoke"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from api.commands.options import (
    DEFAULT_DATA,
    DataOption,
    JsonOption,
    err,
    print_json,
    print_table,
    require_utf8,
    say,
    settings_of,
)
from api.instance import open_accounts

app = typer.Typer(help="API keys of the administrator's tenant.", no_args_is_help=True)


@app.command()
def create(
    name: Annotated[str, typer.Option(help="What the key is for.")],
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Make a key and print it, and nothing else. It can't be shown again."""
    require_utf8("the key's name", name)
    accounts = open_accounts(settings_of(data), to_write=True)
    key = accounts.create_token(accounts.admin(), name)
    if as_json:
        print_json({"name": name, "token": key})
    else:
        typer.echo(key)


@app.command("list")
def list_(data: DataOption = DEFAULT_DATA, as_json: JsonOption = False) -> None:
    """The keys there are; of each only its beginning and end."""
    accounts = open_accounts(settings_of(data))
    tokens = accounts.tokens(accounts.admin())
    if as_json:
        print_json([vars(token) for token in tokens])
        return
    rows = [(t.id, t.name, t.hint, _when(t.create_ms), _when(t.last_used_ms)) for t in tokens]
    print_table("API keys", ("id", "name", "key", "made", "last used"), rows, whole=("id",))


@app.command()
def revoke(
    name_or_id: Annotated[str, typer.Argument(help="Name or id of the key.")],
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """End a key: calls with it are refused from now on."""
    require_utf8("the key's name", name_or_id)
    accounts = open_accounts(settings_of(data), to_write=True)
    count = accounts.revoke_token(accounts.admin(), name_or_id)
    if as_json:
        print_json({"revoked": count})
    elif count:
        typer.echo(f"revoked {count}")
    if not count:
        say(f"there is no key with the name or id {name_or_id!r}", err)
        raise typer.Exit(1)


def _when(ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(ms / 1000)) if ms else "never"
