"""Old Word and PowerPoint files (.doc, .ppt): LibreOffice turns them into the new formats, which are then read.

LibreOffice runs with a profile of its own, without macros and without a network, and no longer than it may. A
conversion is kept for the next range of the same file."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from pathlib import Path, PurePath
from typing import Protocol, cast

import msgspec

from common.errors import EncryptedFile, UnreadableFile, WrongKind
from common.process import die_with_parent, leave_network
from rag.parser import ole
from rag.parser.blocks import PLAIN, Block, FileKind, Profile, ReadOptions, Unit
from rag.parser.file_key import FileKey, file_key

CONVERT_TIMEOUT_S = 120
MAX_CONVERTED_BYTES = 1 << 30

_PROGRAMS = ("soffice", "libreoffice")
# What it ends with where it wants to be started once more, as it does with a new profile.
_AGAIN = 81
_MODULES = {"docx": "rag.parser.docx", "pptx": "rag.parser.pptx"}
_SLIDES = (".ppt", ".pps", ".pot")
_SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">\
<prop oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">\
<prop oor:name="MacroSecurityLevel" oor:op="fuse"><value>3</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">\
<prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Writer/Content/Update">\
<prop oor:name="Link" oor:op="fuse"><value>0</value></prop></item>
<item oor:path="/org.openoffice.Inet/Settings">\
<prop oor:name="ooInetProxyType" oor:op="fuse"><value>1</value></prop></item>
{proxies}
<item oor:path="/org.openoffice.Inet/Settings">\
<prop oor:name="ooInetNoProxy" oor:op="fuse"><value></value></prop></item>
</oor:items>
"""
# Nobody listens there: what a file links to is not fetched, also where the kernel keeps the network open.
_NOWHERE = """<item oor:path="/org.openoffice.Inet/Settings">\
<prop oor:name="ooInet{scheme}ProxyName" oor:op="fuse"><value>127.0.0.1</value></prop></item>
<item oor:path="/org.openoffice.Inet/Settings">\
<prop oor:name="ooInet{scheme}ProxyPort" oor:op="fuse"><value>1</value></prop></item>"""
_SCHEMES = ("HTTP", "HTTPS", "FTP")


class _Parser(Protocol):
    def profile(self, path: Path, name: str, options: ReadOptions = PLAIN) -> Profile: ...

    def read(
        self, path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN
    ) -> Iterator[Block]: ...


class _Held:
    """The file that was converted last."""

    def __init__(self) -> None:
        self._key: tuple[FileKey, str] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._converted = Path()

    def get(self, path: Path, name: str, target: str) -> Path:
        key = (file_key(path), target)
        if key != self._key or not self._converted.exists():
            self.drop()
            self._folder = tempfile.TemporaryDirectory(prefix="pagemill-office-", ignore_cleanup_errors=True)
            with ExitStack() as on_failure:
                on_failure.callback(self.drop)
                self._converted = _convert(path, name, target, Path(self._folder.name))
                on_failure.pop_all()
            self._key = key
        return self._converted

    def drop(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
        self._key = self._folder = None


_held = _Held()


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EncryptedFile, WrongKind, or UnreadableFile, also where LibreOffice is missing."""
    target = _target(path, name)
    found = _parser(target).profile(_held.get(path, name, target), name, options)
    return msgspec.structs.replace(found, kind=FileKind.LEGACY_OFFICE)


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    target = _target_of(profile)
    yield from _parser(target).read(converted(path, profile), profile, from_unit, to_unit, options)


def converted(path: Path, profile: Profile) -> Path:
    """The file in its new format, which has the parts that pictures are named by. Gone with the next conversion."""
    return _held.get(path, path.name, _target_of(profile))


def _target_of(profile: Profile) -> str:
    return "pptx" if profile.unit is Unit.SLIDE else "docx"


def _parser(target: str) -> _Parser:
    return cast(_Parser, import_module(_MODULES[target]))


def _target(path: Path, name: str) -> str:
    """The format to turn the file into. The name decides for one that has another embedded."""
    if not ole.is_container(path):
        raise WrongKind(f"{name} is not an old Word or PowerPoint file")
    known = (ole.WORD, ole.POWERPOINT, ole.ENCRYPTED_PACKAGE, ole.ENCRYPTED_POWERPOINT)
    found = ole.streams(path, known)
    if ole.ENCRYPTED_POWERPOINT in found or found == {ole.ENCRYPTED_PACKAGE}:
        raise EncryptedFile(f"{name} is encrypted and needs a password")
    if ole.POWERPOINT in found and (ole.WORD not in found or PurePath(name).suffix.lower() in _SLIDES):
        return "pptx"
    if ole.WORD in found:
        return "docx"
    raise WrongKind(f"{name} is an old Office file, but neither a Word nor a PowerPoint one")


def _convert(path: Path, name: str, target: str, folder: Path) -> Path:
    program = _program()
    if program is None:
        raise UnreadableFile(
            f"{name} is an old Office file: LibreOffice is needed to read old Word and PowerPoint files, and it is not "
            f"installed. Install it, or save the file as .{target}"
        )
    settings = folder / "profile" / "user" / "registrymodifications.xcu"
    settings.parent.mkdir(parents=True)
    proxies = "\n".join(_NOWHERE.format(scheme=scheme) for scheme in _SCHEMES)
    settings.write_text(_SETTINGS.format(proxies=proxies), encoding="utf-8")
    source = folder / ("document.ppt" if target == "pptx" else "document.doc")
    shutil.copyfile(path, source)
    command = [
        *(program, f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless", "--norestore"),
        *("--nolockcheck", "--convert-to", target, "--outdir", str(folder / "out"), str(source)),
    ]
    if _run(command, folder, name) == _AGAIN:
        _run(command, folder, name)
    result = folder / "out" / f"document.{target}"
    if not result.is_file() or not result.stat().st_size:
        raise UnreadableFile(f"{name} can't be opened by LibreOffice: it is damaged, or needs a password")
    return result


def _program() -> str | None:
    """The office program itself where it is found beside the script that starts it: it then dies with this process,
    as a grandchild would not."""
    found = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if found is None:
        return None
    itself = Path(found).resolve().with_name("soffice.bin")
    return str(itself) if os.access(itself, os.X_OK) else found


def _run(command: Sequence[str], folder: Path, name: str) -> int:
    """Run to the end or to the time limit; whatever it started is killed with it. The code that it ended with."""
    environment = {key: os.environ[key] for key in ("PATH", "LANG", "LC_ALL") if key in os.environ}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**environment, "HOME": str(folder), "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=partial(_limit, os.getpid()),
    )
    try:
        return process.wait(CONVERT_TIMEOUT_S)
    except subprocess.TimeoutExpired as exc:
        raise UnreadableFile(f"{name} took LibreOffice longer than {CONVERT_TIMEOUT_S} s to open") from exc
    finally:
        with suppress(ProcessLookupError):  # all of them may have ended by themselves
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _limit(parent_pid: int) -> None:
    """Bounds that hold even if this process is killed and can't stop the conversion any more."""
    die_with_parent(signal.SIGKILL, parent_pid)
    leave_network()
    resource.setrlimit(resource.RLIMIT_CPU, (CONVERT_TIMEOUT_S, CONVERT_TIMEOUT_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_CONVERTED_BYTES, MAX_CONVERTED_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
