"""The command line: what it says of an instance that is not there, and of arguments and folders that are no good."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from api.commands import options
from api.commands.document_search import place, snippet
from api.db.services.file_names import require_file_name, require_supported
from api.db.services.retrieval_service import Found
from common.errors import InvalidInput
from common.settings import ROOT, load
from common.version import VERSION
from rag.svr.data_folder import DataFolder
from rag.utils.doc_index import ChunkRecord
from tests.acceptance.conftest import Run
from tests.acceptance.instance import EXECUTOR, PAGEMILL, Instance, running_instance
from tests.conftest import missing
from tests.processes import alive, kill_all
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.timeout(600)

NOT_RUNNING = "Pagemill is not running: start it with `pagemill up`"
NO_TEXT = os.fsdecode(b"caf\xe9")


@pytest.fixture(scope="module")
def instance(short_dir: Path) -> Iterator[Instance]:
    with running_instance(short_dir / "cli", PAGEMILL_EXECUTOR_PROCESSES="1") as made:
        yield made


def as_a_plain_user(*args: str) -> subprocess.CompletedProcess[str]:
    """Permissions mean nothing to root: it must let go of that first."""
    drop = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-dac_override"]
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        missing("setpriv")
    words = [*(drop if os.getuid() == 0 else []), *PAGEMILL, *args]
    return subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=120)


def told_in_a_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


# Without an instance


def test_the_version_is_told(run: Run) -> None:
    assert run("--version") == (0, f"pagemill {VERSION}\n", "")


@pytest.mark.parametrize("folder", ["/proc/nope", "/dev/null/x"])
@pytest.mark.parametrize("command", ["doctor", "status", "token list", "server", "executor", "indexer", "up"])
def test_a_folder_that_cannot_be_is_told_in_a_line(run: Run, command: str, folder: str) -> None:
    code, said, error = run(*command.split(), "--data", folder)
    assert code in (1, 2)
    assert folder in said + error


def test_a_folder_that_may_not_be_searched_is_told_in_a_line(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    (locked / "data").mkdir(parents=True)
    locked.chmod(0)
    try:
        assert "Permission denied" in told_in_a_line(as_a_plain_user("status", "--data", str(locked / "data")))
        checked = as_a_plain_user("doctor", "--json", "--data", str(locked / "data"))
    finally:
        locked.chmod(0o700)
    assert {c["part"] for c in json.loads(checked.stdout) if c["ok"]} == {"embedding model"}


def test_doctor_makes_no_folder(run: Run, tmp_path: Path) -> None:
    mistyped = tmp_path / "dtaa"
    code, said, _ = run("doctor", "--data", str(mistyped))
    assert code == 1
    assert f"wrong data folder: the data folder {mistyped} does not exist yet\n      → correct --data" in said
    assert not mistyped.exists()


@pytest.mark.parametrize("setting", ["PAGEMILL_EMBEDDING_MODEL_DIR", "PAGEMILL_EMBEDDING_MODEL"])
@pytest.mark.parametrize("command", ["up", "server"])
def test_nothing_starts_without_its_model(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, setting: str
) -> None:
    monkeypatch.setenv(setting, "/nowhere")
    code, said, error = run(command, "--data", str(tmp_path / "data"))
    assert (code, said) == (2, "")
    assert "embedding" in error
    assert "/nowhere" in error


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (["search", NO_TEXT], "the question"),
        (["search", "x", "--dataset", NO_TEXT], "the dataset's name"),
        (["ingest", "README.md", "--dataset", NO_TEXT], "the dataset's name"),
        (["token", "create", "--name", NO_TEXT], "the key's name"),
        (["token", "revoke", NO_TEXT], "the key's name"),
        (["status", "--data", NO_TEXT], "the data folder's path"),
    ],
)
def test_bytes_that_are_no_text_are_refused(run: Run, args: list[str], what: str) -> None:
    code, _, error = run(*args)
    assert code == 1
    assert f"pagemill: {what} is not valid UTF-8" in error


def test_settings_are_printed_as_they_are(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEMILL_SERVER_HOST", "[/red]:smile:")
    assert "[/red]:smile:" in run("config")[1]


def test_ids_are_never_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = io.StringIO()
    monkeypatch.setattr(options, "out", Console(file=drawn, width=80, force_terminal=True, markup=False))
    row = ("0123456789abcdef" * 2, "a name", "ragflow-abcd…wxyz", "2026-01-01 00:00", "2026-01-01 00:00")
    options.print_table("Keys", ("id", "name", "key", "made", "last used"), [row], whole=("id",))
    assert row[0] in drawn.getvalue()


def test_a_note_counts_while_its_writer_lives_and_holds_the_folder(tmp_path: Path) -> None:
    folder = DataFolder(load(tmp_path, environ={}).settings)
    folder.make()
    folder.write_note({"pid": os.getpid(), "address": "http://here"})
    assert folder.address() is None  # a process of this number lives, and is not the one
    fd = folder.lock()
    assert folder.address() == "http://here"
    gone = subprocess.Popen(["true"])
    gone.wait()
    folder.write_note({"pid": gone.pid, "address": "http://here"})
    assert folder.address() is None
    for broken in ("[]", "{", '{"pid": "x", "address": 1}'):
        (tmp_path / "run" / "up.json").write_text(broken)
        assert folder.address() is None
    os.close(fd)


def test_the_snippet_shows_the_answer_after_the_words() -> None:
    filler = ["filler"] * 100
    marked = " ".join(
        ["<em>weight</em>", *filler, "before", "the", "<em>weight</em>", "of", "<em>sheets</em>", "ANSWER"]
    )
    shown = snippet(marked + " tail" * 200).plain
    assert "weight of sheets ANSWER" in shown
    assert shown.startswith("… filler")
    assert shown.endswith("tail …")
    assert len(shown.replace("…", "").split()) == 80
    assert snippet("no mark at all").plain == "no mark at all"


@pytest.mark.parametrize(
    ("name", "positions", "says"),
    [
        ("a.pdf", ((7, 1, 2, 3, 4),), ", page 7"),
        ("a.pdf", (), ", page 7"),
        ("really-a-pdf.txt", ((7, 1, 2, 3, 4),), ", page 7"),
        ("a.csv", (), ", row 7"),
        ("A.TSV", (), ", row 7"),
        ("a.txt", (), ""),
        ("a.md", (), ""),
    ],
)
def test_a_hit_says_where_it_stands(
    name: str, positions: tuple[tuple[int, int, int, int, int], ...], says: str
) -> None:
    chunk = ChunkRecord("c", "t", "d", "doc", 1, 0, 1, 0, 7, "text", "text", 1, positions=positions)
    assert place(Found(chunk, name, 1.0, 1.0, 1.0, None)) == says


@pytest.mark.parametrize("name", ["", "..", "a/b.txt", "a\\b.txt", "a\nb.txt", "ü" * 126 + ".txt"])
def test_names_that_rest_refuses(name: str) -> None:
    with pytest.raises(InvalidInput):
        require_file_name(name)
    with pytest.raises(InvalidInput):
        require_supported("a.xyz")


# With an instance, which the last tests kill


def test_the_hint_can_be_typed(instance: Instance) -> None:
    (hint,) = re.findall(r"A key for REST calls: (.*)\.  Ctrl-C", instance.output())
    done = subprocess.run(hint, shell=True, cwd=ROOT, env=instance.environ, capture_output=True, text=True)
    assert done.stdout.startswith("ragflow-"), done.stderr


def test_keys_with_odd_names_are_listed_and_revoked(instance: Instance, run: Run) -> None:
    data = str(instance.data)
    for name in ("[/x]", "[bold]:smile:"):
        assert run("token", "create", "--name", name, "--data", data)[0] == 0
    (token_id,) = [
        t["id"] for t in json.loads(run("token", "list", "--json", "--data", data)[1]) if t["name"] == "[/x]"
    ]
    listed = run("token", "list", "--data", data)[1]
    assert f"{token_id} │ [/x]" in listed
    assert "[bold]:smile:" in listed
    assert run("token", "revoke", "[/x]", "--json", "--data", data)[:2] == (0, '{\n  "revoked": 1\n}\n')
    assert run("token", "revoke", "[/x]", "--json", "--data", data)[:2] == (1, '{\n  "revoked": 0\n}\n')


def test_one_bad_file_does_not_stop_the_others(instance: Instance, run: Run, tmp_path: Path) -> None:
    rows = "\n".join(f"{number},a plain line of no interest" for number in range(200))
    (tmp_path / "[bold]rows[1].csv").write_text(f"number,what\n{rows}\n999,the otter sleeps in the boathouse\n")
    (tmp_path / "whole.txt").write_text("A heron stands on the weir.")
    (tmp_path / "a.xyz").write_text("of no known type")
    (tmp_path / "folder.txt").mkdir()
    for name in ("line\nbreak.txt", NO_TEXT + ".txt"):
        (tmp_path / name).write_text("a name that is no good")
    names = ["missing.txt", *sorted(p.name for p in tmp_path.iterdir())]
    done = instance.run("ingest", *(str(tmp_path / name) for name in names), "--dataset", "odd", check=False)
    assert done.returncode == 1
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert lines["[bold]rows[1].csv"].startswith("done:")
    assert lines["whole.txt"].startswith("done:")
    assert lines["missing.txt"] == "can't be read: No such file or directory"
    assert lines["folder.txt"] == "can't be read: Is a directory"
    assert lines["a.xyz"] == "This type of file has not been supported yet!"
    assert "must not have control characters" in lines["line\ufffdbreak.txt"]
    assert lines["caf\ufffd.txt"] == "its name is not valid UTF-8"
    data = str(instance.data)
    assert "[bold]rows[1].csv, row 201" in run("search", "where does the otter sleep", "--data", data)[1]
    assert "  whole.txt\n" in run("search", "heron on the weir", "--dataset", "odd", "--data", data)[1]


def test_a_search_says_why(instance: Instance, run: Run, tmp_path: Path) -> None:
    (tmp_path / "rivers of europe.txt").write_text("The river Danube flows through Vienna.")
    (tmp_path / "towns.txt").write_text("Through Vienna flows much, says the river guide.")
    instance.run("ingest", *(str(path) for path in sorted(tmp_path.iterdir())), "--dataset", "why")
    asked = ("search", 'Which "river Danube" in Viena, europe?', "--dataset", "why", "--data", str(instance.data))
    said = run(*asked, "--explain")[1]
    for line in (
        "viena, taken for vienna: in 2 chunks",
        'Only chunks with the phrase "river danub" are answered.',
        "similarity = 0.70 * words + 0.30 * vectors",
        "The threshold of 0.20 left nothing out.",
        "number 1 by words alone, number 1 by vectors alone",
        "in the text and the file name",
        "without which, in, europ (only in the file name)",
    ):
        assert line in said
    assert "towns.txt" not in said
    told = json.loads(run(*asked, "--explain", "--json")[1])
    assert told["question"]["phrases"] == [["river", "danub"]]
    assert told["rerank"] is None
    (hit,) = told["hits"]
    assert hit["document"] == "rivers of europe.txt"
    assert (hit["explain"]["rank_by_words"], hit["explain"]["rank_by_vectors"]) == (1, 1)
    assert [word["word"] for word in hit["explain"]["words"]] == ["which", "river", "danub", "in", "viena", "europ"]
    assert "words alone" not in run(*asked)[1]
    (plain,) = json.loads(run(*asked, "--json")[1])
    assert plain == {key: value for key, value in hit.items() if key != "explain"}


def test_no_dataset_is_made_for_nothing(instance: Instance, run: Run, tmp_path: Path) -> None:
    data = str(instance.data)
    code, said, _ = run("ingest", str(tmp_path / "nope.txt"), "--dataset", "for nothing", "--data", data)
    assert (code, said) == (1, "nope.txt: can't be read: No such file or directory\n")
    assert "no dataset with the name 'for nothing'" in run("search", "x", "--dataset", "for nothing", "--data", data)[2]
    for name, says in (("", "can't be empty"), (" ", "can't be empty"), ("x" * 129, "at most 128 bytes")):
        code, _, error = run("ingest", "README.md", "--dataset", name, "--data", data)
        assert code == 1
        assert says in error


def test_an_instance_that_was_killed_is_not_called_running(instance: Instance, run: Run, tmp_path: Path) -> None:
    data = str(instance.data)
    assert run("status", "--data", data)[1].startswith(f"running at {instance.address}\n")
    short = tmp_path / "short.txt"
    short.write_text("The kingfisher waits as well.")
    processes = instance.descendants()
    (executor,) = instance.children(EXECUTOR)
    executor.suspend()  # so that it can't be done; and it holds the folder's lock from now on
    waiting = subprocess.Popen(
        [*PAGEMILL, "ingest", str(short), "--dataset", "waiting", "--data", data],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=instance.environ, cwd=ROOT,
    )  # fmt: skip
    wait_until(lambda: '"RUNNING": 1' in run("status", "--json", "--data", data)[1], what="the file to be queued")
    instance.stop(signal.SIGKILL)
    code, said, _ = run("status", "--data", data)
    assert (code, said.splitlines()[0]) == (0, NOT_RUNNING)
    facts = json.loads(run("status", "--json", "--data", data)[1])
    assert (facts["running"], facts["address"]) == (NOT_RUNNING, None)

    # Nobody waits for what nobody does.
    code, said, error = run("ingest", str(short), "--dataset", "stopped", "--data", data)
    assert (code, error) == (1, f"queued; {NOT_RUNNING}\n")
    assert said.startswith("short.txt: ")
    code, said, error = run("ingest", str(short), "--dataset", "stopped", "--no-wait", "--json", "--data", data)
    assert (code, error) == (0, f"queued; {NOT_RUNNING}\n")
    assert json.loads(said)[0]["run"] == "RUNNING"
    error = waiting.communicate(timeout=PATIENCE_S)[1]
    assert waiting.returncode == 1
    assert f"queued; {NOT_RUNNING}" in error
    kill_all(processes)
    wait_until(lambda: not alive(processes), what="all processes to be gone")


def test_a_database_that_cannot_be_written_or_read_is_told_in_a_line(instance: Instance, run: Run) -> None:
    assert not instance.is_alive
    data, database = str(instance.data), instance.data / "pagemill.db"
    database.chmod(0o444)
    refused = as_a_plain_user("token", "create", "--name", "x", "--data", data)
    assert (refused.returncode, f"can't be written: {database} is read-only" in refused.stderr) == (1, True)
    database.chmod(0o600)
    for file in instance.data.glob("pagemill.db-*"):
        file.unlink()
    database.write_bytes(b"no database at all" * 1000)
    for command in ("status", "token list", "server"):
        code, _, error = run(*command.split(), "--data", data)
        assert code == 1
        assert "the database does not answer: file is not a database" in error
