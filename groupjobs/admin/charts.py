"""Charts as numbers for an SVG in a template: no script, no inline style, colours from the stylesheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 480
HEIGHT: Final = 96


@dataclass(frozen=True, slots=True)
class Bar:
    """One column: its lower part and the part on top of it, in the chart's own units."""

    x: float
    width: float
    y: float
    height: float
    top_y: float
    top_height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars or lines (as points of polylines) under a maximum; `said` is the chart in words."""

    most: str
    said: str
    bars: Sequence[Bar] = ()
    lines: Sequence[tuple[str, Sequence[str]]] = ()
    width: int = WIDTH
    height: int = HEIGHT


def bars(pairs: Sequence[tuple[float, float]]) -> list[Bar]:
    """Columns of (lower, upper) pairs, scaled to the highest sum."""
    most = max((low + up for low, up in pairs), default=0.0) or 1.0
    step = WIDTH / max(len(pairs), 1)
    made = []
    for index, (low, up) in enumerate(pairs):
        height, top = HEIGHT * low / most, HEIGHT * up / most
        x = round(index * step + step * 0.1, 2)
        rounded = [round(value, 2) for value in (HEIGHT - height, height, HEIGHT - height - top, top)]
        made.append(Bar(x, round(step * 0.8, 2), *rounded))
    return made


def polylines(values: Sequence[float | None], most: float) -> list[str]:
    """The points of one series; where a value is missing the line breaks, and a lone one is a short dash."""
    step = WIDTH / max(len(values), 1)
    pieces: list[list[str]] = [[]]
    for index, value in enumerate(values):
        if value is None:
            pieces.append([])
            continue
        x, y = (index + 0.5) * step, HEIGHT - HEIGHT * value / (most or 1.0)
        pieces[-1].append(f"{x:.1f},{y:.1f}")
    return [" ".join(piece if len(piece) > 1 else _dash(piece[0], step)) for piece in pieces if piece]


def _dash(point: str, step: float) -> list[str]:
    x, y = point.split(",")
    return [f"{float(x) - step / 3:.1f},{y}", f"{float(x) + step / 3:.1f},{y}"]
