"""Where a robot touches the world, as pictures show it: contact points, forces, friction cones, the support polygon.

A contact is a frame of the model, its origin the point of contact; a flat foot is a frame at each corner. Or it is where the
bodies of a simulated motion have met the terrain or each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saltus.arrays import real_numbers
from saltus.dynamics.kinematics import frame_placements
from saltus.model.checks import Array
from saltus.model.joints import JointKind
from saltus.model.model import Model
from saltus.simulation import Motion


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts over time; the leading axes are those of q. Without contacts K is 0."""

    names: tuple[str, ...]  # (K,) of the frames, or of what touches
    points: Array  # (..., K, 3) in the world [m]
    active: NDArray[np.bool_]  # (..., K) whether it touches
    forces: Array  # (..., K, 3) on the robot, in the world [N]; zero where it does not touch
    normals: Array  # (..., K, 3) of unit length, out of the ground
    friction: Array  # (..., K) coefficients; zero: no cone is drawn
    carrying: NDArray[np.bool_]  # (..., K) which are corners of the support polygon

    @cached_property
    def support(self) -> Array:
        """The support polygons (..., K, 3) [m]: the hull, seen from above, of the points that carry, counterclockwise.

        The last corner is repeated to fill up K; where nothing carries all are the first contact's point.
        """
        polygons = self.points.copy()
        for index in np.ndindex(self.carrying.shape[:-1] if self.names else (0,)):
            corners = self.points[index][self.carrying[index]]
            hull = corners[convex_hull(corners[:, :2])] if len(corners) else self.points[index][:1]
            polygons[index][: len(hull)] = hull
            polygons[index][len(hull) :] = hull[-1]
        return polygons


def contacts_of(
    model: Model,
    q: ArrayLike,
    frames: Sequence[str | int],
    *,
    forces: ArrayLike | None = None,
    active: ArrayLike | None = None,
    normals: ArrayLike = (0.0, 0.0, 1.0),
    friction: ArrayLike = 0.0,
) -> Contacts:
    """The contacts of a robot at `q` (..., nq).

    frames: K names or indices of the frames that may touch.
    forces: (..., K, 3) on the robot, in the world [N].
    active: (..., K) which contacts touch; by default those with a force, all if there are no forces.
    normals: (..., K, 3), by default up.
    friction: one coefficient, (K,), or (..., K).

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> contacts = contacts_of(robot, robot.neutral(), [robot.frames[-1].name], forces=[[0.0, 0.0, 9.81]])
    >>> contacts.points.shape, contacts.active
    ((1, 3), array([ True]))
    """
    indices = indices_of(model, frames, "contacts")
    if forces is not None and not indices:
        raise ValueError("there are forces but no contacts: expected the names of the frames they act on")
    lead = np.shape(q)[:-1]
    shape = (*lead, len(indices))
    if indices:
        points = np.ascontiguousarray(frame_placements(model, q)[..., indices, :, :][..., :3, 3], dtype=np.float64)
    else:
        points = np.zeros((*lead, 0, 3))
    pushes = filled(0.0 if forces is None else forces, (*shape, 3), "forces")
    if active is None:
        touching = np.ones(shape, bool) if forces is None else (pushes != 0).any(axis=-1)
    else:
        touching = filled(active, shape, "active").astype(bool)
    directions = filled(normals, (*shape, 3), "normals")
    lengths = np.linalg.norm(directions, axis=-1, keepdims=True)
    if (lengths == 0).any():
        raise ValueError("normals contains one of length 0, expected directions")
    coefficients = filled(friction, shape, "friction")
    if (coefficients < 0).any():
        raise ValueError(f"friction is {np.asarray(friction).tolist()}, expected nothing negative")
    return Contacts(
        tuple(model.frames[index].name for index in indices),
        points,
        touching,
        np.where(touching[..., None], pushes, 0.0),
        directions / lengths,
        coefficients,
        touching,
    )


def contacts_of_motion(motion: Motion, q: Array, every: int) -> Contacts:
    """The contacts of a simulated motion, and its pushes, at each `every`-th of its rows: configurations `q` (..., T, nq).

    A force is the mean over the rows since the one before of these: an impact lasts a step, and would be seen by chance.
    Places for contacts where nothing ever touches are left out.
    """
    sim, lead = motion.simulator, q.shape[:-1]
    found = sim.contacts(q)
    rows = np.nan_to_num(motion.contact_forces[..., 1 : 1 + every * (lead[-1] - 1), :, :])
    forces = np.zeros((*lead, *rows.shape[-2:]))
    forces[..., 1:, :, :] = rows.reshape(*lead[:-1], lead[-1] - 1, every, *rows.shape[-2:]).mean(axis=-3)
    touching = found.mask & forces.any(axis=-1)
    kept = np.flatnonzero(touching.any(axis=tuple(range(touching.ndim - 1))))
    active = touching[..., kept]
    robots = sum(joint.kind is JointKind.FREE_FLYER for joint in sim.model.joints)
    touched = Contacts(
        tuple(" and ".join(filter(None, sim.scene.slots[slot])) for slot in kept),
        np.where(active[..., None], found.point[..., kept, :], 0.0),
        active,
        np.where(active[..., None], forces[..., kept, :], 0.0),
        np.where(active[..., None], found.normal[..., kept, :], (0.0, 0.0, 1.0)),
        np.where(active, found.friction[..., kept], 0.0) * motion.friction[..., None, None],
        active & (sim.slot_bodies[kept, 1] == 0) & (robots <= 1),
    )
    return _joined(touched, _pushes(motion, q, every)) if motion.pushes else touched


def _pushes(motion: Motion, q: Array, every: int) -> Contacts:
    """Forces where nothing touches."""
    model, pushes, shape = motion.simulator.model, motion.pushes, (*q.shape[:-1], len(motion.pushes))
    frames = [model.frame_index(push.frame) for push in pushes]
    t = motion.t[::every, None]
    start, duration = np.array([(push.start, push.duration) for push in pushes]).T
    acting = (t >= start) & (t < start + duration)  # (T, K)
    return Contacts(
        tuple(f"push on {model.frames[frame].name}" for frame in frames),
        frame_placements(model, q)[..., frames, :, :][..., :3, 3],
        np.zeros(shape, bool),
        np.where(acting[..., None], [push.force for push in pushes], np.zeros((*shape, 3))),
        np.broadcast_to([0.0, 0.0, 1.0], (*shape, 3)),
        np.zeros(shape),
        np.zeros(shape, bool),
    )


def _joined(a: Contacts, b: Contacts) -> Contacts:
    def both(name: str, axis: int) -> Any:
        return np.concatenate([getattr(a, name), getattr(b, name)], axis=axis)

    return Contacts(
        a.names + b.names, both("points", -2), both("active", -1), both("forces", -2), both("normals", -2),
        both("friction", -1), both("carrying", -1),
    )  # fmt: skip


def convex_hull(points: Array) -> list[int]:
    """Which points (N, 2) are the corners of their convex hull, counterclockwise (Andrew's monotone chain).

    >>> convex_hull(np.array([[0, 0], [1, 0], [0.5, 0.2], [1, 1], [0, 1]]))
    [0, 1, 3, 4]
    """
    order: list[int] = np.lexsort((points[:, 1], points[:, 0])).tolist()
    if len(order) < 3:
        return order
    hull: list[int] = []
    for path in (order, order[::-1]):  # the lower side, then the upper one
        start = len(hull)
        for index in path:
            while len(hull) > start + 1 and _turn(points[hull[-2]], points[hull[-1]], points[index]) <= 0:
                hull.pop()
            hull.append(index)
        hull.pop()  # it begins the other side
    return hull


def _turn(a: Array, b: Array, c: Array) -> float:
    """Positive if the path from a over b to c turns left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def indices_of(model: Model, frames: Sequence[str | int], what: str) -> list[int]:
    if isinstance(frames, str) or not isinstance(frames, Iterable):
        raise TypeError(f"{what} is {frames!r}, expected a list of the names or indices of frames")
    return [model.frame_index(frame) for frame in frames]


def filled(value: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """`value` as a finite array that NumPy's rules stretch to this shape."""
    array = real_numbers(value, what).astype(np.float64)
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{what} has shape {array.shape}, expected {shape}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{what} contains NaN or an infinity")
    return array
