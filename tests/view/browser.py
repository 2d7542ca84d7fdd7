"""A headless Chromium, and what tests ask of a page: does it draw, does it move, does it complain."""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib.image
import numpy as np

ARGUMENTS = [
    "--headless=new", "--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-quic", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
]  # fmt: skip
SMALL, LARGE = {"width": 480, "height": 360}, {"width": 900, "height": 600}  # no larger: there is no GPU to draw them


def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "Chromium is not installed; `make browser` installs it (Debian: apt-get install chromium)"
    return found


@contextmanager
def launched() -> Iterator[Any]:
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, url: str, viewport: dict[str, int] = SMALL, **options: Any) -> Iterator[Any]:
    """The page at an address. At the end, nothing in its console may be an error, and it must have asked for nothing but
    what comes from the same place."""
    complaints: list[str] = []
    requests: list[str] = []
    page = browser.new_page(viewport=viewport, **options)
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    try:
        page.goto(url)
        yield page
    finally:
        page.close()
    assert not complaints, complaints
    foreign = [request for request in requests if not request.startswith((url, "data:", "blob:"))]
    assert not foreign, foreign


def picture(page: Any) -> np.ndarray:
    """What of the page lies between its controls: (height, width, 3), from 0 to 1. The replay's are at the edges of a small
    page, the viewer's, 320 pixels wide, at the right of a large one, below a note at the top."""
    image = matplotlib.image.imread(io.BytesIO(page.screenshot()))[..., :3]
    height, width = image.shape[:2]
    rows, columns = slice(int(0.27 * height), int(0.75 * height)), slice(int(0.15 * width), int(0.6 * width))
    return np.asarray(image[rows, columns], dtype=np.float64)


def settled(page: Any, patience: float = 60.0) -> np.ndarray:
    """The picture once it is not blank and no longer changes."""
    end, before = time.monotonic() + patience, picture(page)
    while time.monotonic() < end:
        page.wait_for_timeout(150)
        now = picture(page)
        if is_drawn(now) and abs(now - before).mean() < 3e-4:  # a page that still fades in changes by more
            return now
        before = now
    raise AssertionError(f"after {patience:g} s the page is blank or still changes")


def wait_until(page: Any, holds: Callable[[np.ndarray], bool], patience: float = 60.0) -> None:
    """Until the picture is as it should be: a page without a GPU, on a machine that is busy, takes its time."""
    end = time.monotonic() + patience
    while not holds(picture(page)):
        assert time.monotonic() < end, f"after {patience:g} s the picture is not as it should be"
        page.wait_for_timeout(150)


def is_drawn(image: np.ndarray) -> bool:
    """A blank page has one colour."""
    return bool(image.std(axis=(0, 1)).max() > 0.03 and len(np.unique(np.rint(image.reshape(-1, 3) * 31), axis=0)) > 30)


def differing(a: np.ndarray, b: np.ndarray) -> float:
    """The share of the pixels that are clearly different."""
    return float((abs(a - b).max(axis=-1) > 0.08).mean())
