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
from numpy.typing import ArrayLike, NDArray

from saltus.model.checks import Array
from saltus.model.model import Model
from saltus.ocp.problem import OCPResult
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.simulation import Motion
from saltus.view.scene import (
    CENTER_OF_MASS,
    CONES,
    EXTRAS,
    FIELD_OF_VIEW,
    FORCES,
    SUPPORT,
    Scene,
    describe,
    poses,
)
from saltus.view.solids import Mesh, triangulated
from saltus.view.terrain import EDGE_SHADE

COLORS = {CENTER_OF_MASS: (242, 169, 0), FORCES: (214, 47, 47), CONES: (59, 130, 196), SUPPORT: (47, 158, 95)}
SEE_THROUGH = 0.35
UPDATE_PERIOD = 1 / 30  # s between the pictures of a running replay
SPEEDS = ("0.1x", "0.25x", "0.5x", "1x", "2x", "4x")


def show(
    model: Model | Motion | ShootingProblem,
    q: ArrayLike | OCPResult | None = None,
    dt: float = 0.02,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    play: bool = False,
    **extras: Any,
) -> Viewer:
    """Opens a viewer page and returns at once; the page is at `viewer.url` until `viewer.close()`.

    model: or, without q, what `Simulator.rollout` returns: contacts and terrain are drawn as well; or a `ShootingProblem`,
        with its `OCPResult` in the place of q: contacts and forces are drawn as well.
    q: a pose (nq,), a trajectory (T, nq) or a batch of trajectories (B, T, nq); by default the model's first reference
        configuration, or the neutral one if it has none.
    dt: time between frames [s].
    host, port: where to listen; if the port is taken, the next free one. Give another host only to let others look in.
    play: whether the motion runs at once, or waits for the tick on the page.
    extras: terrain, contacts, forces, active, normals, friction, layout, title, as `saltus.view.describe` takes them.

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=5)
    >>> with show(robot) as viewer:
    ...     viewer.update(sl.random_configuration(robot, seed=1))
    ...     viewer.url.startswith("http://127.0.0.1:")
    True
    """
    if not isinstance(model, Model | Motion | ShootingProblem):
        raise TypeError(
            f"the model is a {type(model).__name__}, expected a saltus.Model, a Motion or a ShootingProblem"
        )
    if q is None and isinstance(model, Model):
        q = next(iter(model.reference_configurations.values()), model.neutral())
    _refuse_wrong_address(host, port)
    scene = describe(model, q, dt, **extras)
    return Viewer(model.model if isinstance(model, ShootingProblem) else model, scene, host, port, play)


class Viewer:
    """A page that shows a robot. Make one with `show`; `close` it, or use it in a with statement."""

    def __init__(self, model: Model | Motion, scene: Scene, host: str, port: int, play: bool) -> None:
        import viser

        self._model, self._scene = model.simulator.model if isinstance(model, Motion) else model, scene
        with _silent_rich():
            self._server: Any = viser.ViserServer(host=host, port=port, label=scene.title, verbose=False)
        self._server.gui.configure_theme(show_logo=False, show_share_button=False)
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._add_controls(play)
        self._build(scene)
        self._player = threading.Thread(target=self._run, name="saltus-viewer", daemon=True)
        self._player.start()

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{self._server.get_host()}:{self._server.get_port()}"

    def update(self, q: ArrayLike | Motion, dt: float | None = None, **extras: Any) -> None:
        """Shows another pose, trajectory or simulated motion of the same robot, with the arguments of `show`.

        If q has the shape of the one before, only the robot moves: cheap enough to show a simulation as it runs.
        """
        with self._lock:
            before = self._scene
            dt = before.dt if dt is None else dt
            kept = {"solids": before.solids, "title": before.title}
            if isinstance(q, Motion):
                scene = describe(q, dt=dt, **{**kept, **extras})
            else:
                scene = describe(self._model, q, dt, **{**kept, "terrain": before.terrain, **extras})
            if _alike(scene, before):
                self._scene = scene
                self._draw()
            else:
                self._build(scene)

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

    def _build(self, scene: Scene) -> None:
        """Fills the page anew."""
        with self._lock, self._server.atomic():
            self._scene = scene
            self._server.scene.reset()
            self._add_stage()
            self._solids = [
                self._add_solid(index, np.flatnonzero(scene.opacity == opacity))
                for opacity in np.unique(scene.opacity)  # apart, for see-through ones are drawn in another way
                for index in range(len(scene.solids))
            ]
            self._terrain = [self._add_terrain(index) for index in range(len(scene.terrain_places))]
            self._add_extras()
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
        camera.position, camera.look_at, camera.up = scene.eye, (scene.low + scene.high) / 2, np.array([0.0, 0.0, 1.0])
        camera.fov = FIELD_OF_VIEW

    def _add_solid(self, index: int, robots: NDArray[np.intp]) -> tuple[int, NDArray[np.intp], Any]:
        """One solid of some of the robots: its index, these robots, its handle."""
        solid = self._scene.solids[index]
        name = f"/scene/robots_{robots[0]}/{index}_{solid.shape.name.replace('/', '_')}"
        return index, robots, self._add_instances(name, triangulated(solid), solid.shape.color * 255, len(robots))

    def _add_instances(self, name: str, mesh: Mesh, color: Any, count: int, **options: Any) -> Any:
        return self._server.scene.add_batched_meshes_simple(
            name, mesh.vertices, mesh.faces, np.tile([1.0, 0, 0, 0], (count, 1)), np.zeros((count, 3)),
            batched_colors=tuple(round(part) for part in color[:3]), lod="off", side="double",
            receive_shadow=False, **options,  # the shadow map is too coarse for a robot's shadow on itself
        )  # fmt: skip

    def _add_terrain(self, index: int) -> Any:
        """A frame with the terrain, at one of its places."""
        page, name = self._server.scene, f"/scene/terrain/{index}"
        frame = page.add_frame(name, show_axes=False)
        for k, surface in enumerate(self._scene.surfaces):
            self._add_instances(f"{name}/{k}", surface.mesh, surface.color * 255, 1)
            shade: Any = tuple(round(255 * part) for part in EDGE_SHADE * surface.color)
            page.add_line_segments(f"{name}/{k}_edges", surface.edges, shade)
        return frame

    def _add_extras(self) -> None:
        scene, page = self._scene, self._server.scene
        robots, size, corners = scene.robots, scene.size, len(scene.contacts.names)
        places, color = robots * corners, COLORS[CENTER_OF_MASS]
        ball, disc = _ball(0.022 * size), _disc(0.02 * size, 0.002 * size)
        self._balls = self._add_instances("/scene/center/ball", ball, color, robots, cast_shadow=False)
        self._discs = self._add_instances("/scene/center/disc", disc, color, robots, cast_shadow=False)
        self._plumbs = page.add_line_segments("/scene/center/plumb", np.zeros((robots, 2, 3)), color)
        self._groups: dict[str, list[Any]] = {CENTER_OF_MASS: [self._balls, self._discs, self._plumbs]}
        if FORCES in scene.extras:
            self._arrows = page.add_arrows(
                "/scene/forces", np.zeros((places, 2, 3)), COLORS[FORCES], shaft_radius=0.009 * size,
                head_radius=0.02 * size, head_length=0.045 * size,
            )  # fmt: skip
            self._groups[FORCES] = [self._arrows]
        if CONES in scene.extras:
            self._cones = self._add_instances(
                "/scene/cones", _cone(), COLORS[CONES], places, opacity=0.35, cast_shadow=False,
                batched_scales=np.ones((places, 3)),
            )  # fmt: skip
            self._groups[CONES] = [self._cones]
        if SUPPORT in scene.extras:
            self._polygon = page.add_mesh_simple(
                "/scene/support", np.zeros((places, 3)), _fans(robots, corners), color=COLORS[SUPPORT],
                opacity=0.4, side="double", cast_shadow=False,
            )  # fmt: skip
            self._groups[SUPPORT] = [self._polygon]

    def _add_controls(self, play: bool) -> None:
        gui = self._server.gui
        gui.add_markdown(f"### {self._scene.title}")
        self._time = gui.add_slider("time [s]", 0.0, 1.0, self._scene.dt, 0.0)
        self._play = gui.add_checkbox("play", play)
        self._speed = gui.add_dropdown("speed", SPEEDS, initial_value="1x")
        self._follow = gui.add_checkbox("follow", False)
        self._see_through = gui.add_checkbox("see-through", False)
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
            switch.visible = name in scene.extras

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
            shapes = [solid.shape for solid in scene.solids]
            local = np.reshape([shape.placement for shape in shapes], (-1, 4, 4))
            moved = poses(scene.placements[:, frame, [shape.joint for shape in shapes]] @ local)
            for index, robots, handle in self._solids:
                handle.batched_positions = moved[robots, index, :3] + back
                handle.batched_wxyzs = moved[robots, index][:, [6, 3, 4, 5]]
            for place, terrain in zip(scene.terrain_places, self._terrain, strict=True):
                terrain.position = place + back
            self._draw_center(frame, back)
            self._draw_contacts(frame, back)
            for name, handles in self._groups.items():
                for handle in handles:
                    handle.visible = bool(self._switches[name].value)
            self._ground.position = back

    def _dim(self) -> None:
        """Makes the robots as see-through as they are in the scene, or more."""
        with self._lock, self._server.atomic():
            for index, robots, handle in self._solids:
                own = self._scene.solids[index].shape.color[3] * self._scene.opacity[robots[0]]
                opacity = float(own) * (SEE_THROUGH if self._see_through.value else 1.0)
                handle.opacity = opacity if opacity < 1 else None

    def _draw_center(self, frame: int, back: Array) -> None:
        top = self._scene.center[:, frame] + back
        ground = top.copy()
        ground[:, 2] = self._scene.floor + 0.002 * self._scene.size + back[2]
        self._balls.batched_positions, self._discs.batched_positions = top, ground
        self._plumbs.points = np.stack([top, ground], axis=1)

    def _draw_contacts(self, frame: int, back: Array) -> None:
        scene, contacts = self._scene, self._scene.contacts
        points = contacts.points[:, frame].reshape(-1, 3) + back
        if FORCES in scene.extras:
            arrows = scene.arrows[:, frame].reshape(-1, 3)
            pushing = arrows.any(axis=1)
            self._arrows.points = np.stack([points, points + arrows], axis=1)[pushing]
        if CONES in scene.extras:
            mu = contacts.friction[:, frame].reshape(-1, 1)
            scales = 0.12 * scene.size * np.where(mu > 0, np.concatenate([mu, mu, np.ones_like(mu)], axis=1), 0.0)
            self._cones.batched_positions = points
            self._cones.batched_wxyzs = _from_z(contacts.normals[:, frame].reshape(-1, 3))
            self._cones.batched_scales = contacts.active[:, frame].reshape(-1, 1) * scales
        if SUPPORT in scene.extras:
            above = back + np.array([0, 0, 0.003 * scene.size])
            self._polygon.vertices = contacts.support[:, frame].reshape(-1, 3) + above

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
    return (
        a.placements.shape == b.placements.shape
        and (a.dt, a.solids, a.contacts.names, a.extras) == (b.dt, b.solids, b.contacts.names, b.extras)
        and np.array_equal(a.opacity, b.opacity)
        and a.terrain.pieces == b.terrain.pieces
        and np.array_equal(a.terrain_places, b.terrain_places)
    )


def _from_z(directions: Array) -> Array:
    """Quaternions w x y z (..., 4) of the shortest turns from z to unit vectors (..., 3)."""
    x, y, z = np.moveaxis(directions, -1, 0)
    turns = np.stack([1 + z, -y, x, np.zeros_like(z)], axis=-1)
    turns[z < -1 + 1e-9] = 0, 1, 0, 0  # half a turn, about any axis
    return np.asarray(turns / np.linalg.norm(turns, axis=-1, keepdims=True))


def _ball(radius: float) -> Mesh:
    from trimesh import creation

    ball = creation.icosphere(subdivisions=3, radius=radius)
    return Mesh(np.asarray(ball.vertices), np.asarray(ball.faces))


def _disc(radius: float, height: float) -> Mesh:
    from trimesh import creation

    disc = creation.cylinder(radius=radius, height=height, sections=32)
    return Mesh(np.asarray(disc.vertices), np.asarray(disc.faces))


def _cone(sides: int = 40) -> Mesh:
    """The mantle of a cone with its apex at the origin that opens along z: height 1, radius 1."""
    angles = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    rim = np.stack([np.cos(angles), np.sin(angles), np.ones(sides)], axis=1)
    next_one = np.arange(1, sides + 1) % sides
    faces = np.stack([np.zeros(sides, int), 1 + np.arange(sides), 1 + next_one], axis=1)
    return Mesh(np.concatenate([np.zeros((1, 3)), rim]), faces)


def _fans(robots: int, corners: int) -> Any:
    """Triangles of one polygon with so many corners for each robot."""
    fan = np.array([(0, k, k + 1) for k in range(1, corners - 1)])
    return (fan + corners * np.arange(robots)[:, None, None]).reshape(-1, 3)
