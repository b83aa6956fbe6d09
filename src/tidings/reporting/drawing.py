"""A system's brokers and links as a drawing of its own: SVG, or Mermaid text."""

from __future__ import annotations

import html
import re
from collections import Counter
from xml.etree import ElementTree

from tidings.model.system import System
from tidings.reporting.layout import lay_out
from tidings.reporting.wording import plural, seconds, short

_COLUMN, _ROW, _EDGE = 220, 90, 90  # pixels between neighbours, and around all of them
_RADIUS = 16
_NO_XML = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = (
    "svg{background:#fff}line{stroke:#8496ab;stroke-width:2}circle{fill:#2171b5}"
    "text{font:13px sans-serif;text-anchor:middle;fill:#17202a}.small{font-size:11px;fill:#5a6673}"
)


def mermaid(system: System) -> str:
    """Write brokers, links and how many clients each broker has as Mermaid text."""
    names = {broker.name: f"b{index}" for index, broker in enumerate(system.brokers)}
    lines = ["graph LR"]
    for name, clients in _clients(system).items():
        label = "<br/>".join(_entities(each) for each in (name, clients) if each)
        lines.append(f'  {names[name]}(["{label}"])')
    for link, label in _links(system):
        one, other = (names[end] for end in link)
        lines.append(
            f'  {one} ---|"{_entities(label)}"| {other}' if label else f"  {one} --- {other}"
        )
    return "\n".join(lines) + "\n"


def svg(system: System) -> str:
    """Draw brokers, links and how many clients each broker has, placed as on the report's page."""
    clients = _clients(system)
    links = list(_links(system))
    layout = lay_out(list(clients), [ends for ends, _ in links])
    across = len({round(x, 3) for x, _ in layout.positions.values()})
    width = min(across, 12) * _COLUMN + _EDGE
    height = max(layout.rows, 1) * _ROW + _EDGE
    places = {
        name: (_EDGE + x * (width - 2 * _EDGE), _EDGE / 2 + y * (height - _EDGE))
        for name, (x, y) in layout.positions.items()
    }
    root = ElementTree.Element(
        "svg",
        {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width} {height}",
         "width": str(width), "height": str(height), "role": "img"},
    )  # fmt: skip
    title = f"{plural(len(clients), 'broker')}, {plural(len(links), 'link')}"
    ElementTree.SubElement(root, "title").text = _clean(system.description or title)
    ElementTree.SubElement(root, "style").text = _STYLE
    for (one, other), label in links:
        (x1, y1), (x2, y2) = places[one], places[other]
        ends = {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"}
        ElementTree.SubElement(root, "line", ends)
        _write(root, label, (x1 + x2) / 2, (y1 + y2) / 2 - 5, small=True)
    for name, (x, y) in places.items():
        ElementTree.SubElement(
            root, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": str(_RADIUS)}
        )
        _write(root, short(name), x, y + _RADIUS + 14)
        _write(root, clients[name], x, y + _RADIUS + 28, small=True)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _clients(system: System) -> dict[str, str]:
    """Count the publishers and subscribers of each broker, in words; empty for none."""
    publishers = Counter(each.at for each in system.publishers)
    subscribers: Counter[str] = Counter()
    for each in system.subscribers:
        subscribers[each.at] += each.count
    return {
        broker.name: ", ".join(
            plural(count[broker.name], noun)
            for count, noun in ((publishers, "publisher"), (subscribers, "subscriber"))
            if count[broker.name]
        )
        for broker in system.brokers
    }


def _links(system: System) -> list[tuple[tuple[str, str], str]]:
    """List the ends of each link, and its mean delay where it has one."""
    delays = [link.there.delay.mean_s for link in system.links]
    return [
        (link.between, seconds(delay_s) if delay_s > 0 else "")
        for link, delay_s in zip(system.links, delays, strict=True)
    ]


def _write(
    root: ElementTree.Element, text: str, x: float, y: float, *, small: bool = False
) -> None:
    if text:
        place = {"x": f"{x:.1f}", "y": f"{y:.1f}", **({"class": "small"} if small else {})}
        ElementTree.SubElement(root, "text", place).text = _clean(text)


def _clean(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)


def _entities(text: str) -> str:
    """Escape a text as a Mermaid label: what would end or format it becomes entities."""
    escaped = html.escape(_clean(short(text)))
    return re.sub(r"[`\\\[\]{}|*_]", lambda each: f"#{ord(each[0])};", escaped)
