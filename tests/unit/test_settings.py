"""Settings: layers, errors that help, and a table in the docs that is never out of date."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from common.errors import SettingsError
from common.settings import ROOT, Loaded, field_table, load


def loaded(tmp_path: Path, *, conf: str = "", local: str = "", **environ: str) -> Loaded:
    (tmp_path / "service_conf.yaml").write_text(conf)
    (tmp_path / "local.service_conf.yaml").write_text(local)
    return load(tmp_path / "data", conf_dir=tmp_path, environ=environ)


def source_of(result: Loaded, key: str) -> tuple[object, str]:
    return next((e.value, e.source) for e in result.effective if e.key == key)


def test_every_layer_overrides_the_one_before(tmp_path: Path) -> None:
    conf, local = "server:\n  port: 1000\n  threads: 2\n  host: a\n", "server:\n  port: 2000\n  threads: 3\n"
    result = loaded(tmp_path, conf=conf, local=local, PAGEMILL_SERVER_PORT="3000")
    assert (result.settings.server.port, result.settings.server.threads, result.settings.server.host) == (3000, 3, "a")
    assert source_of(result, "server.port") == (3000, "environment PAGEMILL_SERVER_PORT")
    assert source_of(result, "server.threads") == (3, "local.service_conf.yaml")
    assert source_of(result, "server.host") == ("a", "service_conf.yaml")
    assert source_of(result, "log.level") == ("INFO", "default")


def test_the_command_line_wins(tmp_path: Path) -> None:
    result = load(tmp_path, conf_dir=tmp_path, environ={"PAGEMILL_SERVER_PORT": "1"}, overrides={"server.port": 5})
    assert source_of(result, "server.port") == (5, "command line")


def test_settings_are_frozen(tmp_path: Path) -> None:
    settings = loaded(tmp_path).settings
    with pytest.raises(ValidationError):
        settings.server.port = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("environ", "parts"),
    [
        ({"PAGEMILL_SERVER_PORT": "abc"}, ["server.port", "'abc'", "PAGEMILL_SERVER_PORT", "valid integer"]),
        ({"PAGEMILL_SERVER_PORT": "70000"}, ["server.port", "70000", "less than or equal to 65535"]),
        ({"PAGEMILL_SERVER_PROT": "1"}, ["server.prot", "did you mean server.port?"]),
        ({"PAGEMILL_LOG_LEVEL": "LOUD"}, ["log.level", "'LOUD'", "'DEBUG', 'INFO'"]),
        ({"PAGEMILL_DATABASE_URL": "postgres://h/d"}, ["database.url", "sqlite://", "mysql://"]),
        ({"PAGEMILL_EXECUTOR_RENEW_S": "14"}, ["executor.renew_s", "at most half of executor.lease_s"]),
    ],
)
def test_an_error_names_the_key_the_value_and_what_is_allowed(
    tmp_path: Path, environ: dict[str, str], parts: list[str]
) -> None:
    with pytest.raises(SettingsError) as error:
        loaded(tmp_path, **environ)
    for part in parts:
        assert part in error.value.public_message


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ("sevrer:\n  port: 1\n", "did you mean server.port?"),
        ("server: 5\n", "expected keys below it"),
        ("- a\n- b\n", "expected sections"),
        ("a: [1\n", "can't be read"),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path: Path, conf: str, says: str) -> None:
    with pytest.raises(SettingsError) as error:
        loaded(tmp_path, conf=conf)
    assert says in error.value.public_message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"server:\n  host: caf\xe9\n", "not valid UTF-8"),
        (b"server:\n  port: 2020-13-13\n", "can't be read"),
        (b"[" * 5000, "can't be read"),
    ],
)
def test_a_file_that_is_no_text_or_no_yaml_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "local.service_conf.yaml").write_bytes(content)
    with pytest.raises(SettingsError) as error:
        load(tmp_path / "data", conf_dir=tmp_path, environ={})
    assert "local.service_conf.yaml" in error.value.public_message
    assert says in error.value.public_message


def test_passwords_are_never_shown(tmp_path: Path) -> None:
    result = loaded(tmp_path, PAGEMILL_DATABASE_URL="mysql://u:s3cret@h/d", REDIS_URL="redis://:t0p@h:1/0")
    shown = repr([e.value for e in result.effective])
    assert "s3cret" not in shown
    assert "t0p" not in shown
    assert result.settings.database_url == "mysql://u:s3cret@h/d"
    assert source_of(result, "queue.url") == ("redis://:***@h:1/0", "environment REDIS_URL")
    with pytest.raises(SettingsError) as error:
        loaded(tmp_path, PAGEMILL_DATABASE_URL="pg://u:s3cret@h/d")
    assert "s3cret" not in error.value.public_message


def test_a_deep_data_folder_gets_a_short_socket(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    assert len(str(load(deep, environ={}).settings.queue_socket)) <= 100
    assert load(Path("/srv/pm"), environ={}).settings.queue_socket == Path("/srv/pm/run/valkey.sock")


def test_settings_that_point_elsewhere_are_used(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        REDIS_URL="redis://r:6379/0",
        PAGEMILL_STORE_URL="file:///srv/files",
        PAGEMILL_INDEX_URL="file:///srv/index",
    ).settings
    assert not settings.owns_queue
    assert settings.store_dir == Path("/srv/files")
    assert settings.index_dir == Path("/srv/index")


def test_the_shipped_file_loads_and_is_at_its_defaults() -> None:
    settings = load(Path("data"), environ={}, conf_dir=ROOT / "conf").settings
    assert settings.server.port == 9380


def test_every_setting_is_documented_as_it_is_in_the_code() -> None:
    lines = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8").splitlines()
    documented = [line for line in lines if line.startswith("| `")]
    expected = [
        f"| `{key}` | `{variable}` | {f'`{default}`' if default != '' else ''} | {description} |"
        for key, variable, default, description in field_table()
    ]
    assert documented == expected
