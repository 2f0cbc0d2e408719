"""Users as they are shown. Passwords and keys are account_service's."""

from __future__ import annotations

from dataclasses import dataclass

from api.db.database import Rows
from api.db.models import User


@dataclass(frozen=True)
class UserView:
    id: str
    email: str
    nickname: str
    is_superuser: bool
    is_active: bool
    create_ms: int


class UserService:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def get(self, user_id: str) -> UserView | None:
        return _view(self._rows.read(User.get_or_none, User.id == user_id))

    def name_of(self, user_id: str) -> str:
        user = self.get(user_id)
        return user.nickname if user else ""

    def by_email(self, email: str) -> UserView | None:
        return _view(self._rows.read(User.get_or_none, User.email == email.strip().lower()))

    def rename(self, user_id: str, nickname: str) -> None:
        self._rows.write(User.update(nickname=nickname).where(User.id == user_id).execute)


def _view(user: User | None) -> UserView | None:
    if user is None:
        return None
    return UserView(
        user.id, user.email, user.nickname, bool(user.is_superuser), bool(user.is_active), int(user.create_ms)
    )
