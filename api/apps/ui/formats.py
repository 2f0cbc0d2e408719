"""Numbers as people read them, in templates; static/js/format.js says the same in a browser."""

from __future__ import annotations

from datetime import UTC, datetime

from flask import Flask

_UNITS = ("kB", "MB", "GB", "TB")


def register(app: Flask) -> None:
    app.add_template_filter(size_text, "size")
    app.add_template_filter(day_text, "day")
    app.add_template_filter(count_text, "count")


def size_text(value: int) -> str:
    if value < 1000:
        return f"{value} B"
    scaled, unit = value / 1000, 0
    while scaled >= 999.5 and unit < len(_UNITS) - 1:
        scaled, unit = scaled / 1000, unit + 1
    return f"{scaled:.1f} {_UNITS[unit]}" if scaled < 10 else f"{round(scaled)} {_UNITS[unit]}"


def day_text(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).strftime("%-d %b %Y")


def count_text(value: int) -> str:
    return f"{value:,}"
