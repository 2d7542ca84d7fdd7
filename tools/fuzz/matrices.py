"""What else is computed with constraints: Delassus and operational-space matrices, factors, impacts, inverse dynamics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import saltus as sl
from saltus.arrays import Array
from saltus.constraints.operational_space import OSIM_METHODS
from tests import oracles
from tools.fuzz.constrained import CONTRADICTORY, RIGHT, judge, lazily, random_problem, random_samples
from tools.fuzz.dense import LEAST, Problem, Sample, row_units
from tools.fuzz.robots import Units

FACTOR = 300.0
"""How many times machine epsilon times condition numbers a matrix may be off, relative to its largest entry."""
WORST = 1e-2


@dataclass
class Case:
    """One sample of a robot under constraints, and the dense matrices of it in the robot's units."""

    u: Units
    constraints: list[sl.Constraint]
    sample: Sample
    problem: Problem
    dynamics: sl.ConstrainedDynamics
    dtype: str
    chosen: bool  # mu is not the default

    @property
    def energy(self) -> float:
        return self.u.mass * self.u.length**2

    @property
    def unit(self) -> Array:
        return row_units(self.u, self.constraints)

    @cached_property
    def kinematics(self) -> tuple[Array, ...]:
        return oracles._jacobians(self.u.model, self.sample.q, self.sample.v)

    @property
    def reach(self) -> float:
        """How far bodies are from the world's origin: digits that frames which cancel have lost there."""
        return 1.0 + float(np.abs(self.kinematics[0][:, :3, 3]).max() / self.u.length)

    @property
    def users(self) -> bool:
        return any(c.dofs for c in self.constraints)

    def cast(self, *names: str) -> dict[str, Array]:
        return {name: getattr(self.sample, name).astype(self.dtype) for name in names}

    def compare(self, what: str, ours: Any, right: Array, condition: float, size: float | None = None) -> Iterator[str]:
        """Norm by norm, both in the robot's units."""
        ours = np.asarray(ours)
        if ours.shape != right.shape:
            yield f"{what}: shape {ours.shape}, expected {right.shape}"
            return
        size = float(np.abs(right).max(initial=0.0)) if size is None else size
        most = FACTOR * float(np.finfo(self.dtype).eps) * condition
        if not np.isfinite(ours).all():
            if most < WORST or not self.chosen:  # a mu too small for the number type is the user's
                yield f"{what}: NaN or infinity"
            return
        error = float(np.abs(ours - right).max(initial=0.0))
        if most < WORST and error > most * size:
            yield f"{what}: off by {error / (size or 1.0):.1e}, at most {most:.1e} allowed"


def check(rng: np.random.Generator) -> Iterator[str]:
    u, constraints, q = random_problem(rng)
    dtype = "f4" if rng.random() < 0.35 else "f8"
    q = q.astype(dtype).astype("f8")
    sample = random_samples(rng, u, constraints, q, 1, dtype)[0]
    sample = replace(sample, target=0.0 * sample.target, external=0.0 * sample.external)
    weights = np.concatenate([c.weight[list(c.rows)] for c in constraints])
    mu = {} if rng.random() < 0.5 else {"mu": float(10.0 ** rng.uniform(-8, 0))}
    dynamics = sl.ConstrainedDynamics(u.model, constraints, "prox_ltl", **mu)
    case = Case(u, constraints, sample, Problem.of(u, constraints, weights, sample), dynamics, dtype, bool(mu))
    for part in (delassus_and_osim, factors, constraint_accelerations, impact, inverse_dynamics):
        yield from (f"{dtype}, {wrong}" for wrong in part(case, rng))


def damping(case: Case) -> Array:
    """mu of each row, in the robot's units: that of double precision, in which matrices are computed."""
    return np.asarray(case.dynamics.problem.mu * case.energy / case.unit**2)


def delassus_and_osim(case: Case, rng: np.random.Generator) -> Iterator[str]:
    if case.users:
        return
    p, dynamics, given = case.problem, case.dynamics, case.cast("q", "active")
    condition, mu = float(np.linalg.cond(p.M)), damping(case)
    G = p.J @ np.linalg.solve(p.M, p.J.T)
    damped = G + np.diag(mu)
    if not np.linalg.cond(damped) < 1e14:
        return
    osim, worse = np.linalg.inv(damped), condition * float(np.linalg.cond(damped))
    # caba is W - W J (M + J^T W J)^-1 J^T W with W = 1 / mu, and what limbs do less what their base adds loses as much,
    # twice where a limb has fewer degrees of freedom than rows: the default mu loses eight digits each time, a smaller more.
    loss = max(1.0, float(1.0 / mu.min() / np.abs(osim).max()))
    loss = loss if case.chosen else min(loss, 1e8)
    to_G, to_osim = case.energy / np.outer(case.unit, case.unit), np.outer(case.unit, case.unit) / case.energy
    loops = any(c.joint_b > 0 for c in case.constraints)
    size = max(float(np.abs(G).max(initial=0.0)), LEAST**2 / float(np.linalg.norm(p.M, 2)))
    if np.abs(G).max(initial=0.0) < size:
        worse = np.inf  # nothing moves, but for rounding
    # A row that hardly moves is the small rest of directions of length one, as far as these were rounded.
    rounded = 10.0 / FACTOR * case.reach * float(np.abs(np.linalg.solve(p.M, p.J.T)).max(initial=0.0)) / size
    size, worse = size * max(1.0, rounded), worse * max(1.0, rounded)
    for name in ["ltl"] if loops else OSIM_METHODS:
        if OSIM_METHODS[name].delassus is not None:
            found = dynamics.delassus(method=name, **given) * to_G
            yield from case.compare(f"delassus {name}", found, G, condition, size)
        times = worse * loss**2 if name in ("caba", "caba_f", "pv_f") else worse
        yield from case.compare(f"osim {name}", dynamics.osim(method=name, **given) * to_osim, osim, times)
    if loops:
        return
    x = rng.normal(size=len(case.unit))
    size = size * float(np.abs(x).sum())
    times = dynamics.delassus_times(given["q"], (x * case.energy / case.unit).astype(case.dtype), given["active"])
    yield from case.compare("delassus_times", times / case.unit, G @ x, condition, size)
    times = dynamics.osim_times(given["q"], (x * case.unit).astype(case.dtype), given["active"])
    size = float(np.abs(osim).max(initial=0.0) * np.abs(x).sum())
    yield from case.compare("osim_times", times * case.unit / case.energy, osim @ x, worse * loss, size)


def factors(case: Case, rng: np.random.Generator) -> Iterator[str]:
    """K_mu and its solutions, the vectors (rows, joints) scaled so that the matrix is that in the robot's units."""
    p = case.problem
    given = case.cast("q", "active", "rows") if case.users else case.cast("q", "active")
    K = np.block([[-np.diag(damping(case)), p.J], [p.J.T, p.M]])
    condition = float(np.linalg.cond(K) * np.linalg.cond(p.M)) * max(1.0, 10.0 / FACTOR * case.reach)
    if not condition < 1e14:
        return
    found = case.dynamics.factor(**given)
    left = np.concatenate([case.unit, case.u.tau])  # of K x
    right = np.concatenate([case.energy / case.unit, case.u.v])  # of x
    x = rng.normal(size=len(K))
    solved = found.solve((x * left).astype(case.dtype)) / right
    size = float(np.abs(np.linalg.inv(K)).max() * np.abs(x).sum())
    yield from case.compare("factor, solve", solved, np.linalg.solve(K, x), condition, size)
    D = np.concatenate([-found.E, found.D])
    product = found.upper(D * found.lower((x * right).astype(case.dtype))) / left
    yield from case.compare("factor, product", product, K @ x, condition, float(np.abs(K).max() * np.abs(x).sum()))


def constraint_accelerations(case: Case, rng: np.random.Generator) -> Iterator[str]:
    p, a = case.problem, rng.normal(size=case.u.model.nv)
    given = case.cast("q", "v", "active", "rows") if case.users else case.cast("q", "v", "active")
    a = (a * case.u.v).astype(case.dtype)
    ours = case.dynamics.constraint_accelerations(a=a, **given) / case.unit
    a = a / case.u.v
    # Gains: sizes of what is added up, from the rows themselves.
    speed = np.abs(case.kinematics[3] / case.u.motion).max()
    gain = 1.0 + max(max(c.kp, c.kd * speed) for c in case.constraints)
    size = float((np.abs(p.J) @ np.abs(a)).max(initial=0.0) + np.abs(p.goal).max(initial=0.0) + speed**2 + gain)
    yield from case.compare("constraint_accelerations", ours, p.J @ a - p.goal, case.reach, size)


def impact(case: Case, rng: np.random.Generator) -> Iterator[str]:
    """The problem of forward dynamics with jumps of velocities in the place of accelerations."""
    restitution = rng.uniform(0.0, 1.0, len(case.constraints)).astype(case.dtype)
    given = case.cast("q", "v", "active", "rows") if case.users else case.cast("q", "v", "active")
    found = case.dynamics.impact(restitution=restitution, **given)
    bounce = np.repeat(restitution, [c.dim for c in case.constraints]).astype("f8")
    problem = case.problem
    jump = replace(problem, rest=0.0 * problem.rest, goal=-(1.0 + bounce) * problem.speed)
    moved = found.v - given["v"] if case.dtype == "f8" else found.v.astype("f8") - given["v"]
    if not np.abs(case.sample.v).any():
        finite = np.isfinite(moved).all() and np.isfinite(found.impulses).all()
        if (moved.any() or found.impulses.any()) and (finite or found.status == sl.Status.CONVERGED):
            yield "impact: what stands still is moved"
        return
    if found.v.dtype != case.dtype:
        yield f"impact: type {found.v.dtype}"
    answer = np.asarray(moved).astype(case.dtype), found.impulses, int(found.status)
    size = float(np.abs(case.sample.v / case.u.v).max())
    measure = lazily(rng, case.u, case.constraints, problem.scale, case.sample, case.dtype)
    if jump.size > 1e-3 * size:  # what is added to v and taken off again has lost these digits
        told = (case.dtype, case.dynamics.tolerance, case.chosen)
        wrong = judge(case.u, case.constraints, jump, measure, answer, *told)
        yield from (f"impact: {text}" for text in wrong)


def inverse_dynamics(case: Case, rng: np.random.Generator) -> Iterator[str]:
    u, p, m = case.u, case.problem, case.u.model
    actuated = rng.random(m.nv) < 0.6
    a = rng.normal(size=m.nv)
    given = case.cast("q", "v", "active", "rows") if case.users else case.cast("q", "v", "active")
    a = (a * u.v).astype(case.dtype)
    found = case.dynamics.inverse_dynamics(a=a, actuated=actuated, **given)
    if not (np.isfinite(found.tau).all() and np.isfinite(found.forces).all()):
        yield "inverse_dynamics: NaN or infinity"
        return
    needed = p.M @ (a / u.v) + oracles.bias(m, case.sample.q, case.sample.v) / u.tau
    tau, forces = found.tau / u.tau, found.forces * case.unit / case.energy
    if found.tau[~actuated].any():
        yield "inverse_dynamics: torques without actuators"
    size = float(np.abs(needed).max() + np.abs(p.rest).max() + (np.abs(p.J.T) @ np.abs(forces)).max(initial=0.0))
    left = np.abs(needed - tau - p.J.T @ forces)
    limit = 10.0 * RIGHT[case.dtype] * size
    if left[actuated].max(initial=0.0) > limit:
        yield f"inverse_dynamics: {left[actuated].max() / size:.1e} of the equations of motion is left with actuators"
    if found.status == sl.Status.CONVERGED and left.max(initial=0.0) > limit:
        yield f"inverse_dynamics: CONVERGED, {left.max() / size:.1e} of the equations of motion is left"
    passive = np.flatnonzero(~actuated)
    if not passive.size:
        return
    weigh = u.tau[passive]
    A = (p.J[:, passive].T * case.unit) * weigh[:, None]  # forces of least norm as users count them
    values = np.linalg.svd(A / np.abs(A).max(initial=1e-300), compute_uv=False)
    least = np.linalg.lstsq(A, weigh * needed[passive], rcond=1e-10)[0]
    missed = np.abs(A @ least - weigh * needed[passive]).max() / max(np.abs(weigh * needed[passive]).max(), 1e-300)
    if found.status == sl.Status.CONVERGED and missed > CONTRADICTORY[case.dtype] and values[-1] > 1e-6:
        yield f"inverse_dynamics: CONVERGED, though {missed:.1e} of what has no actuator cannot be carried"
