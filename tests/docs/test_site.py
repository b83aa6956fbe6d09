"""The site builds without a warning, its links lead somewhere, and nothing is fetched."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from doc_pages import ROOT, ROOT_PAGES, SITE_PAGES

pytestmark = pytest.mark.slow
# What a page loads by itself, by tag; a link that a reader may follow is none of it.
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class Page(HTMLParser):
    """Anchors of a page, what it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADS and LOADS[tag] in given:
            self.loads.append(given[LOADS[tag]])
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev", "alternate"):
            self.loads.append(given["href"])


# Functions are read from text: Spark would take seconds to import, and need not be there.
BUILD = """
import sys
from mkdocs.__main__ import cli
cli(["build", "--strict", "--site-dir", sys.argv[1]], standalone_mode=False)
print("imported:", *({"pyspark", "numba", "tidings"} & set(sys.modules)))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    ran = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder, ran.stdout


@pytest.fixture(scope="module")
def site(built):
    return built[0]


@pytest.fixture(scope="module")
def pages(site):
    paths = [path for path in site.rglob("*.html") if path.name != "404.html"]
    return {path: Page(path.read_text(encoding="utf-8")) for path in paths}


def test_every_page_is_built(site, pages):
    docs = ROOT / "docs"
    assert {path.relative_to(site).with_suffix("") for path in pages} == {
        page.relative_to(docs).with_suffix("") for page in SITE_PAGES
    }


def test_links_and_anchors_lead_somewhere(pages):
    lost = []
    for path, page in pages.items():
        for link in page.links:
            target, anchor = urldefrag(link)
            if "://" in link or link.startswith("mailto:"):
                continue
            there = (path.parent / unquote(target)).resolve() if target else path
            known = there in pages and (not anchor or unquote(anchor) in pages[there].anchors)
            if not known and not (there.is_file() and there not in pages):
                lost.append(f"{path.name}: {link}")
    assert lost == []


def test_no_page_loads_anything_from_a_network(site, pages):
    fetched = re.compile(r"(?:https?:)?//")
    assert [load for page in pages.values() for load in page.loads if fetched.match(load)] == []
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"""(?:url\(|@import)\s*["']?(?:https?:)?//""", text), sheet.name


def test_every_public_function_has_its_words(site):
    text = (site / "reference" / "python.html").read_text(encoding="utf-8")
    assert "Predict which share of its events each subscriber gets in time" in text
    assert ":class:" not in text


def test_building_imports_nothing_that_is_described(built):
    assert built[1].splitlines()[-1].split() == ["imported:"]


@pytest.mark.parametrize("page", [*ROOT_PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_links_of_pages_outside_the_site_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


@pytest.mark.parametrize("picture", sorted((ROOT / "docs").rglob("*.png")), ids=lambda p: p.name)
def test_pictures_are_small_and_shown(picture):
    assert picture.stat().st_size < 150_000
    shown = [page for page in (*ROOT_PAGES, *SITE_PAGES) if picture.name in page.read_text("utf-8")]
    assert shown


def _paths_of_pages() -> list[tuple[Path, str]]:
    folders = ("src", "studies", "examples", "benchmarks")
    sources = [path for name in folders for path in (ROOT / name).rglob("*.py")]
    sources += [ROOT / "Makefile", *(ROOT / "studies").glob("*.yaml")]
    return [
        (path, page)
        for path in sources
        for page in re.findall(r"docs/[\w./-]+\.(?:md|py|csv|yaml)", path.read_text("utf-8"))
    ]


def test_code_and_messages_point_to_pages_that_exist():
    pointers = _paths_of_pages()
    assert len(pointers) >= 5
    assert [(str(path), page) for path, page in pointers if not (ROOT / page).exists()] == []
