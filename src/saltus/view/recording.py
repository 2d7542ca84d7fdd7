"""Pictures and videos of robots, made by a headless Chromium from replay pages, one screenshot a frame: no window is needed.

`pip install 'saltus[video]'` brings playwright, which drives it, and ffmpeg, which writes MP4; Chromium is a package of the
system (`apt-get install chromium`), or what `playwright install chromium` downloads.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saltus.arrays import real_numbers
from saltus.model.model import Model
from saltus.ocp.problem import OCPResult
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.simulation import Motion, Trajectory
from saltus.view.browser import scene_of
from saltus.view.replay import page
from saltus.view.scene import VIEWS, Scene

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")  # there may be no GPU
PICTURES, VIDEOS = (".png", ".jpg", ".jpeg"), (".mp4", ".gif")
SIZE = (960, 720)
FRAMES_PER_SECOND = 25.0
MOST_PIXELS = 4096


def save_picture(
    path: str | Path,
    model: Model | Motion | ShootingProblem | Scene,
    q: ArrayLike | Trajectory | OCPResult | None = None,
    dt: float = 0.02,
    *,
    time: float = 0.0,
    view: str = "start",
    size: tuple[int, int] = SIZE,
    **extras: Any,
) -> Path:
    """Writes a picture (.png or .jpg) of a robot; returns its path. Needs `pip install 'saltus[video]'` and Chromium.

    model, q, dt, extras: as `save_replay` takes them.
    time: of a motion, when [s].
    view: where the camera is, "start", "front", "side" or "top".
    size: width and height in pixels.
    """
    file = _writable(path, PICTURES, "a picture")
    scene = scene_of(model, q, dt, **extras)
    moment = real_numbers(time, "time")
    if moment.ndim or not 0 <= moment <= scene.frames * scene.dt:
        raise ValueError(f"time is {time}, expected one from 0 to {(scene.frames - 1) * scene.dt:g} s")

    def take(shots: Callable[[float], bytes]) -> None:
        import imageio.v3 as imageio

        imageio.imwrite(file, imageio.imread(io.BytesIO(shots(float(moment)))))

    _photographed(scene, view, size, take)
    return file


def save_video(
    path: str | Path,
    model: Model | Motion | ShootingProblem | Scene,
    q: ArrayLike | Trajectory | OCPResult | None = None,
    dt: float = 0.02,
    *,
    view: str = "start",
    size: tuple[int, int] = SIZE,
    speed: float = 1.0,
    **extras: Any,
) -> Path:
    """Writes a motion as a video (.mp4 or .gif) of 25 frames a second; returns its path. Needs
    `pip install 'saltus[video]'` and Chromium. A second of it takes a few seconds.

    model, q, dt, extras: as `save_replay` takes them.
    view: where the camera is, "start", "front", "side" or "top".
    size: width and height in pixels, even numbers.
    speed: how fast time goes by; 0.5 is slow motion.
    """
    file = _writable(path, VIDEOS, "a video")
    pace = real_numbers(speed, "speed")
    if pace.ndim or not 0 < pace < np.inf:
        raise ValueError(f"speed is {speed}, expected a positive number")
    if size[0] % 2 or size[1] % 2:
        raise ValueError(f"size is {size}, expected even numbers: videos have no others")
    scene = scene_of(model, q, dt, **extras)
    count = max(1, int(scene.frames * scene.dt / float(pace) * FRAMES_PER_SECOND))

    def take(shots: Callable[[float], bytes]) -> None:
        import imageio.v2 as imageio

        with _writer(imageio, file) as writer:
            for index in range(count):
                moment = min(index / FRAMES_PER_SECOND * float(pace), (scene.frames - 1) * scene.dt)
                writer.append_data(imageio.imread(io.BytesIO(shots(moment))))

    _photographed(scene, view, size, take)
    return file


def _photographed(
    scene: Scene, view: str, size: tuple[int, int], take: Callable[[Callable[[float], bytes]], None]
) -> None:
    """Gives `take` a camera: a function from time [s] to the bytes of a picture."""
    if view not in VIEWS:
        raise ValueError(f"view is {view!r}, expected one of {', '.join(map(repr, VIEWS))}")
    if len(size) != 2 or not all(isinstance(side, int) and 16 <= side <= MOST_PIXELS for side in size):
        raise ValueError(f"size is {size}, expected width and height, each from 16 to {MOST_PIXELS} pixels")

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder, _browser() as browser:
            replay = Path(folder) / "replay.html"
            replay.write_text(page(scene), encoding="utf-8")
            tab = browser.new_page(viewport={"width": size[0], "height": size[1]})
            tab.goto(replay.as_uri())
            tab.evaluate("view => { document.body.classList.add('bare'); play(false); look(view); }", view)

            def shot(moment: float) -> bytes:
                tab.evaluate("moment => { seconds = moment; draw(); render(); }", moment)
                return bytes(tab.screenshot())

            take(shot)

    with ThreadPoolExecutor(1) as own:  # in a notebook this thread has a loop of its own, which playwright minds
        own.submit(run).result()


@contextmanager
def _browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise ValueError("pictures and videos need playwright: pip install 'saltus[video]'") from None
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as play:
        try:
            browser = play.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        except Error as error:
            raise ValueError(
                "pictures and videos need Chromium: apt-get install chromium, or playwright install chromium "
                f"({str(error).splitlines()[0]})"
            ) from None
        yield browser
        browser.close()


def _writer(imageio: Any, file: Path) -> Any:
    if file.suffix.lower() == ".gif":
        return imageio.get_writer(file, duration=1000 / FRAMES_PER_SECOND, loop=0)
    try:
        return imageio.get_writer(file, format="FFMPEG", fps=FRAMES_PER_SECOND, quality=8, macro_block_size=2)
    except ImportError:
        raise ValueError("MP4 files need ffmpeg: pip install 'saltus[video]'; GIF files do not") from None


def _writable(path: str | Path, endings: tuple[str, ...], what: str) -> Path:
    file = Path(path)
    if file.suffix.lower() not in endings:
        raise ValueError(f"{file}: expected the name of {what}, which ends in {', '.join(endings)}")
    if not file.absolute().parent.is_dir():
        raise ValueError(f"{file}: cannot be written: there is no folder {file.parent}")
    return file
