"""Figures as SVG text: clouds of points against the diagonal, and curves over a number.

They need no script and no network. The classes are those of the page's style sheet, so figures
follow its colours, in the dark too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from tidings.model.study import Curves, Points, Scatter, Timeline

SIDE = 250  # pixels of a scatter plot
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 8, 36
SERIES = 6  # colours in the style sheet
_ROW = 32  # pixels of a row of a time line
_MARKED = 20  # points of a line that are marked one by one; more would hide the line


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis: what it shows, from where to where, and which numbers are written out."""

    label: str
    low: float
    high: float
    ticks: Sequence[float]
    logarithmic: bool = False

    def place(self, value: float, start: float, end: float) -> float:
        """Compute where a value lies between two ends, in pixels."""
        low, high = self.low, self.high
        if self.logarithmic:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return start + (value - low) / (high - low) * (end - start)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotArea:
    """A drawing area between two axes."""

    title: str
    width: int
    height: int
    x: Axis
    y: Axis

    def at(self, x: float, y: float) -> str:
        """Write a point in pixels, to a tenth of one."""
        across = self.x.place(x, _LEFT, self.width - _RIGHT)
        up = self.y.place(y, self.height - _BOTTOM, _TOP)
        return f"{across:.1f} {up:.1f}"

    def draw(self, marks: Iterable[str]) -> str:
        """Draw the figure: grid, axes, labels, and the marks above them."""
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


def scatter(plot: Scatter) -> str:
    """Plot predicted (across) against actual (up) shares: a cloud for each run, and the diagonal.

    All points of a cloud are one path of dots, so that thousands of them stay small.
    """
    across, up = (
        _axis(label, (plot.low, 1.0), logarithmic=False, from_zero=False)
        for label in ("predicted", "actual")
    )
    frame = PlotArea(
        title=f"{plot.title}: predicted against actual on-time shares",
        width=SIDE,
        height=SIDE,
        x=across,
        y=up,
    )
    marks = [f'<path class="diagonal" d="M{frame.at(across.low, up.low)}L{frame.at(1, 1)}"/>']
    for name, points in plot.clouds.items():
        marks.append(
            f'<path class="cloud series-{plot.series % SERIES}" d="{_dots(frame, points)}">'
            f"<title>{escape(name)}</title></path>"
        )
    return frame.draw(marks)


def curves(plot: Curves) -> str:
    """Draw a line for every named curve and points for every named mark, in the colours of both."""
    named = {**plot.lines, **plot.marks}
    values = [point for points in named.values() for point in points]
    frame = PlotArea(
        title=plot.title,
        width=420,
        height=SIDE,
        x=_axis(plot.x_label, [x for x, _ in values], logarithmic=plot.x_log, from_zero=False),
        y=_axis(plot.y_label, [y for _, y in values], logarithmic=plot.y_log, from_zero=True),
    )
    drawn = []
    for number, (name, points) in enumerate(named.items()):
        style = f"series-{number % SERIES}"
        if name in plot.lines and points:
            path = "L".join(frame.at(x, y) for x, y in points)
            drawn.append(f'<path class="line {style}" d="M{path}"/>')
        if name in plot.marks or len(points) <= _MARKED:
            drawn.append(f'<path class="dots {style}" d="{_dots(frame, points)}"/>')
    return frame.draw(drawn)


def timeline(plot: Timeline) -> str:
    """Draw a row for every name, with a bar for every span of time."""
    rows = max(len(plot.spans), 1)
    frame = PlotArea(
        title=plot.title,
        width=420,
        height=_TOP + _BOTTOM + _ROW * rows,
        x=_axis(plot.x_label, (0.0, plot.end), logarithmic=False, from_zero=True),
        y=Axis(label="", low=0.0, high=float(rows), ticks=()),
    )
    drawn = []
    for number, (name, spans) in enumerate(plot.spans.items()):
        middle = rows - number - 0.5
        across, up = frame.at(0.0, middle).split()
        bars = "".join(
            f"M{frame.at(begin, middle)}L{frame.at(end, middle)}" for begin, end in spans
        )
        drawn.append(f'<path class="span series-1" d="{bars}"/>')
        drawn.append(
            f'<text class="small" x="{float(across) + 3:.1f}" y="{float(up) - 7:.1f}">'
            f"{escape(name)}</text>"
        )
    return frame.draw(drawn)


def _dots(frame: PlotArea, points: Points) -> str:
    return "".join(f"M{frame.at(x, y)}h0" for x, y in points)


def _axis(label: str, values: Sequence[float], *, logarithmic: bool, from_zero: bool) -> Axis:
    low, high = min(values, default=0.0), max(values, default=1.0)
    if logarithmic:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        if len(decades) == 1:
            decades = range(decades[0], decades[0] + 2)
        ticks = [10.0**decade for decade in decades]
        return Axis(label=label, low=ticks[0], high=ticks[-1], ticks=ticks, logarithmic=True)
    if from_zero:
        low = min(0.0, low)
    if high <= low:
        high = low + (abs(low) or 1.0)
    step = _step(high - low)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [round(step * n, 10) for n in range(first, last + 1)]
    return Axis(label=label, low=ticks[0], high=ticks[-1], ticks=ticks)


def _step(most: float) -> float:
    """Choose a round distance between ticks that leaves about five of them up to ``most``."""
    power = 1.0
    while power > most / 5:
        power /= 10
    while power * 10 <= most / 5:
        power *= 10
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor * 5 >= most * 0.999)
