"""A bench's picture: panels of lines or bars side by side, in `bench/results/NAME.png`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from common.settings import ROOT

RESULTS = ROOT / "bench" / "results"
# Told apart also by those who see no red or green, and in grey.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_MARKERS = "os^Dvx"
_BARS_WIDTH = 0.8
# Below the labels of the x axis, where it hides nothing.
_LEGEND_TOP = -0.14


@dataclass(frozen=True)
class Lines:
    """`y` by name, a point for each of `x`. `marked` is a place on the x axis to point out, and what it is."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    y: Mapping[str, Sequence[float]]
    marked: tuple[float, str] | None = None
    log_x: bool = False
    log_y: bool = False

    def paint(self, axes: Axes) -> None:
        for number, (name, values) in enumerate(self.y.items()):
            axes.plot(self.x, values, label=name, color=_colour(number), marker=_MARKERS[number % len(_MARKERS)])
        if self.marked is not None:
            place, words = self.marked
            axes.axvline(place, color="#999999", linestyle="--", linewidth=1)
            axes.annotate(
                words, (place, 0.02), xycoords=("data", "axes fraction"), rotation=90, va="bottom", ha="right"
            )
        if self.log_x:
            axes.set_xscale("log")
        if self.log_y:
            axes.set_yscale("log")
        axes.set_xlabel(self.x_label)
        axes.grid(alpha=0.3)


@dataclass(frozen=True)
class Bars:
    """`y` by name, a bar for each of `groups`."""

    title: str
    y_label: str
    groups: Sequence[str]
    y: Mapping[str, Sequence[float]]
    log_y: bool = False

    def paint(self, axes: Axes) -> None:
        width = _BARS_WIDTH / max(1, len(self.y))
        for number, (name, values) in enumerate(self.y.items()):
            places = [group + (number - (len(self.y) - 1) / 2) * width for group in range(len(self.groups))]
            axes.bar(places, values, width, label=name, color=_colour(number))
        axes.set_xticks(range(len(self.groups)), self.groups)
        if self.log_y:
            axes.set_yscale("log")
        axes.grid(axis="y", alpha=0.3)


def draw(name: str, panels: Sequence[Lines | Bars], folder: Path = RESULTS) -> Path:
    """Paint the panels from left to right; where the picture is."""
    figure = Figure(figsize=(6.4 * len(panels), 4.4), layout="constrained")
    row = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, panel in zip(row, panels, strict=True):
        panel.paint(axes)
        axes.set_title(panel.title)
        axes.set_ylabel(panel.y_label)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, _LEGEND_TOP), ncols=3)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    # Without the version of the library: the same figures make the same file.
    figure.savefig(path, dpi=100, metadata={"Software": None})
    return path


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]
