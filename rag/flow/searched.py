"""What of a chunk is searched, by its words and by its meaning: its text, under the headings it stands below."""

from __future__ import annotations

from collections.abc import Sequence

from rag.flow.tables import plain_text


def searched_text(text: str, headings: Sequence[str]) -> str:
    """Words, and not the tags of a table; headings that the text does not begin or go on with stand before it."""
    plain = plain_text(text)
    return "\n".join([*(heading for heading in headings if heading not in plain), plain])
