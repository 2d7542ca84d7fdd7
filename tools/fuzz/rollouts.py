"""A few steps in time, of free and of constrained robots, against a loop in NumPy over the dense oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import saltus as sl
from saltus.arrays import Array
from saltus.model.joints import SPRING_KINDS
from tests import oracles
from tests.dynamics.test_against_oracle import group_maps
from tools.fuzz.constrained import methods_for, random_constraints, random_samples, with_fixed_frames
from tools.fuzz.dense import Problem
from tools.fuzz.robots import Units, random_q, random_robot

TOLERANCE = 1e-6
"""Of the largest change of q and v: a solver's own 1e-8, over some steps, on a motion that may diverge."""

Acceleration = Callable[[Array, Array], Array]
"""Of q and v; or torques of springs and dampers."""


def euler(m: sl.Model, acceleration: Acceleration, q: Array, v: Array, h: float) -> tuple[Array, Array]:
    v = v + h * acceleration(q, v)
    return oracles.integrate(m, q, h * v), v


def runge_kutta(m: sl.Model, acceleration: Acceleration, q: Array, v: Array, h: float) -> tuple[Array, Array]:
    """Fourth order, in the tangent of q: dx/dt is the right Jacobian's inverse times v."""

    def rates(x: Array, v: Array) -> tuple[Array, Array]:
        return np.linalg.solve(group_maps(m, x)[1], v), acceleration(oracles.integrate(m, q, x), v)

    x1, v1 = rates(0.0 * v, v)
    x2, v2 = rates(h / 2 * x1, v + h / 2 * v1)
    x3, v3 = rates(h / 2 * x2, v + h / 2 * v2)
    x4, v4 = rates(h * x3, v + h * v3)
    return oracles.integrate(m, q, h / 6 * (x1 + 2 * x2 + 2 * x3 + x4)), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)


STEPS = {"semi_implicit_euler": euler, "rk4": runge_kutta}


def check(rng: np.random.Generator) -> Iterator[str]:
    _, u = random_robot(rng, 6, mimics=True)
    held = u.model.coupling is None and rng.random() < 0.6
    if held:
        _, u = with_fixed_frames(rng, u)
    damping, single = rng.uniform(0.0, 1.0, u.model.nv) * u.tau / u.v, np.zeros(u.model.nv, bool)
    single[[joint.iv for joint in u.model.joints[1:] if joint.kind in SPRING_KINDS and not joint.mimic]] = True
    stiffness, rest = (
        np.where(single, rng.uniform(0.0, 1.0, u.model.nv) * u.tau / u.v, 0.0),
        single * rng.normal() * u.v,
    )
    u = Units(u.model.replace(damping=damping, stiffness=stiffness, spring_reference=rest), u.mass, u.length)
    steps, dt, damped = int(rng.integers(1, 6)), float(10.0 ** rng.uniform(-4, -2)), bool(rng.random() < 0.5)
    method = str(rng.choice(list(STEPS)))
    q, v, tau = random_q(rng, u), rng.normal(size=u.model.nv) * u.v, rng.normal(size=u.model.nv) * u.tau
    sprung = bool(rng.random() < 0.7)
    options: dict[str, Any] = {"duration": steps * dt, "dt": dt, "method": method, "damping": damped, "springs": sprung}

    def passive(q: Array, v: Array) -> Array:
        torque = -damped * damping * v
        for joint in (joint for joint in u.model.joints[1:] if not joint.mimic and single[joint.iv]):
            torque[joint.iv] -= sprung * stiffness[joint.iv] * (q[joint.iq] - rest[joint.iv])
        return torque

    about = f"{method}, {'constrained' if held else 'free'}"
    if not held:
        right = loop(u, lambda q, v: oracles.forward_dynamics(u.model, q, v, tau + passive(q, v)), q, v, options, steps)
        if right is None or wild(u, right, dt):
            return
        path = sl.rollout(u.model, q, v, tau, **options)
    else:
        answer = constrained(rng, u, q, v, tau, passive, options, steps)
        if answer is None:
            return
        path, right = answer
        if (path.status != sl.Status.CONVERGED).any():
            return
    if path.q.shape != (steps + 1, u.model.nq) or path.v.shape != (steps + 1, u.model.nv):
        yield f"{about}: shapes {path.q.shape} and {path.v.shape}"
        return
    for name, ours, truth, unit in (("q", path.q, right[0], u.q), ("v", path.v, right[1], u.v)):
        size = 1.0 + np.abs(truth / unit).max()
        error = np.abs((ours - truth) / unit).max()
        if not error <= TOLERANCE * size:
            yield f"{about}: {name} off by {error:.1e} of {size:.1e} after {steps} steps of {dt:.1e} s"


def wild(u: Units, path: tuple[Array, Array], dt: float) -> bool:
    """Whether the motion is too fast for its steps: then rounding grows to anything."""
    return not dt * np.abs(path[1] / u.v).max() < 0.3


def loop(
    u: Units, acceleration: Acceleration, q: Array, v: Array, options: dict[str, Any], steps: int,
    strike: Callable[[int, Array, Array], Array] = lambda k, q, v: v,
) -> tuple[Array, Array] | None:  # fmt: skip
    """Positions and velocities at all times; `strike` is what happens at the beginning of step k. None: it diverges."""
    path = [(q, strike(0, q, v))]
    try:
        for k in range(steps):
            q, v = STEPS[options["method"]](u.model, acceleration, *path[-1], options["dt"])
            path.append((q, strike(k + 1, q, v)))
    except (ValueError, np.linalg.LinAlgError):  # NumPy's and SciPy's, of what is not finite
        return None
    return np.array([q for q, _ in path]), np.array([v for _, v in path])


def constrained(
    rng: np.random.Generator,
    u: Units,
    q: Array,
    v: Array,
    tau: Array,
    passive: Acceleration,
    options: dict[str, Any],
    steps: int,
) -> tuple[sl.Trajectory, tuple[Array, Array]] | None:
    """With constraints that switch on and off; None where they contradict each other, or nearly do."""
    constraints = [c for c in random_constraints(rng, u, q) if not c.dofs][:2]
    if not constraints:
        return None
    masks = (rng.random((steps + 1, len(constraints))) < 0.7).astype(float)
    sample = random_samples(rng, u, constraints, q, 1, "f8")[0]
    sample = replace(sample, external=0.0 * sample.external, target=0.0 * sample.target)
    weights = np.concatenate([c.weight[list(c.rows)] for c in constraints])
    now, plain = {"active": masks[0]}, [True]

    def dense(q: Array, v: Array) -> Problem:
        problem = Problem.of(u, constraints, weights, replace(sample, q=q, v=v, tau=tau + passive(q, v), **now))
        regular = problem.singular > 1e-9
        plain[0] &= problem.clear and problem.miss < 1e-9 and bool((problem.singular[regular] > 1e-3).all())
        return problem

    def strike(k: int, q: Array, v: Array) -> Array:
        before, now["active"] = now["active"], masks[k]
        if k == 0 or not (masks[k] > before).any():
            return v
        problem = dense(q, v)
        jump = replace(problem, rest=0.0 * problem.rest, goal=-problem.speed)
        plain[0] &= jump.miss < 1e-9
        return v + jump.solution[0] * u.v

    right = loop(u, lambda q, v: dense(q, v).solution[0] * u.v, q, v, options, steps, strike)
    if right is None or not plain[0] or wild(u, right, options["dt"]):
        return None
    dynamics = sl.ConstrainedDynamics(u.model, constraints, str(rng.choice(methods_for(constraints))))
    return sl.rollout(dynamics, q, v, tau, active=masks, **options), right
