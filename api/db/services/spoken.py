"""Numbers and times as people say them."""

from __future__ import annotations

from datetime import UTC, datetime


def count_text(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def about_text(seconds: float) -> str:
    """5 s, 40 s, 3 min, 2 h: no more digits than a guess has."""
    if seconds < 9.5:
        return f"{max(1, round(seconds))} s"
    if seconds < 55:
        return f"{_in_steps(seconds, 10)} s"
    minutes = seconds / 60
    if minutes < 9.5:
        return f"{max(1, round(minutes))} min"
    if minutes < 55:
        return f"{_in_steps(minutes, 5)} min"
    hours = minutes / 60
    return f"{max(1, round(hours))} h" if hours < 47.5 else f"{round(hours / 24)} days"


def clock_text(at_ms: int, now_ms: int) -> str:
    """The time of day in UTC, with the date where it is not today's."""
    at, now = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (at_ms, now_ms))
    date = "" if at.date() == now.date() else f"{at:%Y-%m-%d} "
    return f"{date}{at:%H:%M:%S} UTC"


def _in_steps(number: float, step: int) -> int:
    return round(number / step) * step
