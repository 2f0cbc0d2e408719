"""Failed tasks of all tenants by cause: GET /admin/failed; POST /admin/failed/<group>/replay, /discard."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flask import Response, jsonify

from api.apps.admin import FORBIDDEN, TAG, admin_blueprint
from api.apps.admin_json import groups_json
from api.apps.openapi.operation import Surface, describe
from api.apps.requests import Loose, loose_body, text
from api.apps.services import services
from api.apps.shapes.admin import FailedGroup, GroupActed
from common.errors import NotFound

bp = admin_blueprint("admin_failed")
# Each is a transaction of its own: a call does so many, and says where to go on.
_AT_ONCE = 500
_PROBLEM = Surface.PROBLEM


class After(Loose):
    after: str = ""


@bp.get("/admin/failed")
@describe(TAG, "Failed tasks of everybody by cause", surface=_PROBLEM, answer=list[FailedGroup], statuses=FORBIDDEN)
def failed() -> Response:
    return jsonify(groups_json(services().failed_groups.look()))


@bp.post("/admin/failed/<group>/replay")
@describe(
    TAG,
    "Run failed tasks of a cause again",
    surface=_PROBLEM,
    body=After,
    needs_body=False,
    answer=GroupActed,
    statuses=FORBIDDEN,
)
def replay(group: str) -> Response:
    """Run again what may: a task of an older parse is refused."""
    return _act(group, lambda ids: len(services().control.replay(ids)))


@bp.post("/admin/failed/<group>/discard")
@describe(
    TAG,
    "Forget failed tasks of a cause",
    surface=_PROBLEM,
    body=After,
    needs_body=False,
    answer=GroupActed,
    statuses=FORBIDDEN,
)
def discard(group: str) -> Response:
    """Forget the tasks; their documents stay failed."""
    return _act(group, services().control.discard)


def _act(group: str, act: Callable[[Sequence[str]], int]) -> Response:
    """`next` is to be sent as `after` with the next call; null when all of the group was looked at."""
    after = text(str(loose_body().get("after") or ""))
    found = services().failed_groups.task_ids(group, _AT_ONCE, after)
    if not found and not after:
        raise NotFound("no failed task has this cause any more")
    done = act(found)
    next_after = found[-1] if len(found) == _AT_ONCE else None
    return jsonify({"done": done, "refused": len(found) - done, "next": next_after})
