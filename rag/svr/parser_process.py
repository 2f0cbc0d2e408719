"""One parser process as its executor sees it: started, spoken to in frames, killed and reaped.

Linux only: it waits on a pidfd. Knows nothing of documents; the pool decides which process does what."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
from collections.abc import Mapping, Sequence

import msgspec
import trio

from common.settings import ROOT
from rag.svr.parser_protocol import HEADER_BYTES, MAX_FRAME_BYTES, Reply, Request, decode_reply, encode

_RECEIVE_BYTES = 1 << 20
# So that a range's chunks fit in, and a process that has sent them is free for the next.
_PIPE_BYTES = 1 << 20
# One core a process: the executor decides how many processes there are.
_SINGLE_THREADED = {
    "TOKENIZERS_PARALLELISM": "false",
    "RAYON_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class Disconnected(Exception):
    """The process closed its end: it is dead or dying."""


class BadFrame(Exception):
    """It sent something that is no reply, or is too long for one."""


class ParserProcess:
    """Starts on creation. Whoever creates it must await kill() at the end, also after it died by itself."""

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        child_in, to_child = os.pipe()
        from_child, child_out = os.pipe()
        with contextlib.suppress(OSError):  # more than the machine lets this user have
            fcntl.fcntl(child_out, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        try:
            # Popen here and not trio's open_process: that starts it from a worker thread, and the kernel
            # would kill the child, which dies with its parent, when that thread ends (die_with_parent).
            self._popen = subprocess.Popen(
                arguments,
                stdin=child_in,
                stdout=child_out,
                env={**environ, **_SINGLE_THREADED},
                cwd=ROOT,
                # A Ctrl-C is for the executor, which ends its children itself; and see common.process.stand_back.
                start_new_session=True,
            )
        except OSError:
            os.close(to_child)
            os.close(from_child)
            raise
        finally:
            os.close(child_in)
            os.close(child_out)
        self._pidfd = os.pidfd_open(self._popen.pid)
        self._requests = trio.lowlevel.FdStream(to_child)
        self._replies = trio.lowlevel.FdStream(from_child)
        self._buffer = bytearray()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def is_alive(self) -> bool:
        return self._popen.poll() is None

    async def send(self, request: Request) -> None:
        """Raises Disconnected. Cancelled half way, the process is good for nothing but kill()."""
        try:
            await self._requests.send_all(encode(request))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as exc:
            raise Disconnected from exc

    async def receive(self) -> Reply:
        """The next frame. Raises Disconnected or BadFrame. A cancel loses nothing."""
        await self._fill(HEADER_BYTES)
        size = int.from_bytes(self._buffer[:HEADER_BYTES], "big")
        if size > MAX_FRAME_BYTES:
            raise BadFrame(f"sent more than {MAX_FRAME_BYTES >> 20} MiB")
        await self._fill(HEADER_BYTES + size)
        body = self._buffer[HEADER_BYTES : HEADER_BYTES + size]
        del self._buffer[: HEADER_BYTES + size]
        try:
            return decode_reply(body)
        except msgspec.DecodeError as exc:
            raise BadFrame("sent what is no reply") from exc

    async def _fill(self, size: int) -> None:
        while len(self._buffer) < size:
            try:
                data = await self._replies.receive_some(_RECEIVE_BYTES)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as exc:
                raise Disconnected from exc
            if not data:
                raise Disconnected
            self._buffer += data

    def signal_kill(self) -> None:
        """Send SIGKILL and leave the reaping to the task that speaks with the process."""
        self._popen.kill()

    async def kill(self) -> int:
        """SIGKILL, wait for the end and close the pipes. Gives the exit status, negative for a signal.

        Can't be cancelled: a process that was killed is gone at once, and must not be left as a zombie."""
        with trio.CancelScope(shield=True):
            self._popen.kill()
            await self._requests.aclose()
            await self._replies.aclose()
            if self._popen.returncode is None:
                await trio.lowlevel.wait_readable(self._pidfd)
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        return self._popen.wait()
