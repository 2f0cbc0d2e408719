"""What a person can do about an error that a task met, in a sentence, by the error's code. The message of the error
itself says what happened; this says what comes next."""

from __future__ import annotations

from common.errors import BY_CODE, Verdict

_PARSER = (
    "This part of the file crashes or outlasts the parser. Replay it once; if it fails again, leave its pages out with"
    " the setting “pages”, or save the file anew with another program."
)
_BY_CODE = {
    "wrong_kind": "Give the file the ending that fits its content, and upload it again.",
    "empty_file": "Upload the file again: nothing of it arrived.",
    "encrypted_file": "Enter the password in the document's settings, and parse it again.",
    "no_pages": "Open the file in a viewer: it has no pages that could be read.",
    "unreadable_file": "Open the file in the program that made it, save it anew, and upload that.",
    "pages_outside": "Change the setting “pages” to pages that the file has, and parse it again.",
    "bad_page": "Let pages that can't be read be left out (on_bad_page: skip), and parse it again.",
    "embedding_refused": "An administrator has to correct the embedding model of the server or of the knowledge base.",
    "embedding_failed": "Replay it; if it fails again, an administrator should look at the embedding endpoint.",
    "executor_lost": "Replay it. If executors are lost again and again, an administrator should look at their memory.",
    "parser_lost": _PARSER,
    "parser_timeout": _PARSER,
    "parser_killed": "Replay it when the machine has more free memory.",
    "parser_not_started": "Replay it; the machine was too busy or short of memory to start a parser.",
    "store_full": "An administrator has to make room in the file store; then replay it.",
}
_OUTAGE = "Nothing is lost: replay it when the server that was away is back."
_PERMANENT = "Another try would end the same: change the file or its settings, and parse it again."
_OTHER = "Replay it; if it fails again, parse the document again or ask an administrator to look at the log."


def advice(error_code: str) -> str:
    """Never empty: an unknown code gets what is right in most cases."""
    if error_code in _BY_CODE:
        return _BY_CODE[error_code]
    known = BY_CODE.get(error_code)
    if known is not None and known.verdict is Verdict.OUTAGE:
        return _OUTAGE
    if known is not None and known.verdict is Verdict.PERMANENT:
        return _PERMANENT
    return _OTHER
