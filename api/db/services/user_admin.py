"""What an administrator does with users: look at them, shut one out and let one in, the rights of an administrator.
Nobody can shut out the last administrator, nor themselves. A new password is account_service's."""

from __future__ import annotations

from dataclasses import dataclass

from api.db.database import Rows
from api.db.models import User
from common.errors import InvalidInput, NotFound


@dataclass(frozen=True)
class UserFacts:
    """`documents` and `datasets` are those of the tenant that the user owns; `last_used_ms` is the last use of any of
    its keys, to the minute."""

    id: str
    email: str
    nickname: str
    is_superuser: bool
    is_active: bool
    create_ms: int
    datasets: int
    documents: int
    keys: int
    last_used_ms: int


class UserAdmin:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def all(self) -> list[UserFacts]:
        """The oldest first."""
        found = self._rows.read(
            self._rows.rows,
            "SELECT u.id, u.email, u.nickname, u.is_superuser, u.is_active, u.create_ms,"
            " (SELECT COUNT(*) FROM knowledgebase k WHERE k.tenant_id = u.id AND k.deleted_ms = 0),"
            " (SELECT COALESCE(SUM(k.document_count), 0) FROM knowledgebase k"
            "   WHERE k.tenant_id = u.id AND k.deleted_ms = 0),"
            " (SELECT COUNT(*) FROM api_token a WHERE a.tenant_id = u.id),"
            " (SELECT COALESCE(MAX(a.last_used_ms), 0) FROM api_token a WHERE a.tenant_id = u.id)"
            " FROM user u ORDER BY u.create_ms, u.id",
        )
        return [_facts(*row) for row in found]

    def set_active(self, user_id: str, is_active: bool, by: str) -> None:
        """One that is shut out is refused from the next request on, also with its keys. Raises NotFound, or
        InvalidInput where nobody could administrate any more."""
        self._rows.write(self._change, user_id, "is_active", is_active, by)

    def set_superuser(self, user_id: str, is_superuser: bool, by: str) -> None:
        self._rows.write(self._change, user_id, "is_superuser", is_superuser, by)

    def _change(self, user_id: str, column: str, value: bool, by: str) -> None:
        user = self._require(user_id)
        if not value and user_id == by:
            raise InvalidInput("nobody can take this from themselves: another administrator can")
        if not value and user.is_superuser and user.is_active and not self._others(user_id):
            raise InvalidInput(f"{user.email} is the only administrator")
        self._rows.execute(f"UPDATE user SET {column} = ? WHERE id = ?", (int(value), user_id))
        if column == "is_active" and not value:
            self._rows.execute("DELETE FROM login_session WHERE user_id = ?", (user_id,))

    def _others(self, user_id: str) -> bool:
        """Locked: two administrators who shut each other out at the same moment must not both win."""
        found = self._rows.rows(
            f"SELECT id FROM user WHERE is_superuser = 1 AND is_active = 1{self._rows.for_update}",
        )
        return any(row[0] != user_id for row in found)

    def _require(self, user_id: str) -> User:
        found: User | None = User.get_or_none(User.id == user_id)
        if found is None:
            raise NotFound("there is no such user")
        return found


def _facts(
    user_id: str, email: str, nickname: str, is_superuser: int, is_active: int, create_ms: int, *counts: int
) -> UserFacts:
    datasets, documents, keys, last_used_ms = map(int, counts)
    return UserFacts(
        user_id,
        email,
        nickname,
        bool(is_superuser),
        bool(is_active),
        create_ms,
        datasets,
        documents,
        keys,
        last_used_ms,
    )
