"""The scene: all that a picture of a robot in motion needs. Viewer and replay file draw the same one.

Every trajectory of a batch is a robot of its own, B of them, over T frames that are `dt` apart. Robots stand side by
side on a grid wide enough for their trajectories, or, with layout "overlay", where they are: the first one solid, the
others see-through. Terrain and objects are drawn around each robot of a grid. Scenes of other robots may stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from saltus.arrays import real_numbers
from saltus.collision.terrain import PIECES, Terrain, as_terrain
from saltus.constraints.constraint import Constraint
from saltus.constraints.dynamics import ConstrainedDynamics, Solution
from saltus.dynamics.centroidal import center_of_mass
from saltus.dynamics.kinematics import joint_placements
from saltus.model.checks import Array
from saltus.model.model import Model
from saltus.model.parameters import over_time
from saltus.ocp.problem import OCPResult
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.simulation import Motion, Trajectory
from saltus.view.contacts import Contacts, contacts_of, contacts_of_motion, indices_of
from saltus.view.held import constraints_in, held_contacts
from saltus.view.objects import Object, Objects, objects_of
from saltus.view.plans import contacts_at, plan_of
from saltus.view.solids import Solid, half_extents, solids_of
from saltus.view.terrain import Surface, above_floor, floor_of, surfaces_of

OVERLAID_OPACITY = 0.25
FIELD_OF_VIEW = np.radians(38.0)  # of the camera, from the picture's top to its bottom
FILLED_PICTURE = 0.78  # the part of the picture's height that the robots may fill: there are controls, too
NARROWEST_PICTURE = 1.1  # width by height
EXTRAS = CENTER_OF_MASS, FORCES, CONES, SUPPORT, AXES, OBJECTS = (
    "centre of mass",
    "contact forces",
    "friction cones",
    "support polygon",
    "frame axes",
    "objects",
)
VIEWS = {
    "start": (0.74, -0.58, 0.34),
    "front": (1.0, 0.0, 0.0),
    "side": (0.0, -1.0, 0.0),
    "top": (-1e-4, 0.0, 1.0),  # not quite, for x to point upwards in the picture
}
"""Where the camera may stand, as directions from what it looks at."""
FEW_CONTACTS = 8
USUAL_FORCES = 0.98  # the part of a simulation's forces whose arrows are not cut off
TERRAIN_EXTENT = 8.0  # side of the square that is drawn of an inclined ground, in sizes of a robot
LAYOUTS = ("grid", "overlay")
COUNTED = TIME, ROBOTS = ("time", "robots")  # what an axis of q counts


@dataclass(frozen=True, eq=False)
class Scene:
    """Robots over time, with what is drawn around them. World frame, z up, metres."""

    title: str
    solids: tuple[Solid, ...]
    placements: Array  # (B, T, njoints, 4, 4) of the joints
    dt: float  # between frames [s]
    center: Array  # (B, T, 3) centre of mass; of a robot without mass, the middle of its joints
    contacts: Contacts  # leading axes (B, T)
    metres_per_newton: float  # of the arrows of forces
    longest_arrow: float  # where that of a larger force is cut off [m]
    terrain: Terrain
    terrain_places: Array  # (N, 3) where its origin is drawn, and that of the objects
    axes: Array  # (B, T, A, 4, 4) the frames whose axes are drawn
    objects: Objects
    opacity: Array  # (B,) of the robots
    low: Array  # (3,) of a box around what the camera should see at first
    high: Array  # (3,)
    size: float  # of one robot: the diagonal of a box around it
    floor: float  # height of the floor
    follow: bool  # whether the robots go so far that the camera had better follow them
    beside: tuple[Scene, ...] = ()  # other robots in the same picture; `low` to `follow` are those of all

    @property
    def robots(self) -> int:
        return int(self.placements.shape[0])

    @property
    def frames(self) -> int:
        return int(self.placements.shape[1])

    @property
    def parts(self) -> tuple[Scene, ...]:
        """This one, and those beside it."""
        return (self, *self.beside)

    @cached_property
    def surfaces(self) -> tuple[Surface, ...]:
        """Of the terrain, besides the floor."""
        return surfaces_of(self.terrain, TERRAIN_EXTENT * self.size)

    @cached_property
    def extras(self) -> tuple[str, ...]:
        """Which of the EXTRAS there are to be drawn of this part."""
        contacts = self.contacts
        there = (
            True,
            contacts.forces.any(),
            contacts.friction.any(),
            len(contacts.names) > 2 and contacts.carrying.any(),
            self.axes.shape[2] > 0,
            bool(self.objects.given),
        )
        return tuple(extra for extra, is_there in zip(EXTRAS, there, strict=True) if is_there)

    @property
    def shown(self) -> tuple[str, ...]:
        """Which of the EXTRAS are drawn at first: more would hide a robot that touches in many places."""
        count = len(self.contacts.names)
        return EXTRAS if 0 < count <= FEW_CONTACTS else (FORCES, AXES, OBJECTS) if count else EXTRAS[1:]

    @cached_property
    def path(self) -> Array:
        """(T, 3) how far the robots, in the mean, have gone from where they began."""
        mean = np.concatenate([part.center for part in self.parts]).mean(axis=0)
        return np.asarray(mean - mean[0])

    @cached_property
    def arrows(self) -> Array:
        """(B, T, K, 3) of the forces [m]."""
        arrows = self.contacts.forces * self.metres_per_newton
        lengths = np.linalg.norm(arrows, axis=-1, keepdims=True)
        return np.asarray(arrows * np.minimum(1.0, self.longest_arrow / np.maximum(lengths, 1e-300)))

    def eye(self, view: str = "start") -> Array:
        """(3,) where the camera of one of the VIEWS is, as near as the box still fits its picture."""
        away = np.array(VIEWS[view]) / np.linalg.norm(VIEWS[view])
        right = np.cross([0.0, 0.0, 1.0], away)
        right /= np.linalg.norm(right)
        half = np.maximum((self.high - self.low) / 2, 0.02 * self.size)
        corners = half * np.stack(np.meshgrid([-1, 1], [-1, 1], [-1, 1]), axis=-1).reshape(-1, 3)
        across = np.maximum(abs(corners @ np.cross(away, right)), abs(corners @ right) / NARROWEST_PICTURE)
        distance = (across / (FILLED_PICTURE * np.tan(FIELD_OF_VIEW / 2)) + corners @ away).max()
        return np.asarray((self.low + self.high) / 2 + distance * away)


def describe(
    model: Model | Motion | ShootingProblem,
    q: ArrayLike | Trajectory | OCPResult | None = None,
    dt: float = 0.02,
    *,
    axis: str = TIME,
    terrain: Terrain | PIECES | Iterable[PIECES] | None = None,
    contacts: Sequence[str | int] | ConstrainedDynamics | Sequence[Constraint | Sequence[Constraint]] = (),
    forces: ArrayLike | Solution | None = None,
    force_scale: float | None = None,
    active: ArrayLike | None = None,
    normals: ArrayLike = (0.0, 0.0, 1.0),
    friction: ArrayLike = 0.0,
    axes: Sequence[str | int] = (),
    objects: Sequence[Object] = (),
    layout: str = "grid",
    title: str | None = None,
    solids: tuple[Solid, ...] | None = None,
) -> Scene:
    """The scene of a pose `q` (nq,), a trajectory (T, nq) or a batch of trajectories (B, T, nq); of a `Trajectory`; of a
    `Motion`; or of a `ShootingProblem` and its `OCPResult`, with contacts and forces.

    dt: time between frames [s]; of trajectories and motions of a rollout, as near to it as their rows allow.
    axis: what the first axis of a `q` (N, nq) counts, "time" or "robots".
    terrain: what robots stand on, a `Terrain` or pieces of one; by default that of the motion.
    contacts: K names or indices of frames that may touch the ground; a flat foot is a frame at each corner. Or what holds
        the robot: a `ConstrainedDynamics`, or constraints, also in lists, as `SurfaceContact` makes them.
    forces: (..., K, 3) on the robot, in the world [N], with the leading axes of q. Of constraints: a `Solution`, or its
        forces (..., nm); those of a `Trajectory` are known.
    force_scale: how long arrows of forces are [m/N]; by default the longest is half as long as the robot.
    active: (..., K) which contacts touch; by default those with a force, all if there are no forces.
    normals: (..., K, 3) of the ground, by default up; of constraints, z of where they are anchored.
    friction: one coefficient, (K,) or (..., K); friction cones are drawn where it is given.
    axes: names or indices of frames whose axes are drawn: x red, y green, z blue.
    objects: `Marker`, `Path`, `Arrow`, `Label`: what else is drawn.
    layout: "grid" sets the robots of a batch side by side, "overlay" leaves them where they are, see-through.
    title: by default the model's name.
    solids: what to draw instead of the model's shapes.

    Contacts, forces and pushes of a motion are those of the simulation: it takes no others.

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> scene = describe(robot, sl.random_configuration(robot, seed=1, shape=(4, 10)))
    >>> scene.placements.shape, scene.robots, scene.frames
    ((4, 10, 4, 4, 4), 4, 10)
    """
    motion = model if isinstance(model, Motion) else None
    trajectory = q if isinstance(q, Trajectory) else None
    step = real_numbers(dt, "dt")
    if step.ndim or not (np.isfinite(step) and step > 0):
        raise ValueError(f"dt is {dt}, expected a positive time in seconds")
    every = 1
    plan = None
    if isinstance(model, ShootingProblem):
        if contacts or forces is not None or active is not None:
            raise ValueError("a result has its contacts and forces: expected none besides")
        plan = plan_of(model, cast(OCPResult, q))
        count = int(plan.t[-1] / float(step) + 1e-9) + 1
        rows = np.abs(plan.t[:, None] - step * np.arange(count)).argmin(0)  # the nodes next to frames
        model, q = model.model, plan.q[..., rows, :]
    if motion is not None:
        if q is not None or contacts or forces is not None or active is not None:
            raise ValueError("a motion has its configurations, contacts and forces: expected none besides")
        every = max(1, round(float(step) / motion.period))
        step = np.asarray(every * motion.period)
        model, q = motion.simulator.model, finite_until_lost(motion.q[..., ::every, :])
        terrain = motion.simulator.scene.terrain if terrain is None else terrain
    if not isinstance(model, Model):
        raise TypeError(f"the model is a {type(model).__name__}, expected a saltus.Model")
    if trajectory is not None:
        if forces is not None or active is not None:
            raise ValueError("a trajectory has its forces, and knows which contacts hold: expected none besides")
        period = float(trajectory.t[1] - trajectory.t[0]) if len(trajectory.t) > 1 else float(step)
        every = max(1, round(float(step) / period))
        step, q = np.asarray(every * period), finite_until_lost(trajectory.q[..., ::every, :])
        if constraints_in(contacts):
            forces, active = np.nan_to_num(trajectory.forces[..., ::every, :]), trajectory.active[..., ::every, :]
    if axis not in COUNTED:
        raise ValueError(f"axis is {axis!r}, expected one of {', '.join(map(repr, COUNTED))}")
    q = real_numbers(q, "q").astype(np.float64)
    if q.ndim not in (1, 2, 3) or q.shape[-1] != model.nq or 0 in q.shape[:-1]:
        raise ValueError(f"q has shape {q.shape}, expected ({model.nq},), (T, {model.nq}) or (B, T, {model.nq})")
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}, expected one of {', '.join(map(repr, LAYOUTS))}")
    if axis == ROBOTS and q.ndim == 2:
        q, forces, active = q[:, None], _still(forces, len(q)), _still(active, len(q))
    q = q.reshape((1,) * (3 - q.ndim) + q.shape)
    if plan is not None:
        touching = contacts_at(plan, rows)
    elif motion is None:
        touching = _touching(model, q, contacts, forces, active, normals, friction)
    else:
        touching = contacts_of_motion(motion, q, every)
    placements = joint_placements(model, q)
    marked = [model.frames[index] for index in indices_of(model, axes, "axes")]
    on = np.reshape([frame.placement for frame in marked], (-1, 4, 4))
    triads = placements[..., [frame.joint for frame in marked], :, :] @ on
    own = objects_of(objects, q.shape[1])
    center = (
        np.asarray(center_of_mass(over_time(model), q)) if model.total_mass > 0 else placements[..., :3, 3].mean(axis=2)
    )
    solids = solids_of(model) if solids is None else solids

    low, high = _boxes(solids, placements)
    extent = (high - low).max(axis=(0, 1))
    size = max(float(np.linalg.norm(extent)), 1e-2)
    stage = as_terrain(terrain)
    floor = floor_of(stage)
    corners = np.concatenate([above_floor(stage).triangles(TERRAIN_EXTENT * size)[0], own.ends])
    offsets = np.zeros((1, 3))
    if layout == "grid":
        ends = np.concatenate([low.reshape(-1, 3), high.reshape(-1, 3), corners])
        offsets = _grid(len(q), np.ptp(ends, axis=0)[:2] + 0.2 * size)
        for moved in (placements[..., :3, 3], touching.points, center, low, high, triads[..., :3, 3]):
            moved += offsets.reshape(-1, *(1,) * (moved.ndim - 2), 3)
    path = center.mean(axis=0) - center[:, 0].mean(axis=0)
    follow = bool(np.linalg.norm(path, axis=-1).max() > 1.5 * size)
    passed = path if follow else 0.0  # under a camera that follows
    lowest = min(float(low[..., 2].min()), corners[:, 2].min(initial=np.inf))
    scale, longest = _arrow_scale(touching.forces, motion, size, force_scale)
    if floor is None:
        floor = 0.0 if lowest > -0.03 * size else lowest  # feet may sink in a little; a robot hanging lower may not
    return Scene(
        title=model.name if title is None else str(title),
        solids=solids,
        placements=placements,
        dt=float(step),
        center=center,
        contacts=touching,
        metres_per_newton=scale,
        longest_arrow=longest,
        terrain=stage,
        terrain_places=offsets,
        axes=triads,
        objects=own,
        opacity=np.where((np.arange(len(q)) > 0) & (layout == "overlay"), OVERLAID_OPACITY, 1.0),
        low=np.minimum((low - passed).min(axis=(0, 1)), (own.ends + offsets[:1]).min(axis=0, initial=np.inf)),
        high=np.maximum((high - passed).max(axis=(0, 1)), (own.ends + offsets[:1]).max(axis=0, initial=-np.inf)),
        size=size,
        floor=floor,
        follow=follow,
    )


def finite_until_lost(q: Array) -> Array:
    """(..., T, nq): robots that are lost stay where they were last."""
    known = np.isfinite(q).all(axis=-1)
    last = np.maximum.accumulate(np.where(known, np.arange(q.shape[-2]), 0), axis=-1)
    return np.take_along_axis(q, last[..., None], axis=-2)


def _touching(
    model: Model, q: Array, contacts: Any, forces: Any, active: Any, normals: ArrayLike, friction: ArrayLike
) -> Contacts:
    held = constraints_in(contacts)
    if held:
        return held_contacts(model, q, held, forces=forces, active=active, friction=friction)
    if isinstance(contacts, ConstrainedDynamics):
        contacts = ()
    if isinstance(forces, Solution):
        raise ValueError("the forces of a solution are along its constraints: expected these as contacts")
    return contacts_of(model, q, contacts, forces=forces, active=active, normals=normals, friction=friction)


def _still(values: Any, robots: int) -> Any:
    """With an axis for the only frame, behind that of the robots."""
    values = values.forces if isinstance(values, Solution) else values
    if values is None or np.ndim(values) < 2 or len(values) != robots:
        return values
    return np.asarray(values)[:, None]


def _arrow_scale(forces: Array, motion: Motion | None, size: float, given: float | None) -> tuple[float, float]:
    """How long arrows are [m/N], and where they are cut off [m].

    By default that of the largest force is half as long as the robot; of a simulation nearly, as an impact would make arrows
    of all that lasts too short to be seen.
    """
    if given is not None:
        scale = real_numbers(given, "force_scale")
        if scale.ndim or not (np.isfinite(scale) and scale > 0):
            raise ValueError(f"force_scale is {given}, expected a positive number of metres for a newton")
        return float(scale), np.inf
    sizes = np.linalg.norm(forces, axis=-1)
    acting = sizes[sizes > 0]
    if not acting.size:
        return 0.0, np.inf
    full = float(acting.max() if motion is None else np.quantile(acting, USUAL_FORCES))
    return 0.5 * size / full, 0.5 * size


def poses(placements: Array) -> Array:
    """Position and unit quaternion x y z w (..., 7) of placements (..., 4, 4).

    >>> poses(np.eye(4))
    array([0., 0., 0., 0., 0., 0., 1.])
    """
    from scipy.spatial.transform import Rotation  # type: ignore[import-untyped]

    turns = Rotation.from_matrix(placements[..., :3, :3].reshape(-1, 3, 3)).as_quat()
    return np.concatenate([placements[..., :3, 3], turns.reshape(*placements.shape[:-2], 4)], axis=-1)


def _boxes(solids: tuple[Solid, ...], placements: Array) -> tuple[Array, Array]:
    """Low and high corners (B, T, 3) of boxes around the robots; the joints, where nothing else is drawn."""
    low, high = (
        placements[..., 1:, :3, 3].min(axis=2, initial=np.inf),
        placements[..., 1:, :3, 3].max(axis=2, initial=-np.inf),
    )
    for solid in solids:
        X = placements[..., solid.shape.joint, :, :] @ solid.shape.placement
        middle, half = half_extents(solid, X[..., :3, :3])
        at = X[..., :3, :3] @ middle + X[..., :3, 3]
        low, high = np.minimum(low, at - half), np.maximum(high, at + half)
    nothing = ~np.isfinite(low)
    return np.where(nothing, 0.0, low), np.where(nothing, 0.0, high)


def _grid(count: int, cell: Array) -> Array:
    """Offsets (count, 3) to the cells of a grid about the origin, from cells of this size (2,)."""
    columns = int(np.ceil(np.sqrt(count)))
    row, column = np.divmod(np.arange(count), columns)
    rows = int(row[-1]) + 1
    x, y = (row - (rows - 1) / 2) * cell[0], (column - (columns - 1) / 2) * cell[1]
    return np.stack([x, y, np.zeros(count)], axis=1)
