"""Teams as they are answered."""

from __future__ import annotations

from typing import Literal

from api.apps.shapes.common import Count, Id, Rfc3339, Shape


class TeamMember(Shape):
    user_id: Id
    email: str
    nickname: str
    role: Literal["owner", "member"]
    since: Rfc3339


class Members(Shape):
    total: Count
    members: list[TeamMember]


class Membership(Shape):
    """A team, by its owner."""

    tenant_id: Id
    email: str
    nickname: str
    since: Rfc3339


class Memberships(Shape):
    total: Count
    teams: list[Membership]
