"""Typed, frozen settings: defaults here, then conf/service_conf.yaml, then conf/local.service_conf.yaml,
then PAGEMILL_<SECTION>_<KEY> environment variables, then the command line.

Opens and connects to nothing but the two files. docs/settings.md is the table of all of them."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretStr, StringConstraints, ValidationError

from common.errors import SettingsError

ROOT = Path(__file__).resolve().parents[1]
ENV_PREFIX = "PAGEMILL_"
ENV_ALIASES = {"REDIS_URL": ("queue", "url")}
# Longest path that a unix socket can have on every system, with some room.
_MAX_SOCKET_PATH = 100

Positive = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0)]


def _url(*schemes: str) -> Any:
    return StringConstraints(pattern=r"^$|^(" + "|".join(re.escape(s) for s in schemes) + r")://")


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ServerSettings(_Section):
    host: str = Field("127.0.0.1", description="Address the web server listens on.")
    port: int = Field(9380, ge=0, le=65535, description="Port; if taken, the next free one is used.")
    threads: Positive = Field(32, description="Threads that answer requests.")
    at_once: Positive = Field(
        2, description="Of these, how many work at the same moment on SQLite; the others wait in line."
    )
    receive_timeout_s: Positive = Field(
        15,
        description="A client is cut off that sends nothing for so long, or takes as long for a request of up to 32 KiB"
        " or for the head of a larger one.",
    )
    least_body_bytes_s: int = Field(
        1024,
        ge=0,
        description="A body is refused with 408 of which less comes in a second, over `receive_timeout_s`; 0: of none.",
    )
    send_timeout_s: Positive = Field(
        60, description="A client is cut off that takes nothing of its answer for so long."
    )
    proxies: int = Field(
        0,
        ge=0,
        description="Proxies in front of the server, each of which sets `X-Forwarded-For`, `-Proto` and `-Host`;"
        " 0: these headers are not believed.",
    )
    max_body_mb: Positive = Field(1024, description="Largest request body, in MiB.")
    max_files_per_upload: Positive = Field(256, description="Most files in one upload call.")
    max_json_mb: Positive = Field(32, description="Largest JSON body, in MiB.")
    max_ids: int = Field(30_000, ge=1, le=30_000, description="Most ids in one list of a call.")
    max_page_size: int = Field(100, ge=1, le=1000, description="Most entries on one page of a list.")
    max_question_chars: Positive = Field(65_535, description="Longest question of a search, in characters.")
    requests_per_minute: int = Field(
        0, ge=0, description="Requests of one API key or login in a minute; more get 429. 0: any number."
    )
    request_burst: Positive = Field(300, description="Requests that may come at once before that rate holds.")
    metrics_token: SecretStr = Field(
        "",
        validate_default=True,
        description="What a caller of `/metrics` must show as its bearer token; empty: only this machine may call.",
    )
    failed_logins_per_minute: int = Field(
        10, ge=0, description="Wrong keys and passwords in a minute, by address and by e-mail; 0: any number."
    )


class DatabaseSettings(_Section):
    url: Annotated[str, _url("sqlite", "mysql")] = Field(
        "",
        description="`mysql://user:password@host:3306/name` or `sqlite:///path`; empty: SQLite in the data folder.",
    )


class QueueSettings(_Section):
    url: Annotated[str, _url("redis", "rediss", "unix")] = Field(
        "",
        description="Redis or Valkey, `redis://…`, `unix://…`; empty: a Valkey of our own in the data folder.",
    )
    namespace: str = Field("pagemill", pattern=r"^[a-z0-9_-]+$", description="Prefix of every key, as a hash tag.")


class StoreSettings(_Section):
    url: Annotated[str, _url("file")] = Field(
        "", description="Where uploaded files are kept, `file:///folder`; empty: in the data folder."
    )


class IndexSettings(_Section):
    url: Annotated[str, _url("file", "http", "https")] = Field(
        "",
        description="`https://host:9200`: Elasticsearch; `file:///folder`: the embedded index in that folder;"
        " empty: in the data folder.",
    )
    commit_s: PositiveFloat = Field(0.2, description="How often the indexer commits while entries come in.")
    max_behind: Positive = Field(100_000, description="Writers wait while the indexer is this many entries behind.")
    username: str = Field("", description="User of Elasticsearch.")
    password: SecretStr = Field("", validate_default=True, description="That user's password; it is never shown.")
    api_key: SecretStr = Field(
        "", validate_default=True, description="A key of Elasticsearch in place of a user; it is never shown."
    )
    ca_file: str = Field("", description="Certificates that Elasticsearch's own is checked with; empty: the system's.")
    prefix: str = Field(
        "pagemill", pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$", description="What names in Elasticsearch begin with."
    )
    shards: Positive = Field(1, description="Shards of each index made in Elasticsearch.")
    replicas: int = Field(1, ge=0, description="Copies of each shard.")
    refresh_s: PositiveFloat = Field(
        1.0, description="How often Elasticsearch makes writes findable by itself; a document that ends does not wait."
    )
    timeout_s: PositiveFloat = Field(30.0, description="How long Elasticsearch may take to answer a request.")


class EmbeddingSettings(_Section):
    model: str = Field(
        "potion-base-8M",
        pattern=r"^\S+$",
        max_length=200,
        description="The packaged model, or the name that the endpoint knows its model by.",
    )
    model_dir: str = Field("", description="Folder of the model's files; empty: where `make install` puts them.")
    threads: Positive = Field(1, description="Threads that the packaged model uses in one process.")
    batch_size: Positive = Field(64, description="Texts embedded in one call.")
    url: Annotated[str, _url("http", "https")] = Field(
        "", description="OpenAI-compatible endpoint, such as `https://host/v1`; empty: the packaged model."
    )
    api_key: SecretStr = Field("", validate_default=True, description="The endpoint's key; it is never shown.")
    api_key_file: str = Field("", description="File that holds the key, in place of `embedding.api_key`.")
    dimension: int = Field(
        0, ge=0, le=65536, description="Numbers in a vector of the endpoint; 0: as many as its first answer has."
    )
    max_tokens: int = Field(2048, ge=16, description="Tokens that the endpoint takes in one text.")
    tokenizer_file: str = Field(
        "", description="`tokenizer.json` of the endpoint's model; empty: the packaged model's tokenizer counts."
    )
    timeout_s: PositiveFloat = Field(30.0, description="How long the endpoint may take to answer a call.")
    max_concurrent_requests: Positive = Field(4, description="Calls to the endpoint at once in one process.")
    cache_mb: int = Field(512, ge=0, description="Disk that vectors of the endpoint are kept on, in MiB; 0: none are.")


class RerankSettings(_Section):
    url: Annotated[str, _url("http", "https")] = Field(
        "", description="Endpoint of a reranker, such as `https://host/v1`; empty: hits stay in the index's order."
    )
    model: str = Field(
        "", pattern=r"^\S*$", max_length=200, description="The name that the reranker's endpoint knows its model by."
    )
    api_key: SecretStr = Field("", validate_default=True, description="That endpoint's key; it is never shown.")
    api_key_file: str = Field("", description="File that holds the key, in place of `rerank.api_key`.")
    timeout_s: PositiveFloat = Field(
        5.0, description="How long a search waits for the reranker, pauses that it asks for included."
    )
    top_n: int = Field(64, ge=1, le=1000, description="Most hits of a search that the reranker is asked about.")
    always: bool = Field(False, description="Rerank every search, also where `rerank_id` is not given.")
    max_concurrent_requests: Positive = Field(4, description="Calls to the reranker at once in one process.")


class ExecutorSettings(_Section):
    processes: int = Field(0, ge=0, description="Executors that `pagemill up` runs; 0: one per core.")
    max_concurrent_tasks: Positive = Field(
        6, description="Tasks in work at once in one executor; now and then up to four more."
    )
    max_parsers: Positive = Field(1, description="Parser processes of one executor.")
    max_embedders: int = Field(
        0,
        ge=0,
        description="Calls of the packaged model at once in one executor; 0: parser processes embed what they cut.",
    )
    max_index_writers: Positive = Field(4, description="Tasks that write to the index at once in one executor.")
    heartbeat_s: PositiveFloat = Field(1.0, description="Seconds between two heartbeats.")
    lease_s: PositiveFloat = Field(15.0, description="How long a claim holds without being renewed.")
    renew_s: PositiveFloat = Field(3.0, description="Seconds between two renewals; well below lease_s.")
    drain_grace_s: PositiveFloat = Field(10.0, description="How long work may go on after SIGTERM.")


class TaskSettings(_Section):
    max_attempts: Positive = Field(3, description="Attempts a task has for errors of its own.")
    max_losses: Positive = Field(5, description="Times its executor or parser process may be lost.")
    backoff_s: PositiveFloat = Field(2.0, description="Wait before the second attempt; doubles each time, with jitter.")
    backoff_max_s: PositiveFloat = Field(60.0, description="Longest wait between two attempts.")
    outage_patience_s: PositiveFloat = Field(3600.0, description="How long a task waits for a server that is away.")
    task_page_size: Positive = Field(
        12,
        description="Pages of a PDF in one task, in a text of more than four such up to ten times as many.",
    )
    task_row_size: Positive = Field(5000, description="Rows of a sheet in one task.")
    max_backlog: Positive = Field(200_000, description="Waiting tasks past which a parse is refused with 429.")
    reuse_keep_h: PositiveFloat = Field(24.0, description="Hours that chunks of stopped and failed parses are kept.")
    keep_finished_h: PositiveFloat = Field(168.0, description="Hours that ended tasks and their timelines are kept.")
    keep_answers_h: PositiveFloat = Field(24.0, description="Hours that an Idempotency-Key's answer is kept.")


class ParserSettings(_Section):
    timeout_s: PositiveFloat = Field(300.0, description="Longest time one range may take to parse.")
    memory_mb: int = Field(4096, ge=256, description="Address space of a parser process, in MiB.")
    tasks_per_process: Positive = Field(500, description="Ranges after which a parser process is replaced.")
    on_bad_page: Literal["skip", "fail"] = Field(
        "skip", description="What a page that can't be read does to its document; parser_config can say otherwise."
    )


class RelaySettings(_Section):
    lead_s: PositiveFloat = Field(6.0, description="How long the leader of the relay leads without renewing.")
    repair_s: PositiveFloat = Field(2.0, description="Seconds between two comparisons of rows and streams.")
    unmark_after_s: PositiveFloat = Field(
        5.0, description="Age after which a published task that is nowhere in its stream is published again."
    )
    window: Positive = Field(2, description="Tasks that stand in the streams at least, where there are more.")


class WebhookSettings(_Section):
    allow_private: bool = Field(False, description="Deliver also to private addresses, such as those of this network.")
    timeout_s: float = Field(10.0, gt=0, le=20, description="How long a webhook's receiver may take to answer.")
    retries_s: str = Field(
        "60, 300, 1800, 7200, 21600",
        pattern=r"^\s*\d+(\.\d+)?(\s*,\s*\d+(\.\d+)?)*\s*$",
        max_length=200,
        description="Seconds before each further try of a delivery, with jitter; after the last it is given up.",
    )
    max_concurrent: Positive = Field(8, description="Webhooks that are delivered to at once.")
    keep_h: PositiveFloat = Field(168.0, description="Hours that the log of deliveries is kept.")

    @property
    def waits_s(self) -> tuple[float, ...]:
        return tuple(float(part) for part in self.retries_s.split(","))


class LogSettings(_Section):
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Least level that is written.")
    format: Literal["text", "json"] = Field("text", description="Lines for people, or one JSON object a line.")


@dataclass(frozen=True)
class Effective:
    """One setting as it is in force, and where it came from; secrets are masked."""

    key: str
    value: object
    source: str


class Settings(_Section):
    """Everything that can be set. `data_dir` comes from the command line only."""

    data_dir: Path = Field(Path("data"), description="Folder of everything this instance keeps.")
    server: ServerSettings = ServerSettings()
    database: DatabaseSettings = DatabaseSettings()
    queue: QueueSettings = QueueSettings()
    store: StoreSettings = StoreSettings()
    index: IndexSettings = IndexSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    rerank: RerankSettings = RerankSettings()
    executor: ExecutorSettings = ExecutorSettings()
    tasks: TaskSettings = TaskSettings()
    parser: ParserSettings = ParserSettings()
    relay: RelaySettings = RelaySettings()
    webhooks: WebhookSettings = WebhookSettings()
    log: LogSettings = LogSettings()

    _effective: tuple[Effective, ...] = PrivateAttr(())

    @property
    def effective(self) -> tuple[Effective, ...]:
        """What `load` found, and where; nothing for settings that were made by hand."""
        return self._effective

    @property
    def owns_queue(self) -> bool:
        return not self.queue.url

    @property
    def run_dir(self) -> Path:
        return self.data_dir / "run"

    @property
    def queue_dir(self) -> Path:
        return self.data_dir / "queue"

    @property
    def queue_socket(self) -> Path:
        """Socket of our own Valkey: in the data folder, or in a short private one where that path is too long."""
        socket = self.run_dir / "valkey.sock"
        if len(os.fsencode(socket)) <= _MAX_SOCKET_PATH:
            return socket
        digest = hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"pagemill-{os.getuid()}-{digest}" / "valkey.sock"

    @property
    def queue_url(self) -> str:
        return self.queue.url or f"unix://{self.queue_socket}"

    @property
    def database_url(self) -> str:
        return self.database.url or f"sqlite:///{quote(str(self.data_dir / 'pagemill.db'))}"

    @property
    def store_dir(self) -> Path:
        return _folder(self.store.url) or self.data_dir / "files"

    @property
    def pictures_dir(self) -> Path:
        """Pictures of pages, drawn once."""
        return self.data_dir / "cache" / "pages"

    @property
    def embeds_index(self) -> bool:
        """Whether the index is the embedded one, and no server."""
        return not self.index.url.startswith("http")

    @property
    def index_dir(self) -> Path:
        """Of the embedded index."""
        return _folder(self.index.url) or self.data_dir / "index"


@dataclass(frozen=True)
class Loaded:
    settings: Settings
    effective: tuple[Effective, ...]


def load(
    data_dir: Path | None = None,
    *,
    conf_dir: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Loaded:
    """Read all layers. `overrides` are dotted keys from the command line.

    Raises SettingsError that names the key, the value, where it came from and what is allowed."""
    environ = os.environ if environ is None else environ
    conf_dir = conf_dir or Path(environ.get("PAGEMILL_CONF", ROOT / "conf"))
    values: dict[tuple[str, str], tuple[object, str]] = {}
    for name in ("service_conf.yaml", "local.service_conf.yaml"):
        values |= _read_file(conf_dir / name)
    values |= _read_environment(environ)
    for dotted, value in (overrides or {}).items():
        section, key = dotted.split(".")
        values[section, key] = (value, "command line")
    for section, key in values:
        _require_known(section, key, values[section, key])
    tree: dict[str, Any] = {"data_dir": (data_dir or Path("data")).expanduser().resolve()}
    for (section, key), (value, _) in values.items():
        tree.setdefault(section, {})[key] = value
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as exc:
        raise SettingsError(_explain(exc, values)) from exc
    _require_sane(settings)
    settings._effective = tuple(_effective(settings, values))
    return Loaded(settings, settings.effective)


def field_table() -> list[tuple[str, str, object, str]]:
    """(key, environment variable, default, description) of every setting: what docs/settings.md must say."""
    return [
        (f"{section}.{key}", f"{ENV_PREFIX}{section}_{key}".upper(), field.default, field.description or "")
        for section, model in _sections().items()
        for key, field in model.model_fields.items()
    ]


def _sections() -> dict[str, type[_Section]]:
    return {name: type(field.default) for name, field in Settings.model_fields.items() if name != "data_dir"}


def _folder(url: str) -> Path | None:
    return Path(url.removeprefix("file://")) if url.startswith("file://") else None


def _read_file(path: Path) -> dict[tuple[str, str], tuple[object, str]]:
    try:
        if not path.is_file():
            return {}
        tree = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except UnicodeDecodeError as exc:
        raise SettingsError(f"{path}: can't be read: it is not valid UTF-8 (byte {exc.start})") from exc
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as exc:  # ValueError: a date such as 2020-13-13
        raise SettingsError(f"{path}: can't be read: {exc}") from exc
    if not isinstance(tree, dict):
        raise SettingsError(f"{path}: expected sections with keys, got {type(tree).__name__}")
    found: dict[tuple[str, str], tuple[object, str]] = {}
    for section, keys in tree.items():
        if keys is None:
            continue
        if not isinstance(keys, dict):
            raise SettingsError(f"{path}: {section}: expected keys below it, got {keys!r}{_suggest(str(section))}")
        for key, value in keys.items():
            found[str(section), str(key)] = (value, path.name)
    return found


def _read_environment(environ: Mapping[str, str]) -> dict[tuple[str, str], tuple[object, str]]:
    found: dict[tuple[str, str], tuple[object, str]] = {}
    for alias, place in ENV_ALIASES.items():
        if environ.get(alias):
            found[place] = (environ[alias], f"environment {alias}")
    for name, value in environ.items():
        if name.startswith(ENV_PREFIX) and name not in ("PAGEMILL_CONF", "PAGEMILL_DATA"):
            section, _, key = name.removeprefix(ENV_PREFIX).lower().partition("_")
            found[section, key] = (value, f"environment {name}")
    return found


def _require_known(section: str, key: str, origin: tuple[object, str]) -> None:
    sections = _sections()
    if section not in sections or key not in sections[section].model_fields:
        raise SettingsError(f"{origin[1]}: unknown setting {section}.{key}{_suggest(f'{section}.{key}')}")


def _suggest(name: str) -> str:
    known = [row[0] for row in field_table()]
    close = difflib.get_close_matches(name, known if "." in name else list(_sections()), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else "; docs/settings.md lists all of them"


def _explain(exc: ValidationError, values: Mapping[tuple[str, str], tuple[object, str]]) -> str:
    lines = []
    for error in exc.errors():
        section, key = (str(part) for part in error["loc"][:2])
        source = values.get((section, key), (None, "default"))[1]
        allowed = error["msg"]
        if error["type"] == "string_pattern_mismatch" and key == "url":
            schemes = re.findall(r"\(([^)]*)\)", str(error["ctx"]["pattern"]))[0].replace("|", "://, ")
            allowed = f"allowed: empty, or an address that starts with {schemes}://"
        lines.append(f"{section}.{key} = {_masked(key, error['input'])!r} ({source}): {allowed}")
    return "\n".join(lines)


def _require_sane(settings: Settings) -> None:
    executor = settings.executor
    if executor.renew_s * 2 > executor.lease_s:
        raise SettingsError(
            f"executor.renew_s = {executor.renew_s}: allowed: at most half of executor.lease_s ({executor.lease_s})"
        )


def _masked(key: str, value: object) -> object:
    """Without the password that an address carries; nothing of a key."""
    if key in ("api_key", "password", "metrics_token"):
        return "***" if value else ""
    if key == "url" and isinstance(value, str):
        return re.sub(r"(://[^:/@]*:)[^@]*@", r"\1***@", value)
    return value


def _effective(settings: Settings, values: Mapping[tuple[str, str], tuple[object, str]]) -> list[Effective]:
    rows = [Effective("data_dir", str(settings.data_dir), "command line")]
    for section, model in _sections().items():
        for key in model.model_fields:
            source = values.get((section, key), (None, "default"))[1]
            value = getattr(getattr(settings, section), key)
            rows.append(Effective(f"{section}.{key}", _masked(key, value), source))
    return rows
