"""Uploaded files on their way into the object store: each part of a multipart body is written there as it arrives,
so that a file of any size is written once and never held in memory.

What becomes of the files is the handler's decision; those it does not keep are thrown away when the request ends."""

from __future__ import annotations

import contextlib
import io
from http import HTTPStatus
from typing import IO, Annotated, Any, cast

from flask import Flask, Request, Response, g, request
from pydantic import WithJsonSchema
from werkzeug.exceptions import HTTPException
from werkzeug.formparser import FormDataParser

from api.apps.envelope import ARGUMENT, ApiError
from api.apps.problems import Problem
from api.apps.services import services
from common.errors import PagemillError
from common.settings import ServerSettings
from rag.utils.object_store import StoredFile, Upload

# Form fields that may come with the files.
_OTHER_PARTS = 32
_PIECE_BYTES = 64 * 1024
_MAX_SHOWN = 40
_BODILESS = ("GET", "HEAD", "OPTIONS")
BinaryFile = Annotated[bytes, WithJsonSchema({"type": "string", "format": "binary"})]


class IncomingFile(io.RawIOBase):
    """A part that is being stored. After a failure of the store the rest of it is read and dropped: the other files of
    the call are not to suffer, and the failure is told when this one is to be kept."""

    def __init__(self) -> None:
        super().__init__()
        self._failure: PagemillError | None = None
        self._upload: Upload | None = None
        try:
            self._upload = services().store.begin_upload()
        except PagemillError as exc:
            self._failure = exc

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self._upload is not None and self._failure is None:
            try:
                self._upload.write(data)
            except PagemillError as exc:
                self._failure = exc
                self._upload.discard()
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """The form parser rewinds what it has written; nothing is read back from here."""
        return 0

    def keep(self, tenant_id: str) -> StoredFile:
        """Raises StoreFull or StoreUnavailable, also for what went wrong while the bytes came in."""
        if self._failure is not None or self._upload is None:
            raise self._failure or PagemillError("this upload has ended")
        return self._upload.keep(tenant_id)

    def close(self) -> None:
        if not self.closed and self._upload is not None:
            self._upload.discard()
        super().close()


class _FormParser(FormDataParser):
    """A form that can't be read is refused, not taken for an empty one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.silent = False

    def parse(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().parse(*args, **kwargs)
        except UnicodeDecodeError as exc:
            raise ApiError(ARGUMENT, "The form can't be read: a header of one of its parts is no UTF-8") from exc
        except ValueError as exc:
            raise ApiError(ARGUMENT, f"The form can't be read: {exc}") from exc


class StreamingRequest(Request):
    """A request whose file parts go straight to the object store."""

    form_data_parser_class = _FormParser

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.incoming: list[IncomingFile] = []

    def _get_file_stream(
        self,
        total_content_length: int | None,
        content_type: str | None,
        filename: str | None = None,
        content_length: int | None = None,
    ) -> IO[bytes]:
        most = services().settings.server.max_files_per_upload
        if len(self.incoming) >= most:
            raise ApiError(ARGUMENT, f"At most {most} files can be uploaded in one call")
        file = IncomingFile()
        self.incoming.append(file)
        return cast(IO[bytes], file)


def register(app: Flask, server: ServerSettings) -> None:
    app.request_class = StreamingRequest
    app.config["MAX_CONTENT_LENGTH"] = server.max_body_mb * 1024 * 1024
    app.config["MAX_FORM_PARTS"] = server.max_files_per_upload + _OTHER_PARTS
    app.before_request(_require_no_encoding)
    app.after_request(_read_rest)
    app.teardown_request(_discard_rest)


def _require_no_encoding() -> None:
    """Of what has become smaller nobody can tell how large it is. A body that comes with a GET is never read."""
    if request.method in _BODILESS:
        return
    given = request.headers.get("Content-Encoding", "identity").strip().lower()
    if request.url_rule is not None and given not in ("", "identity"):
        detail = f"Content-Encoding is not supported: send the body as it is, not as {given[:_MAX_SHOWN]}"
        headers = {"Accept-Encoding": "identity"}
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_content_encoding", detail, headers=headers)


def _read_rest(response: Response) -> Response:
    """A client that still sends when it is refused reads no answer, and would see a broken connection instead.

    Strangers are not waited for: they could hold a thread without ever sending. Nor is, once more, who was too slow."""
    if response.status_code != HTTPStatus.REQUEST_TIMEOUT and ("caller" in g or g.get("is_known")):
        request.max_content_length = None  # JSON may have been refused for less than any body may have
        with contextlib.suppress(HTTPException, OSError):
            while request.stream.read(_PIECE_BYTES):
                pass
    return response


def _discard_rest(_: BaseException | None) -> None:
    for file in cast(StreamingRequest, request).incoming:
        file.close()
