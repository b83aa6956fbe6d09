"""Figures as SVG text: clouds of points against the diagonal, and lines over a number.

They need no script and no network. The classes are those of the page's style sheet, so figures
follow its colours, in the dark too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

SIDE = 250  # pixels of a scatter plot
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 8, 36
_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A linear axis: what it shows, from where to where, and which numbers are written out."""

    label: str
    low: float
    high: float
    ticks: Sequence[float]

    def place(self, value: float, start: float, end: float) -> float:
        """Where a value lies between two ends, in pixels."""
        return start + (value - self.low) / (self.high - self.low) * (end - start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A drawing area between two axes."""

    title: str
    width: int
    height: int
    x: Axis
    y: Axis

    def at(self, x: float, y: float) -> str:
        """A point in pixels, to a tenth of one."""
        across = self.x.place(x, _LEFT, self.width - _RIGHT)
        up = self.y.place(y, self.height - _BOTTOM, _TOP)
        return f"{across:.1f} {up:.1f}"

    def draw(self, marks: Iterable[str]) -> str:
        """The figure: grid, axes, labels, and the marks above them."""
        x, y = self.x, self.y
        lines = [f"M{self.at(tick, y.low)}L{self.at(tick, y.high)}" for tick in x.ticks]
        lines += [f"M{self.at(x.low, tick)}L{self.at(x.high, tick)}" for tick in y.ticks]
        ends = f"M{self.at(x.low, y.high)}L{self.at(x.low, y.low)}L{self.at(x.high, y.low)}"
        middle = (_LEFT + self.width - _RIGHT) / 2, (_TOP + self.height - _BOTTOM) / 2
        parts = [
            f'<svg viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" role="img"><title>{escape(self.title)}</title>',
            f'<path class="grid" d="{"".join(lines)}"/><path class="axis" fill="none" d="{ends}"/>',
            *(self._number(tick, below=True) for tick in x.ticks),
            *(self._number(tick, below=False) for tick in y.ticks),
            f'<text x="{middle[0]:.0f}" y="{self.height - 5}" text-anchor="middle">'
            f"{escape(x.label)}</text>",
            f'<text transform="translate(11 {middle[1]:.0f}) rotate(-90)" text-anchor="middle">'
            f"{escape(y.label)}</text>",
            *marks,
            "</svg>",
        ]
        return "".join(parts)  # every text above is escaped

    def _number(self, tick: float, *, below: bool) -> str:
        x, y = (tick, self.y.low) if below else (self.x.low, tick)
        across, up = (float(part) for part in self.at(x, y).split())
        place = (across, up + 14, "middle") if below else (across - 5, up + 4, "end")
        return (
            f'<text class="small" x="{place[0]:.1f}" y="{place[1]:.1f}" text-anchor="{place[2]}">'
            f"{tick:g}</text>"
        )


def scatter(title: str, clouds: Mapping[str, Points], style: str) -> str:
    """Predicted (across) against actual (up) shares, a cloud for each run, and the diagonal.

    All points of a cloud are one path of dots, so that thousands of them stay small.
    """
    shares = {"low": 0.0, "high": 1.0, "ticks": _SHARES}
    frame = Frame(
        title=title,
        width=SIDE,
        height=SIDE,
        x=Axis(label="predicted", **shares),  # type: ignore[arg-type]
        y=Axis(label="actual", **shares),  # type: ignore[arg-type]
    )
    marks = [f'<path class="diagonal" d="M{frame.at(0, 0)}L{frame.at(1, 1)}"/>']
    for name, points in clouds.items():
        dots = "".join(f"M{frame.at(x, y)}h0" for x, y in points)
        marks.append(
            f'<path class="cloud {escape(style)}" d="{dots}"><title>{escape(name)}</title></path>'
        )
    return frame.draw(marks)


def lines(title: str, curves: Mapping[str, Points], x_label: str, y_label: str) -> str:
    """A line with marks for every named curve, over a common number from 0 upwards."""
    values = [point for points in curves.values() for point in points]
    across, up = ([point[axis] for point in values] for axis in (0, 1))
    step = _step(max(up))
    count = int(max(up) / step) + 1
    frame = Frame(
        title=title,
        width=420,
        height=SIDE,
        x=Axis(label=x_label, low=min(across), high=max(across), ticks=sorted(set(across))),
        y=Axis(
            label=y_label,
            low=0.0,
            high=step * count,
            ticks=[round(step * n, 10) for n in range(count + 1)],
        ),
    )
    marks = []
    for name, points in curves.items():
        path = "L".join(frame.at(x, y) for x, y in points)
        dots = "".join(f"M{frame.at(x, y)}h0" for x, y in points)
        style = escape(name)
        marks.append(
            f'<path class="line {style}" d="M{path}"/><path class="dots {style}" d="{dots}"/>'
        )
    return frame.draw(marks)


def _step(most: float) -> float:
    """A round distance between ticks that leaves about five of them up to ``most``."""
    power = 1.0
    while power > most / 5:
        power /= 10
    while power * 10 <= most / 5:
        power *= 10
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor * 5 >= most * 0.999)
