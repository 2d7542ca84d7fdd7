"""The viewer: a robot, a trajectory or a batch of them in the browser, by viser.

The server listens on the loopback address: nobody else on the network can look in. Every solid is one mesh with an
instance for each robot of the batch, so a batch costs no more messages than one robot.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saltus.model.checks import Array
from saltus.model.model import Model
from saltus.ocp.problem import OCPResult
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.simulation import Motion, Trajectory
from saltus.view.drawn import SEE_THROUGH, Drawn
from saltus.view.scene import EXTRAS, FIELD_OF_VIEW, VIEWS, Scene, describe
from saltus.view.sliders import Sliders

UPDATE_PERIOD = 1 / 30  # s between the pictures of a running replay
SPEEDS = ("0.1x", "0.25x", "0.5x", "1x", "2x", "4x")


def show(
    model: Model | Motion | ShootingProblem | Scene,
    q: ArrayLike | Trajectory | OCPResult | None = None,
    dt: float = 0.02,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    play: bool = False,
    **extras: Any,
) -> Viewer:
    """Opens a viewer page and returns at once; the page is at `viewer.url` until `viewer.close()`.

    model: or, without q, what `Simulator.rollout` returns: contacts and terrain are drawn as well; or a `ShootingProblem`,
        with its `OCPResult` in the place of q, likewise; or a scene, of `describe` or `side_by_side`.
    q: a pose (nq,), a trajectory (T, nq), a batch of trajectories (B, T, nq), or what `rollout` returns; by default the
        model's first reference configuration, or the neutral one if it has none. A pose has sliders for its joints.
    dt: time between frames [s].
    host, port: where to listen; if the port is taken, the next free one. Give another host only to let others look in.
    play: whether the motion runs at once, or waits for the tick on the page.
    extras: terrain, contacts, forces, axes, objects, title and more, as `saltus.view.describe` takes them.

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=5)
    >>> with show(robot) as viewer:
    ...     viewer.update(sl.random_configuration(robot, seed=1))
    ...     viewer.url.startswith("http://127.0.0.1:")
    True
    """
    if not isinstance(model, Model | Motion | ShootingProblem | Scene):
        raise TypeError(
            f"the model is a {type(model).__name__}, expected a saltus.Model, a Motion, a ShootingProblem or a Scene"
        )
    if q is None and isinstance(model, Model):
        q = next(iter(model.reference_configurations.values()), model.neutral())
    _refuse_wrong_address(host, port)
    return Viewer(model, q, scene_of(model, q, dt, **extras), host, port, play, extras)


def scene_of(
    model: Model | Motion | ShootingProblem | Scene,
    q: ArrayLike | Trajectory | OCPResult | None,
    dt: float,
    **extras: Any,
) -> Scene:
    """What `describe` makes of them; a scene is one already."""
    if not isinstance(model, Scene):
        return describe(model, q, dt, **extras)
    if q is not None or extras:
        raise ValueError(
            f"a scene has all that is drawn: expected no {', '.join(['q'] * (q is not None) + list(extras))}"
        )
    return model


class Viewer:
    """A page that shows a robot. Make one with `show`; `close` it, or use it in a with statement."""

    def __init__(
        self,
        model: Model | Motion | ShootingProblem | Scene,
        q: ArrayLike | Trajectory | OCPResult | None,
        scene: Scene,
        host: str,
        port: int,
        play: bool,
        extras: dict[str, Any],
    ) -> None:
        import viser

        if isinstance(model, ShootingProblem):
            model, q = model.model, None  # a plan has no sliders
        self._model = model.simulator.model if isinstance(model, Motion) else model
        self._scene, self._given = scene, extras
        with _silent_rich():
            self._server: Any = viser.ViserServer(host=host, port=port, label=scene.title, verbose=False)
        self._server.gui.configure_theme(show_logo=False, show_share_button=False)
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._add_controls(play)
        self._sliders: Sliders | None = None
        self._build(scene)
        self._offer_sliders(q)
        self._player = threading.Thread(target=self._run, name="saltus-viewer", daemon=True)
        self._player.start()

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{self._server.get_host()}:{self._server.get_port()}"

    @property
    def server(self) -> Any:
        """The `viser.ViserServer` of the page: for controls of your own, other things in the scene, cameras. What is called
        /scene, /ground or /sky there is the viewer's."""
        return self._server

    @property
    def q(self) -> Array:
        """(nq,) the pose that is shown, as the sliders of its joints have it."""
        if self._sliders is None:
            raise ValueError("there is no pose of one robot on the page: its sliders are for that")
        return self._sliders.q.copy()

    def update(self, q: ArrayLike | Trajectory | Motion | Scene, dt: float | None = None, **extras: Any) -> None:
        """Shows another pose, trajectory or simulated motion of the same robot, with the arguments of `show`, or a scene.

        If q has the shape of the one before, only the robot moves: cheap enough to show a simulation as it runs.
        """
        with self._lock:
            before = self._scene
            dt = before.dt if dt is None else dt
            kept: dict[str, Any] = {"solids": before.solids, "title": before.title}
            if isinstance(q, Scene):
                scene = scene_of(q, None, dt, **extras)
            elif isinstance(q, Motion):
                scene = describe(q, dt=dt, **{**kept, **extras})
            elif isinstance(self._model, Scene):
                raise TypeError("the viewer shows a scene: expected another one")
            else:
                scene = describe(self._model, q, dt, **{**kept, "terrain": before.terrain, **extras})
            self._given = extras
            self._show(scene)
            self._offer_sliders(q)

    def look(self, view: str = "start") -> None:
        """Moves the cameras of all who look to one of the places "start", "front", "side", "top"."""
        for client in self._server.get_clients().values():
            self._look(client, view)

    def close(self) -> None:
        """Stops the server. The page stays as it is, and moves no more."""
        if not self._closed.is_set():
            self._closed.set()
            self._player.join()
            with _silent_rich():
                self._server.stop()

    def __repr__(self) -> str:
        return f"Viewer({self.url!r})"

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------------- the parts

    def _show(self, scene: Scene) -> None:
        """Moves what is on the page, if that is enough."""
        with self._lock:
            if _alike(scene, self._scene):
                self._scene = scene
                for drawn, part in zip(self._drawn, scene.parts, strict=True):
                    drawn.part = part
                self._draw()
            else:
                self._build(scene)

    def _build(self, scene: Scene) -> None:
        """Fills the page anew."""
        with self._lock, self._server.atomic():
            self._scene = scene
            self._server.scene.reset()
            self._add_stage()
            self._drawn = [
                Drawn(self._server.scene, part, f"/scene/{index}", scene.size, scene.floor)
                for index, part in enumerate(scene.parts)
            ]
            self._set_controls()
            self._dim()
            self._draw()

    def _add_stage(self) -> None:
        scene, page = self._scene, self._server.scene
        page.set_up_direction("+z")
        page.configure_environment_map(None)  # its light would wash out the colours
        page.add_light_hemisphere("/sky", sky_color=(255, 255, 255), ground_color=(190, 180, 170), intensity=1.2)
        cell = float(10.0 ** np.round(np.log10(0.25 * scene.size)))
        self._ground = page.add_frame("/ground", show_axes=False)
        page.add_grid(
            "/ground/floor", infinite_grid=True, cell_size=cell, section_size=5 * cell, position=(0, 0, scene.floor),
            cell_color=(205, 210, 218), section_color=(160, 168, 180), fade_distance=25 * scene.size,
            shadow_opacity=0.3, plane_color=(232, 235, 239), plane_opacity=1.0,
        )  # fmt: skip
        camera = self._server.initial_camera
        camera.position, camera.look_at, camera.up = (
            scene.eye(),
            (scene.low + scene.high) / 2,
            np.array([0.0, 0.0, 1.0]),
        )
        camera.fov = FIELD_OF_VIEW

    def _add_controls(self, play: bool) -> None:
        gui = self._server.gui
        gui.add_markdown(f"### {self._scene.title}")
        self._time = gui.add_slider("time [s]", 0.0, 1.0, self._scene.dt, 0.0)
        self._play = gui.add_checkbox("play", play)
        self._speed = gui.add_dropdown("speed", SPEEDS, initial_value="1x")
        self._follow = gui.add_checkbox("follow", False)
        self._see_through = gui.add_checkbox("see-through", False)
        camera = gui.add_button_group("camera", tuple(VIEWS))
        camera.on_click(lambda event: self._look(event.client, event.target.value))
        self._switches = {name: gui.add_checkbox(name, name in self._scene.shown) for name in EXTRAS}
        for control in (self._time, self._follow, *self._switches.values()):
            control.on_update(lambda _: self._draw())
        self._see_through.on_update(lambda _: self._dim())

    def _set_controls(self) -> None:
        """Shows those that make sense for the scene."""
        scene = self._scene
        self._time.value = 0.0
        self._time.max, self._time.step = scene.dt * max(scene.frames - 1, 1), scene.dt
        self._follow.value = scene.follow
        for control in (self._time, self._play, self._speed, self._follow):
            control.visible = scene.frames > 1
        for name, switch in self._switches.items():
            switch.visible = any(name in part.extras for part in scene.parts)

    def _look(self, client: Any, view: str) -> None:
        if view not in VIEWS:
            raise ValueError(f"there is no view {view!r}, expected one of {', '.join(map(repr, VIEWS))}")
        scene = self._scene
        with client.atomic():
            client.camera.position = scene.eye(view)  # which takes along what the camera looks at
            client.camera.look_at = (scene.low + scene.high) / 2
            client.camera.up_direction = np.array([0.0, 0.0, 1.0])

    def _offer_sliders(self, q: Any) -> None:
        """For the joints of one robot in one pose."""
        scene = self._scene
        if (
            isinstance(self._model, Model)
            and (scene.robots, scene.frames, scene.beside) == (1, 1, ())
            and q is not None
        ):
            pose = np.array(q, dtype=np.float64).reshape(self._model.nq)
            if self._sliders is None:
                self._sliders = Sliders(self._server.gui, self._model, pose, self._slid)
            else:
                self._sliders.show(pose)
        elif self._sliders is not None:
            self._sliders.remove()
            self._sliders = None

    def _slid(self, q: Array) -> None:
        """Someone has moved a slider."""
        if isinstance(self._model, Model):
            before = self._scene
            kept = {"solids": before.solids, "title": before.title, "terrain": before.terrain}
            self._show(describe(self._model, q, before.dt, **{**kept, **self._given}))

    # ------------------------------------------------------------------------------------------------------ the motion

    @property
    def _frame(self) -> int:
        """That of the slider."""
        return int(min(round(self._time.value / self._scene.dt), self._scene.frames - 1))

    def _draw(self) -> None:
        """Moves everything to where the slider is.

        A camera that follows stays where it is, and the ground goes back under it: a page may draw one a little later
        than the other, and then it is the ground that shakes, not the robot.
        """
        with self._lock, self._server.atomic():
            scene, frame = self._scene, self._frame
            back = -scene.path[frame] if self._follow.value else np.zeros(3)
            for drawn in self._drawn:
                drawn.draw(frame, back)
                for name, handles in drawn.groups.items():
                    for handle in handles:
                        handle.visible = bool(self._switches[name].value)
            self._ground.position = back

    def _dim(self) -> None:
        """Makes the robots as see-through as they are in the scene, or more."""
        with self._lock, self._server.atomic():
            for drawn in self._drawn:
                drawn.dim(SEE_THROUGH if self._see_through.value else 1.0)

    def _run(self) -> None:
        """Lets time go on while `play` is ticked."""
        at = clock = 0.0
        while not self._closed.wait(UPDATE_PERIOD):
            now = time.monotonic()
            passed, clock = now - clock, now
            with self._lock:
                if int(at) != self._frame:  # someone has moved the slider
                    at = float(self._frame)
                if not self._play.value:
                    continue
                at = (at + passed * float(self._speed.value[:-1]) / self._scene.dt) % self._scene.frames
                if int(at) != self._frame:
                    self._time.value = int(at) * self._scene.dt


def _refuse_wrong_address(host: str, port: int) -> None:
    """viser would wait for ever for a server that cannot start."""
    if not isinstance(port, int) or not 0 <= port <= 65535:
        raise ValueError(f"port is {port!r}, expected a number from 0 to 65535")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as trial:
            trial.bind(address)
    except (OSError, TypeError, ValueError) as error:  # a UnicodeError, for some names, is a ValueError
        raise ValueError(f"host is {host!r}, expected an address of this machine ({error})") from None


@contextmanager
def _silent_rich() -> Iterator[None]:
    """viser tells of its start and stop by rich, whatever `verbose` says."""
    import rich

    console = rich.get_console()
    quiet, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = quiet


def _alike(a: Scene, b: Scene) -> bool:
    """Whether the page of one, moved, is the page of the other."""
    return len(a.parts) == len(b.parts) and all(map(_alike_parts, a.parts, b.parts))


def _alike_parts(a: Scene, b: Scene) -> bool:
    return (
        (a.placements.shape, a.axes.shape) == (b.placements.shape, b.axes.shape)
        and (a.dt, a.solids, a.contacts.names, a.extras) == (b.dt, b.solids, b.contacts.names, b.extras)
        and np.array_equal(a.opacity, b.opacity)
        and a.terrain.pieces == b.terrain.pieces
        and np.array_equal(a.terrain_places, b.terrain_places)
        and a.objects.looks == b.objects.looks
    )
