"""The words of the description that belong to no single route."""

from __future__ import annotations

ABOUT = """\
Documents in, searchable chunks out.

**Two surfaces.** RAGFlow's routes answer with HTTP 200 and an envelope: `code` 0 and `data`, or another code and a
`message` for people. Jobs, events, webhooks and the team use ordinary statuses, and what they refuse is a problem
(RFC 9457, `application/problem+json`) with a stable `code` and the fields that are wrong.

**Every answer** has the id of its request in `X-Request-Id`; the server's log has it too. A caller may choose it.

**Limits** are settings: `x-limits` at the end of this document has those of this server. Beyond the rate the answer is
429 with `Retry-After`.

**What is not yours is not there**: another tenant's id is answered as one that does not exist.\
"""

TAGS = {
    "Datasets": "Knowledge bases: made, listed, changed, deleted",
    "Documents": "Files of a dataset: uploaded, listed, changed, read",
    "Parsing": "Parses begun, stopped, paused and resumed",
    "Chunks": "What became of a document: listed and edited one by one",
    "Retrieval": "Questions to datasets",
    "Metadata": "What is noted about documents, and tags of chunks",
    "Tasks": "Tasks that failed: listed, replayed, discarded",
    "Jobs": "A file in, its parse followed under one id; ordinary HTTP statuses",
    "Events": "Jobs and datasets followed as they go",
    "Webhooks": "Where outcomes are told to",
    "Team": "Who may use the caller's datasets of permission `team`",
    "Users": "Signing in, accounts, keys",
    "System": "The server itself: health, version, models, this document",
    "Administration": "What operators see and do; for administrators only",
    "Graphs": "Graphs, RAPTOR and mind maps: there are none, and the routes say so",
    "Files": "RAGFlow's file manager: not available, and the routes say so",
    "Older addresses": "The same routes where clients of RAGFlow 0.22 look for them",
}

SECURITY_SCHEMES = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`ragflow-…`), or the token that a login gives in the header `Authorization`",
    },
    "basic": {"type": "http", "scheme": "basic", "description": "E-mail and password, to make a first key"},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "pagemill_session",
        "description": "A person who signed in with a browser; unsafe requests need the header X-CSRF-Token as well",
    },
    "keyInQuery": {
        "type": "apiKey",
        "in": "query",
        "name": "token",
        "description": "For an EventSource or a WebSocket of a browser, which can send no header",
    },
}
