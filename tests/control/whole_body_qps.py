"""Whole-body QPs: inverse dynamics of real robots that stand on points with friction, as `fccqp` is given them.

    minimise 1/2 x'Qx + c'x    subject to    A x = b,    |(f_x, f_y)| <= friction f_z,    lower <= x <= upper

with x = (accelerations a, torques u of the motors, forces f of the contacts, slacks s of the contacts), dynamics and soft
contacts (FCCQP, equations 10b and 10d) for equalities

    M a - S u - J'f = -h,        J a + s = -dJ/dt v

and what the tasks miss, weighted, for the cost. All matrices are of saltus' own dynamics; states, commands, limits and what
is redundant come from a seed.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

import saltus as sl
from saltus.arrays import Array


class Problem(NamedTuple):
    """One QP, or many of the same cones with a leading axis on everything else."""

    Q: Array  # (..., n, n)
    c: Array  # (..., n)
    A: Array  # (..., m, n)
    b: Array  # (..., m)
    cones: Array  # (nc, 3), where f_x, f_y and f_z of each contact are in x
    friction: Array  # (..., nc)
    lower: Array  # (..., n)
    upper: Array  # (..., n)

    def __getitem__(self, k):  # type: ignore[no-untyped-def, override]
        """Problem k of many, or a slice of them."""
        return Problem(**{name: value if name == "cones" else value[k] for name, value in self._asdict().items()})


class Weights(NamedTuple):
    """Of squares, halved. Those of a walk of Cassie (FCCQP, section 4), with a posture for the swing foot."""

    center: float = 10.0
    base: float = 4.0  # its angular acceleration
    posture: float = 0.1
    slack: float = 80.0
    acceleration: float = 1e-8
    torque: float = 1e-6
    force: float = 1e-8


# --------------------------------------------------------------------------------------------------------------- robots


def sole(length: float, width: float, middle: float = 0.0, height: float = 0.0) -> Array:
    """The corners of a sole in the frame of its foot (4, 3) [m]."""
    return np.array([[middle + x * length / 2, y * width / 2, height] for x in (1, -1) for y in (1, -1)])


POINT = np.zeros((1, 3))

CORNERS = {
    "bolt": POINT,  # 1.3 kg on two legs
    "solo12": POINT,  # 2.5 kg on four
    "anymal": POINT,  # 30 kg on four
    "g1": sole(0.17, 0.06, 0.035, -0.035),  # 33 kg on two
    "talos": sole(0.2, 0.12),  # 90 kg on two
}
"""Where each foot of a robot touches the ground, in the foot's frame [m]."""


@cache
def robot_of(name: str) -> sl.Model:
    return sl.load_robot(name)


def contact_points(name: str) -> list[tuple[str, Array]]:
    """Frame and place in it of all that can touch the ground, a point of each foot first."""
    return [(foot, place) for place in CORNERS[name] for foot in sl.robot_frames(name).feet]


def point_rows(model: sl.Model, q: Array, v: Array, frame: str, place: Array) -> tuple[Array, Array]:
    """J (..., 3, nv) and dJ/dt v (..., 3) of a point of a frame, along the world's axes."""
    R = sl.frame_placement(model, q, frame)[..., :3, :3]
    J = sl.frame_jacobian(model, q, frame, "local_world_aligned")
    velocity = np.einsum("...ij,...j->...i", J, v)
    drift = sl.frame_acceleration(model, q, v, np.zeros_like(v), frame, "local_world_aligned")
    arm, turn = R @ place, velocity[..., 3:]
    turned = np.cross(np.swapaxes(J[..., 3:, :], -1, -2), arm[..., None, :])
    about = drift[..., :3] + np.cross(turn, velocity[..., :3])  # the classical acceleration of the frame's origin
    drift = about + np.cross(drift[..., 3:], arm) + np.cross(turn, np.cross(turn, arm))
    return J[..., :3, :] + np.swapaxes(turned, -1, -2), drift


def random_states(
    model: sl.Model, rng: np.random.Generator, count: int, spread: float, speed: float
) -> tuple[Array, Array]:
    """Configurations about standing, by so many radians, and velocities [m/s, rad/s]."""
    standing = model.reference_configurations["standing"]
    q = sl.integrate(model, np.tile(standing, (count, 1)), spread * rng.normal(size=(count, model.nv)))
    return q, speed * rng.normal(size=(count, model.nv))


# ------------------------------------------------------------------------------------------------------------- problems


def inverse_dynamics(
    name: str,
    states: tuple[Array, Array],
    points: list[tuple[str, Array]],
    commands: dict[str, Array],
    weights: Weights = Weights(),  # noqa: B008
    normals: Array | None = None,
) -> Problem:
    """The QPs of states (B, ...): commands are accelerations `center` (B, 3), `base` (B, 3) and `posture` (B, nu); normals
    (nc, 3) of the ground at each point, upwards if none are given."""
    model, (q, v) = robot_of(name), states
    motors = sl.motors_of(model)
    batch, nv, nu, nf = len(q), model.nv, len(motors), 3 * len(points)
    a, u, f, s = np.split(np.arange(nv + nu + 2 * nf), np.cumsum([nv, nu, nf]))
    n, m = nv + nu + 2 * nf, nv + nf

    rows = [point_rows(model, q, v, frame, place) for frame, place in points]
    if normals is not None:  # to axes of which the third is the normal
        turns = [Rotation.align_vectors([[0.0, 0.0, 1.0]], [normal])[0].as_matrix() for normal in normals]
        rows = [(turn @ J, drift @ turn.T) for turn, (J, drift) in zip(turns, rows, strict=True)]
    J, drift = np.concatenate([J for J, _ in rows], 1), np.concatenate([drift for _, drift in rows], 1)

    A, b = np.zeros((batch, m, n)), np.zeros((batch, m))
    A[:, :nv, a], A[:, motors, u] = sl.crba(model, q), -1.0
    A[:, :nv, f] = -np.swapaxes(J, 1, 2)
    A[:, nv:, a], A[:, np.arange(nv, m), s] = J, 1.0
    b[:, :nv], b[:, nv:] = -sl.nonlinear_effects(model, q, v), -drift

    center, turning = np.asarray(sl.center_of_mass_jacobian(model, q)), np.zeros((3, nv))
    turning[:, 3:6] = np.eye(3)  # of a free flyer, about the body's own axes
    tasks = (
        (
            weights.center,
            center,
            commands["center"] - sl.centroidal_momentum_drift(model, q, v)[:, :3] / model.total_mass,
        ),
        (weights.base, turning, commands["base"]),
        (weights.posture, np.eye(nv)[motors], commands["posture"]),
    )
    Q, c = np.zeros((batch, n, n)), np.zeros((batch, n))
    for weight, task, goal in tasks:
        Q[:, :nv, :nv] += weight * np.swapaxes(task, -1, -2) @ task
        c[:, :nv] -= weight * np.einsum("...ij,...i->...j", task, goal)
    for which, weight in ((a, weights.acceleration), (u, weights.torque), (f, weights.force), (s, weights.slack)):
        Q[:, which, which] += weight

    upper = np.full((batch, n), np.inf)
    upper[:, u] = model.effort_limit[motors]
    return Problem(Q, c, A, b, f.reshape(-1, 3), np.full((batch, len(points)), 0.6), -upper, upper)


def random_commands(name: str, rng: np.random.Generator, count: int, push: float) -> dict[str, Array]:
    """Accelerations that tasks ask for; `push`: those of the centre of mass along the ground [m/s^2]."""
    return {
        "center": rng.normal(size=(count, 3)) * [push, push, 2.0],
        "base": 5.0 * rng.normal(size=(count, 3)),
        "posture": 20.0 * rng.normal(size=(count, len(sl.motors_of(robot_of(name))))),
    }


FAMILIES = {"anymal": 5.0, "talos": 2.0}
"""The robots that stand on all their points, and how hard their centre of mass is pushed about [m/s^2]."""


def family(name: str, count: int, seed: int = 0, later: float = 0.0, weights: Weights = Weights()) -> Problem:  # noqa: B008
    """ANYmal: 54 variables, 30 equalities, 4 contacts. Talos: 118, 62, 8. `later`: each of them so much time [s] later, at
    the velocities that it has, with commands of another hundredth."""
    rng = np.random.default_rng(seed)
    q, v = random_states(robot_of(name), rng, count, 0.1, 0.3)
    commands = random_commands(name, rng, count, FAMILIES[name])
    if later:
        q = sl.integrate(robot_of(name), q, later * v)
        commands = {key: goal + 0.01 * goal.std() * rng.normal(size=goal.shape) for key, goal in commands.items()}
    return inverse_dynamics(name, (q, v), contact_points(name), commands, weights)


def random_problem(seed: int) -> Problem:
    """One of all sorts, feasible: any of the robots on 1 to 8 points, some of them the same, on level or tilted ground;
    contacts soft or hard, rough or without friction, loaded between limits or switched off; limits of torques and
    accelerations loose, tight, or none; equalities twice."""
    rng = np.random.default_rng([16, seed])
    name = list(CORNERS)[seed % len(CORNERS)]
    points = contact_points(name)
    chosen = rng.permutation(len(points))[: 1 + seed // len(CORNERS) % 8]
    chosen = np.r_[chosen, rng.integers(len(points), size=1 + seed // len(CORNERS) % 8 - len(chosen))]
    normals = [0.0, 0.0, 1.0] + rng.choice([0.0, 0.3]) * rng.normal(size=(len(chosen), 3))
    weights = Weights(
        posture=10.0 ** rng.uniform(-3, 0),
        slack=10.0 ** rng.uniform(0, 3),
        acceleration=10.0 ** rng.uniform(-8, -4),
        torque=rng.choice([0.0, 1e-6, 1e-3]),
        force=10.0 ** rng.uniform(-8, -4),
    )
    states = random_states(robot_of(name), rng, 1, rng.choice([0.02, 0.1, 0.3]), rng.choice([0.0, 0.3, 2.0]))
    commands = random_commands(name, rng, 1, rng.choice([0.5, 3.0, 10.0]))
    problem = inverse_dynamics(name, states, [points[k] for k in chosen], commands, weights, normals)[0]
    if rng.random() < 0.3:
        problem = hard(problem)
    problem = limited(problem, rng)
    return redundant(problem, rng) if rng.random() < 0.3 else problem


def hard(problem: Problem) -> Problem:
    """Without slacks: contact points do not accelerate. Those of one body that is over-determined, as far as it can be."""
    n = problem.cones[-1, 2] + 1
    A, rows = problem.A[:, :n], problem.A.shape[0] - problem.cones.size
    b = problem.b.copy()
    b[rows:] = A[rows:] @ np.linalg.pinv(A[rows:], rtol=1e-9) @ b[rows:]
    cut = (problem.Q[:n, :n], problem.c[:n], A, b, problem.cones, problem.friction)
    return Problem(*cut, problem.lower[:n], problem.upper[:n])


def limited(problem: Problem, rng: np.random.Generator) -> Problem:
    """With friction and limits about some point, which is then known to be feasible."""
    Q, c, A, b, cones, _, lower, upper = problem
    count, weight = len(cones), 9.81 * A[0, 0]
    motors = np.flatnonzero(np.isfinite(upper))
    joints = np.arange(6, motors[0])
    friction, low, high = rng.uniform(0.2, 1.0, count), np.full(count, -np.inf), np.full(count, np.inf)
    if rng.random() < 0.5:
        low = rng.choice([-np.inf, 0.0, 0.02 * weight], count)
        high = rng.choice([np.inf, 0.2 * weight, weight], count)
    if rng.random() < 0.2:
        friction *= rng.random(count) < 0.7
    if rng.random() < 0.2:
        high[rng.random(count) < 0.3] = 0.0  # switched off
    low = np.minimum(low, high)

    point, floor, angle = np.zeros(len(c)), np.maximum(low, 0.0), rng.uniform(0.0, 2.0 * np.pi, count)
    normal = floor + rng.uniform(0.1, 0.9, count) * np.minimum(high - floor, weight / count)
    across = 0.5 * friction * normal
    point[cones] = np.stack([across * np.cos(angle), across * np.sin(angle), normal], -1)
    others = np.setdiff1d(np.arange(len(c)), cones)
    point[others] = np.linalg.lstsq(A[:, others], b - A @ point)[0]

    effort = np.maximum(rng.choice([1.0, 0.3, 0.1]) * upper[motors], 1.05 * np.abs(point[motors]))
    lower, upper = lower.copy(), upper.copy()
    lower[cones[:, 2]], upper[cones[:, 2]] = low, high
    lower[motors], upper[motors] = -effort, effort
    if rng.random() < 0.2:
        upper[motors] = np.inf
    if rng.random() < 0.3:
        some = joints[rng.random(len(joints)) < 0.5]
        reach = 10.0 ** rng.uniform(-1, 2, (2, len(some)))
        lower[some], upper[some] = point[some] - reach[0], point[some] + reach[1]
    if rng.random() < 0.2:
        fixed = motors[rng.random(len(motors)) < 0.2]
        lower[fixed] = upper[fixed] = point[fixed]
    return Problem(Q, c, A, b, cones, friction, lower, upper)


def redundant(problem: Problem, rng: np.random.Generator) -> Problem:
    """With the same equalities again: some of their rows, and sums of rows."""
    rows = len(problem.b)
    again = np.vstack([np.eye(rows)[rng.integers(rows, size=4)], rng.normal(size=(2, rows))])
    return problem._replace(A=np.vstack([problem.A, again @ problem.A]), b=np.r_[problem.b, again @ problem.b])
