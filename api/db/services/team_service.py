"""Teams: the users whom an owner lets use the tenant's datasets. A member uses those whose `permission` is `team`; what
only the owner may do is decided by the routes (api/apps/access.py). It gives no rights over the tenant itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from api.db.database import Rows
from api.db.services.task_sql import marks
from common.errors import Conflict, InvalidInput, NotFound

MAX_MEMBERS = 1000
_SLICE = 500
_SHARED = "k.permission = 'team' AND k.deleted_ms = 0"


@dataclass(frozen=True)
class Member:
    user_id: str
    email: str
    nickname: str
    since_ms: int


@dataclass(frozen=True)
class Team:
    """One that a user is a member of, by its owner."""

    tenant_id: str
    email: str
    nickname: str
    since_ms: int


@dataclass(frozen=True)
class Home:
    """Where a document belongs."""

    tenant_id: str
    dataset_id: str


class TeamService:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def members(self, tenant_id: str) -> list[Member]:
        """Who was added first comes first; the owner is none of them."""
        found = self._rows.read(
            self._rows.rows,
            "SELECT u.id, u.email, u.nickname, m.create_ms FROM team_member m JOIN user u ON u.id = m.user_id"
            " WHERE m.tenant_id = ? ORDER BY m.create_ms, u.id",
            (tenant_id,),
        )
        return [Member(*row) for row in found]

    def add(self, tenant_id: str, email: str) -> Member:
        """Raises NotFound for an e-mail that nobody has, Conflict for one who is a member already."""
        return self._rows.write(self._add, tenant_id, email.strip().lower(), [])

    def remove(self, tenant_id: str, user_id: str) -> None:
        """From the next request on. Raises NotFound for one who is no member."""
        self._rows.write(self._remove, tenant_id, user_id, [])

    def teams_of(self, user_id: str) -> list[Team]:
        found = self._rows.read(
            self._rows.rows,
            "SELECT u.id, u.email, u.nickname, m.create_ms FROM team_member m JOIN user u ON u.id = m.tenant_id"
            " WHERE m.user_id = ? ORDER BY m.create_ms, u.id",
            (user_id,),
        )
        return [Team(*row) for row in found]

    def tenants_of(self, user_id: str) -> tuple[str, ...]:
        """Ids of the tenants whose team the user is in."""
        found = self._rows.read(
            self._rows.rows, "SELECT tenant_id FROM team_member WHERE user_id = ? ORDER BY tenant_id", (user_id,)
        )
        return tuple(str(row[0]) for row in found)

    def shared_datasets(self, user_id: str, dataset_ids: Sequence[str]) -> dict[str, str]:
        """Those of the datasets that a team shares with the user, each with its tenant."""
        rows = self._shared("SELECT k.id, k.tenant_id FROM knowledgebase k", "k.id", user_id, dataset_ids)
        return {str(dataset_id): str(tenant_id) for dataset_id, tenant_id in rows}

    def shared_documents(self, user_id: str, document_ids: Sequence[str]) -> dict[str, Home]:
        """Those of the documents that stand in such a dataset."""
        documents = (
            "SELECT d.id, d.tenant_id, d.kb_id FROM document d"
            " JOIN knowledgebase k ON k.id = d.kb_id AND d.deleted_ms = 0"
        )
        rows = self._shared(documents, "d.id", user_id, document_ids)
        return {str(document_id): Home(str(tenant), str(kb)) for document_id, tenant, kb in rows}

    def _shared(self, select: str, key: str, user_id: str, ids: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The rows with these ids whose dataset a team shares with the user."""
        for start in range(0, len(ids), _SLICE):
            part = ids[start : start + _SLICE]
            yield from self._rows.read(
                self._rows.rows,
                f"{select} JOIN team_member m ON m.tenant_id = k.tenant_id AND m.user_id = ?"
                f" WHERE {key} IN ({marks(part)}) AND {_SHARED}",
                (user_id, *part),
            )

    def _remove(self, tenant_id: str, user_id: str, before: list[bool]) -> None:
        """`before` outlives a transaction that is run again: what the first run removed was there."""
        which = "team_member WHERE tenant_id = ? AND user_id = ?"
        before.append(bool(self._rows.rows(f"SELECT 1 FROM {which}", (tenant_id, user_id))))
        if not any(before):
            raise NotFound("the team has no such member")
        self._rows.execute(f"DELETE FROM {which}", (tenant_id, user_id))

    def _add(self, tenant_id: str, email: str, made: list[str]) -> Member:
        """The tenant's row is locked, so that members are counted one after another. `made` outlives a transaction that
        is run again: its own row is no conflict."""
        self._rows.rows(f"SELECT id FROM tenant WHERE id = ?{self._rows.for_update}", (tenant_id,))
        found = self._rows.rows("SELECT id, nickname FROM user WHERE email = ?", (email,))
        if not found:
            raise NotFound("nobody is registered with this e-mail")
        user_id, nickname = found[0]
        if user_id == tenant_id:
            raise Conflict("this is the owner of the team")
        known = {row[0]: row[1] for row in self._rows.rows(_MEMBERS, (tenant_id,))}
        if user_id in known and user_id not in made:
            raise Conflict("this user is a member of the team already")
        if user_id in known:
            return Member(user_id, email, nickname, known[user_id])
        if len(known) >= MAX_MEMBERS:
            raise InvalidInput(f"a team has at most {MAX_MEMBERS} members")
        now_ms = self._rows.clock()
        self._rows.execute(
            "INSERT INTO team_member (tenant_id, user_id, create_ms) VALUES (?, ?, ?)", (tenant_id, user_id, now_ms)
        )
        made.append(user_id)
        return Member(user_id, email, nickname, now_ms)


_MEMBERS = "SELECT user_id, create_ms FROM team_member WHERE tenant_id = ?"
