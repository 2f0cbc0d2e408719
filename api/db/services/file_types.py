"""What a file's extension says: the type that REST shows, and the chunk method that goes with it.

What a file really is, is decided by its bytes when it is parsed (rag/parser/kinds.py)."""

from __future__ import annotations

from api.db.services.naming import extension

_DOC = (
    "msg eml doc docx ppt pptx yml xml htm html json jsonl ldjson csv tsv txt ini xls xlsx wps rtf hlp pages numbers "
    "key md markdown mdx py js java c cpp h php go ts sh cs kt sql epub"
)
_AURAL = "wav flac ape alac wavpack wv mp3 aac ogg vorbis opus"
_VISUAL = (
    "jpg jpeg png tif tiff gif bmp pcx tga exif fpx svg psd cdr pcd dxf ufo eps ai raw wmf webp avif apng icon ico "
    "mpg mpeg avi rm rmvb mov wmv asf dat asx wvx mpe mpa mp4 mkv"
)
_TYPES = {
    "pdf": "pdf",
    **dict.fromkeys(_DOC.split(), "doc"),
    **dict.fromkeys(_AURAL.split(), "aural"),
    **dict.fromkeys(_VISUAL.split(), "visual"),
}
# Of every document there is; a virtual one has no file.
VIRTUAL = "virtual"
TYPES = ("aural", "doc", "pdf", "visual", VIRTUAL)
_METHOD_BY_TYPE = {"visual": "picture", "aural": "audio"}
_METHOD_BY_EXTENSION = {
    **dict.fromkeys(("ppt", "pptx", "pages"), "presentation"),
    **dict.fromkeys(("msg", "eml"), "email"),
}


def type_of(name: str) -> str | None:
    """`pdf`, `doc`, `aural` or `visual`; None for a file that is not taken."""
    return _TYPES.get(extension(name))


def chunk_method_of(name: str, dataset_method: str) -> str:
    """The dataset's method, but for kinds of files that have one of their own."""
    by_type = _METHOD_BY_TYPE.get(type_of(name) or "", dataset_method)
    return _METHOD_BY_EXTENSION.get(extension(name), by_type)
