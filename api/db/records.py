"""Rows as models by plain SQL. peewee puts its statements together anew at every call, which for a table of many
columns takes longer than the database takes to answer: what nearly every request reads or inserts goes through here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from api.db.database import Rows
from api.db.models import BaseModel, JsonField

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class _Shape:
    """`read` and `write` turn values of JSON columns, by their places."""

    table: str
    names: Sequence[str]
    columns: str
    read: Sequence[tuple[int, Callable[[Any], Any]]]
    write: Sequence[tuple[int, Callable[[Any], Any]]]


@cache
def _shape(model: type[BaseModel]) -> _Shape:
    fields = model._meta.sorted_fields
    json_fields = [(place, one) for place, one in enumerate(fields) if isinstance(one, JsonField)]
    return _Shape(
        model._meta.table_name,
        [one.name for one in fields],
        ", ".join(one.column_name for one in fields),
        [(place, one.python_value) for place, one in json_fields],
        [(place, one.db_value) for place, one in json_fields],
    )


def fetch(rows: Rows, model: type[M], rest: str, params: Sequence[object]) -> list[M]:
    """`SELECT` all columns of the model's table, and `rest`."""
    shape = _shape(model)
    return [_model(model, shape, row) for row in rows.rows(f"SELECT {shape.columns} FROM {shape.table} {rest}", params)]


def _model(model: type[M], shape: _Shape, row: Sequence[Any]) -> M:
    values = list(row)
    for place, read in shape.read:
        values[place] = read(values[place])
    return model(__no_default__=True, **dict(zip(shape.names, values, strict=True)))


def insert(rows: Rows, new: Sequence[BaseModel]) -> None:
    """All of them, of one model. Raises IntegrityError as any insert does."""
    if new:
        shape = _shape(type(new[0]))
        rows.insert_many(shape.table, shape.columns.split(", "), [_values(shape, one) for one in new])


def _values(shape: _Shape, one: BaseModel) -> list[object]:
    values = [getattr(one, name) for name in shape.names]
    for place, write in shape.write:
        values[place] = write(values[place])
    return values
