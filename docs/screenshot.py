"""The picture of the explorer in README.md: `efemb demo`, then `python docs/screenshot.py [PAGE]`.

Needs chromium and playwright (`make test-browser` installs both), and Pillow to make it small.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import sync_playwright

PAGE = Path("efemb-demo-explorer.html")
TARGET = Path(__file__).parent / "explorer.png"
STATE = {"item": "EGGS - X-LARGE 1 DZ (private)", "tab": "item", "theme": "light"}


def main(page: Path, target: Path) -> None:
    """Open the page at an item and save what it shows."""
    address = f"{page.resolve().as_uri()}#{urlencode(STATE)}"
    flags = ["--no-sandbox", "--enable-unsafe-swiftshader"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        tab = browser.new_page(viewport={"width": 1280, "height": 720})
        tab.goto(address)
        tab.wait_for_selector("html[data-ready]", state="attached", timeout=120_000)
        tab.wait_for_timeout(1000)
        picture = Image.open(io.BytesIO(tab.screenshot()))
        browser.close()
    most = Image.Quantize.MAXCOVERAGE  # keeps rare colors
    few = picture.convert("RGB").quantize(128, method=most, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE, TARGET)
