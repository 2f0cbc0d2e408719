"""An executor embeds only for datasets of the model that it has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import trio

from common.errors import EmbeddingRefused
from common.settings import TaskSettings
from rag.parser.blocks import Profile, Unit
from rag.svr.fair_line import FairLine
from rag.svr.fence import Fence, steady_s
from rag.svr.slots import Slots
from rag.svr.worker import Work, WorkerParts, run_one
from tests.unit.test_decisions import TASK


@dataclass
class OneFile:
    """A store, of which only the way to a file is walked."""

    path: Path
    fetched: list[str] = field(default_factory=list)
    has_paths = True

    @contextmanager
    def local_path(self, tenant_id: str, digest: str) -> Iterator[Path]:
        self.fetched.append(tenant_id)
        yield self.path


class Other:
    name, dimension, max_tokens = "other@OpenAI-API-Compatible", 0, 512


async def test_a_dataset_of_another_model_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    profile = msgspec.json.encode(Profile(kind="pdf", unit=Unit.PAGE, units=12)).decode()
    task = msgspec.structs.replace(TASK, profile=profile, embedding_model="potion-base-8M@Builtin")
    nothing = cast(Any, None)  # what is not reached
    parts = WorkerParts(
        settings=TaskSettings(),
        store=cast(Any, OneFile(tmp_path / "a.pdf")),
        parsers=nothing,
        embedder=cast(Any, Other()),
        index=nothing,
        readers=FairLine(1),
        embedding=nothing,
        index_writers=FairLine(1),
    )
    work = Work(task, Fence(60.0, steady_s()), lambda progress, message: None, Slots(1))
    with pytest.raises(EmbeddingRefused) as refused, trio.fail_after(10):
        await run_one(work, parts)
    assert refused.value.public_message == (
        "its dataset is embedded with potion-base-8M@Builtin, and this executor embeds with other@OpenAI-API-Compatible"
    )
