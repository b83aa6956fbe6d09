"""Takes the pictures of the page that the tutorial's commands write.

    python docs/make_pictures.py

Runs these commands first, so that a picture shows what the tutorial's reader gets. Needs Chromium:
where it is not on the PATH, name it with CHROMIUM=/path/to/chromium.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from make_outputs import run_page
from playwright.sync_api import Page, sync_playwright

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures"
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--headless"]


def take(page: Page) -> None:
    """Take both pictures: the top of the page, and one subscriber."""
    page.wait_for_selector("#subscriber .curves path.curve", state="attached")
    page.screenshot(path=PICTURES / "report.png")
    page.locator("#subscriber").screenshot(path=PICTURES / "subscriber.png")


if __name__ == "__main__":
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        run_page(DOCS / "tutorial.md", Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium, args=OPTIONS)
        page = browser.new_page(viewport={"width": 1000, "height": 640})
        page.goto((Path(folder) / "orders.html").as_uri())
        take(page)
        browser.close()
