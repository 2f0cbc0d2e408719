"""A sweeper on the rows, the index and the files of a test."""

from __future__ import annotations

from pathlib import Path

from api.db.database import Rows
from api.db.services.control_service import ControlService
from api.db.services.parse_service import Doorbell
from api.db.services.purge_service import PurgeService
from api.db.services.role_service import RoleService
from api.db.services.stale_service import StaleService
from common.settings import TaskSettings
from rag.svr.sweeper import Sweeper, SweeperConfig
from rag.utils.embedded_index import EmbeddedIndex
from rag.utils.folder_store import FolderStore
from rag.utils.picture_cache import PictureCache
from rag.utils.redis_conn import Queue


def sweeper_of(
    rows: Rows, queue: Queue, index: EmbeddedIndex, store: FolderStore, pictures: Path, *, lease_s: float = 15.0
) -> Sweeper:
    return Sweeper(
        SweeperConfig("e1", lease_s),
        RoleService(rows),
        StaleService(rows),
        ControlService(rows, TaskSettings(), Doorbell(lambda: None, lambda _: None)),
        PurgeService(rows, TaskSettings()),
        index,
        store,
        queue,
        PictureCache(pictures),
    )
