"""Tenants, users and API keys. Passwords are kept as argon2 hashes, keys as SHA-256."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError

from api.db.database import Rows
from api.db.models import ApiToken, Tenant, User
from common.errors import InvalidInput, NotFound, Unauthorized
from common.ids import new_id
from common.turns import stepping_aside

ADMIN_EMAIL = "admin@pagemill.local"
KEY_PREFIX = "ragflow-"
_PASSWORD_BYTES = 12
# Writing "last used" on every call would make every read a write.
_LAST_USED_STEP_MS = 60_000
# Of a password that nobody knows.
_NOBODY_HASH = "$argon2id$v=19$m=65536,t=3,p=4$eVNtWcYtpC12d9jZjjPJHQ$tbgwI8BE2jgObg0JjLMwD5A/f/Ex3oO43G9E9LtRFvk"


@dataclass(frozen=True)
class Caller:
    """Who a request speaks for."""

    user_id: str
    tenant_id: str
    is_superuser: bool


@dataclass(frozen=True)
class TokenInfo:
    id: str
    name: str
    hint: str
    create_ms: int
    last_used_ms: int


class AccountService:
    def __init__(self, rows: Rows, embedding_model: str) -> None:
        self._rows = rows
        self._embedding_model = embedding_model
        self._hasher = PasswordHasher()

    def ensure_admin(self) -> str | None:
        """Make the first user. Returns the new password, or None where there are users already."""
        if self._rows.read(User.select().exists):
            return None
        password = secrets.token_urlsafe(_PASSWORD_BYTES)
        made = self._rows.write(self._create_admin, self._hasher.hash(password))
        return password if made else None

    def create_user(self, email: str, nickname: str, password: str, *, is_superuser: bool = False) -> str:
        """A user with a tenant of their own. Returns the id, which is both's."""
        password_hash = self._hasher.hash(password)  # slow by design: not while others wait for the write lock
        return self._rows.write(self._create_user, email.strip().lower(), nickname, password_hash, is_superuser)

    def admin(self) -> Caller:
        """The first administrator: whom the command line speaks for."""
        user = self._rows.read(User.select().where(User.is_superuser == 1).order_by(User.create_ms).first)
        if user is None:
            raise NotFound("there is no user yet: start Pagemill once with `pagemill up`")
        return Caller(user.id, user.id, True)

    def sign_in(self, email: str, password: str) -> Caller:
        user = self._rows.read(User.get_or_none, User.email == email.strip().lower())
        try:
            # A stranger's takes as long as a known one's: who is registered can't be told by the clock.
            self._verify(user, password)
        except VerificationError as exc:
            raise Unauthorized("Email and password do not match!") from exc
        if user is None or not user.is_active:
            raise Unauthorized("This account has been disabled.")
        return Caller(user.id, user.id, bool(user.is_superuser))

    def _verify(self, user: User | None, password: str) -> None:
        with stepping_aside():  # slow by design, and not in the interpreter
            self._hasher.verify(user.password_hash if user else _NOBODY_HASH, password)

    def change_password(self, caller: Caller, old: str, new: str) -> None:
        """The user's sessions all end: whoever knew the old one is out. API keys stay. Raises Unauthorized."""
        user = self._rows.read(User.get_or_none, User.id == caller.user_id)
        try:
            self._verify(user, old)
        except VerificationError as exc:
            raise Unauthorized("this is not your password") from exc
        self._rows.write(self._set_password, caller.user_id, self._hasher.hash(new))

    def reset_password(self, user_id: str) -> str:
        """A new password, which can be read only now; the user is signed out everywhere. API keys stay. Raises
        NotFound."""
        if self._rows.read(User.get_or_none, User.id == user_id) is None:
            raise NotFound("there is no such user")
        password = secrets.token_urlsafe(_PASSWORD_BYTES)
        self._rows.write(self._set_password, user_id, self._hasher.hash(password))
        return password

    def create_token(self, caller: Caller, name: str) -> str:
        """A new API key. This is the only moment it can be read."""
        if not name.strip() or len(name) > 128:
            raise InvalidInput("a key's name has 1 to 128 characters")
        key = KEY_PREFIX + secrets.token_urlsafe(32)
        self._rows.write(self._insert_token, caller, name.strip(), key)
        return key

    def tokens(self, caller: Caller) -> list[TokenInfo]:
        query = ApiToken.select().where(ApiToken.tenant_id == caller.tenant_id).order_by(ApiToken.create_ms)
        return [TokenInfo(t.id, t.name, t.hint, t.create_ms, t.last_used_ms) for t in self._rows.read(list, query)]

    def revoke_token(self, caller: Caller, name_or_id: str) -> int:
        """Revoke the keys with this id, hint or name, or the key itself. Returns how many."""
        by_name = (ApiToken.id == name_or_id) | (ApiToken.name == name_or_id)
        which = by_name | (ApiToken.token_hash == _digest(name_or_id)) | (ApiToken.hint == name_or_id)
        query = ApiToken.delete().where((ApiToken.tenant_id == caller.tenant_id) & which)
        return int(self._rows.write(query.execute))

    def caller_of(self, key: str) -> Caller:
        """Raises Unauthorized for a key that is unknown or whose user is disabled."""
        found = self._rows.read(
            self._rows.rows,
            f"SELECT t.id, t.tenant_id, t.last_used_ms, u.id, u.is_superuser, {self._rows.now_ms} FROM api_token t"
            " JOIN user u ON u.id = t.user_id AND u.is_active = 1 WHERE t.token_hash = ?",
            (_digest(key),),
        )
        if not found:
            raise Unauthorized("API key is invalid")
        token_id, tenant_id, last_used_ms, user_id, is_superuser, now_ms = found[0]
        if now_ms - last_used_ms > _LAST_USED_STEP_MS:
            self._rows.write(ApiToken.update(last_used_ms=now_ms).where(ApiToken.id == token_id).execute)
        return Caller(user_id, tenant_id, bool(is_superuser))

    def _create_admin(self, password_hash: str) -> bool:
        if User.select().exists():
            return False
        self._create_user(ADMIN_EMAIL, "admin", password_hash, True)
        return True

    def _create_user(self, email: str, nickname: str, password_hash: str, is_superuser: bool) -> str:
        user_id, now_ms = new_id(), self._rows.clock()
        if User.select().where(User.email == email).exists():
            raise InvalidInput(f"Email: {email} has already registered!")
        Tenant.create(id=user_id, name=nickname, embedding_model=self._embedding_model, create_ms=now_ms)
        User.create(
            id=user_id,
            email=email,
            nickname=nickname,
            password_hash=password_hash,
            is_superuser=int(is_superuser),
            create_ms=now_ms,
        )
        return user_id

    def _set_password(self, user_id: str, password_hash: str) -> None:
        self._rows.execute("UPDATE user SET password_hash = ? WHERE id = ?", (password_hash, user_id))
        self._rows.execute("DELETE FROM login_session WHERE user_id = ?", (user_id,))

    def _insert_token(self, caller: Caller, name: str, key: str) -> None:
        ApiToken.create(
            tenant_id=caller.tenant_id,
            user_id=caller.user_id,
            name=name,
            token_hash=_digest(key),
            hint=f"{key[:12]}…{key[-4:]}",
            create_ms=self._rows.clock(),
        )


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
