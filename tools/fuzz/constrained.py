"""Constrained dynamics: random constraints, degenerate ones among them, by all methods, in both precisions.

NaN only where a status says INACCURATE or STOPPED. CONVERGED: accelerations are right, and what forces give by the equations
of motion, and forces where they are unique. LEAST_SQUARES: accelerations are those of least squares. Constraints that
contradict each other never converge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import saltus as sl
from saltus.arrays import Array
from saltus.constraints.dynamics import METHODS, TAKE_ROWS, TREES_ONLY
from saltus.constraints.scale import levers, robot_size
from tests import oracles
from tools.fuzz.dense import RANK, Problem, Sample, row_units, sensitivity
from tools.fuzz.robots import Units, random_q, random_robot

RIGHT = {"f8": 3e-7, "f4": 1e-4}
"""Relative errors that are allowed in any case, by number type (in double, three times what counts as settled, for that is
an estimate); and in an ill-conditioned one:"""
FACTOR = 20.0
"""times what rounding the inputs to that number type does to the right answer."""
WORST = 1e-2
"""Where more than this would be allowed, accuracy is not looked at."""
SLOW = 1e-3
"""Along singular values below so much of the largest, a proximal method moves so little that it may think it is there."""
FORM_M = {"kkt", "prox_ltl", "prox_ltls"}
"""Methods that form the inertia matrix."""
CONTRADICTORY = {"f8": 1e-5, "f4": 1e-2}
"""Constraints that miss by more than so much of what they ask for may not converge."""

tally: Counter[str] = Counter()
"""How solutions ended, over all cases."""


def with_fixed_frames(rng: np.random.Generator, u: Units) -> tuple[sl.Model, Units]:
    """The same robot with a frame on every body, and two fixed to the world."""
    frames = list(u.model.frames)
    for index, joint in enumerate([0, 0, *range(1, u.model.njoints)]):
        placement = oracles.placement_of(
            oracles.Rotation.random(rng=rng).as_matrix(), 0.3 * rng.normal(size=3) * u.length
        )
        frames.append(sl.Frame(f"held_{index}", joint, placement, sl.FrameKind.OP, 0))
    model = u.model.replace(frames=tuple(frames))
    return model, Units(model, u.mass, u.length)


def random_gains(rng: np.random.Generator, able: bool) -> dict[str, float]:
    if rng.random() < 0.5:
        return {}
    return {"kd": float(10.0 ** rng.uniform(-1, 2)), **({"kp": float(10.0 ** rng.uniform(-1, 3))} if able else {})}


def random_frame(rng: np.random.Generator, u: Units) -> int:
    """One that moves, mostly."""
    moving = rng.random() < 0.8
    able = [k for k, frame in enumerate(u.model.frames) if frame.joint or not moving]
    return able[rng.integers(len(able))]


def random_contact(rng: np.random.Generator, u: Units, q: Array) -> sl.Constraint:
    """On any frame, of the world too; held where it nearly is at q."""
    frame = random_frame(rng, u)
    if rng.random() < 0.15:
        rows = sorted(rng.choice(6, rng.integers(1, 6), replace=False).tolist())
        return sl.Contact(u.model, frame, rows=rows, **random_gains(rng, False))
    off = oracles.placement_of(
        oracles.Rotation.from_rotvec(0.3 * rng.normal(size=3)).as_matrix(), 0.1 * rng.normal(size=3) * u.length
    )
    anchor = oracles.frame_placement(u.model, q, frame) @ off
    return sl.Contact(u.model, frame, int(rng.choice([3, 6])), anchor=anchor, **random_gains(rng, True))


def random_loop(rng: np.random.Generator, u: Units, q: Array) -> sl.Constraint | None:
    """Between any two bodies, or one and the world on either side; with gains where the frames are not turned by pi."""
    a, b = random_frame(rng, u), random_frame(rng, u)
    if u.model.frames[a].joint == u.model.frames[b].joint:
        return None
    AB = oracles.inverse(oracles.frame_placement(u.model, q, a)) @ oracles.frame_placement(u.model, q, b)
    turned = float(np.arccos(np.clip((np.trace(AB[:3, :3]) - 1.0) / 2.0, -1.0, 1.0)))
    return sl.LoopClosure(u.model, a, b, int(rng.choice([3, 5, 6])), **random_gains(rng, turned < 2.5))


def random_constraints(rng: np.random.Generator, u: Units, q: Array) -> list[sl.Constraint]:
    what = rng.random()
    loops, users = what > 0.55, what > 0.85
    constraints: list[sl.Constraint] = []
    for _ in range(rng.integers(1, 5)):
        if constraints and rng.random() < 0.15:
            twin = constraints[rng.integers(len(constraints))]
            constraints.append(replace(twin, name=f"{twin.name} again"))
        elif users and rng.random() < 0.4:
            dofs = sorted(rng.choice(u.model.nv, rng.integers(1, u.model.nv + 1), replace=False).tolist())
            constraints.append(sl.UserRows(u.model, int(rng.integers(1, 4)), dofs))
        elif loops and rng.random() < 0.6 and (loop := random_loop(rng, u, q)):
            constraints.append(loop)
        else:
            constraints.append(random_contact(rng, u, q))
    return constraints


def methods_for(constraints: list[sl.Constraint]) -> list[str]:
    able = set(METHODS)
    if any(c.joint_b > 0 for c in constraints):
        able -= TREES_ONLY
    if any(c.dofs for c in constraints):
        able &= TAKE_ROWS
    return sorted(able)


def random_samples(
    rng: np.random.Generator, u: Units, constraints: list[sl.Constraint], q: Array, count: int, dtype: str
) -> list[Sample]:
    """Of one configuration, so that gains act on small errors; all else varies. Numbers are exact in the type."""
    model, unit = u.model, row_units(u, constraints)
    nm, nc = len(unit), len(constraints)
    users = [c for c in constraints if c.dofs]
    speed = 0.0 if rng.random() < 0.2 else 10.0 ** rng.uniform(-1, 1)
    asked, pushed, masked = rng.random() < 0.4, rng.random() < 0.2, rng.random() < 0.4
    samples = []
    for _ in range(count):
        rows = np.zeros((sum(c.dim for c in users), model.nv))
        start = 0
        for user in users:
            rows[start : start + user.dim, list(user.dofs)] = rng.normal(size=(user.dim, len(user.dofs)))
            start += user.dim
        sample = Sample(
            q,
            speed * rng.normal(size=model.nv) * u.v,
            10.0 * rng.normal(size=model.nv) * u.tau,
            (rng.random(nc) < 0.7).astype(float) if masked else np.ones(nc),
            rng.normal(size=nm) * unit * (rng.random(nm) < 0.5) if asked else np.zeros(nm),
            rows / u.v,
            10.0 * rng.normal(size=(model.njoints, 6)) * u.wrench if pushed else np.zeros((model.njoints, 6)),
        )
        samples.append(Sample(**{name: x.astype(dtype).astype("f8") for name, x in vars(sample).items()}))
    return samples


def random_problem(rng: np.random.Generator, most: int = 12) -> tuple[Units, list[sl.Constraint], Array]:
    _, u = with_fixed_frames(rng, random_robot(rng, most)[1])
    q = random_q(rng, u)
    return u, random_constraints(rng, u, q), q


def check(rng: np.random.Generator) -> Iterator[str]:
    """One robot, one set of constraints, one batch, all methods: what is wrong, in words."""
    u, constraints, q = random_problem(rng)
    dtype = "f4" if rng.random() < 0.35 else "f8"
    if dtype == "f4":  # quaternions of length 1 in single precision
        q = q.astype("f4").astype("f8")
    samples = random_samples(rng, u, constraints, q, int(rng.choice([1, 2, 5])), dtype)
    mu = {} if rng.random() < 0.7 else {"mu": float(10.0 ** rng.uniform(-12, -1))}
    alone = len(samples) == 1 and rng.random() < 0.5
    sl.set_threads(int(rng.integers(1, 3)))
    weights = np.concatenate([c.weight[list(c.rows)] for c in constraints])
    problems = [Problem.of(u, constraints, weights, s) for s in samples]
    measured = [lazily(rng, u, constraints, weights, s, dtype) for s in samples]
    call = arguments(samples, dtype, alone, any(c.dofs for c in constraints))
    for method in methods_for(constraints):
        dynamics = sl.ConstrainedDynamics(u.model, constraints, method, **mu)
        solution = dynamics.solve(**call)
        about = f"{method}, {dtype}, mu {mu.get('mu', 'default')}, {len(samples)} samples"
        for k, (problem, shift) in enumerate(zip(problems, measured, strict=True)):
            at = () if alone else (k,)
            found = solution.a[at], solution.forces[at], int(np.asarray(solution.status)[at])
            formed = method in FORM_M
            wrong = judge(u, constraints, problem, shift, found, dtype, dynamics.tolerance, bool(mu), formed)
            yield from (f"{about}, sample {k}: {text}" for text in wrong)


def lazily(
    rng: np.random.Generator, u: Units, constraints: list[sl.Constraint], weights: Array, s: Sample, dtype: str
) -> Callable[[], tuple[float, float]]:
    """The sensitivity of a sample, for it costs more than all methods and is asked for only where digits are missing."""
    seed = int(rng.integers(2**31))
    return cache(
        lambda: sensitivity(np.random.default_rng(seed), u, constraints, weights, s, float(np.finfo(dtype).eps))
    )


def arguments(samples: list[Sample], dtype: str, alone: bool, users: bool) -> dict[str, Any]:
    """What `solve` takes; whatever is as by default is left out."""
    stacked = {name: np.array([getattr(s, name) for s in samples], dtype) for name in vars(samples[0])}
    if not stacked["external"].any():
        del stacked["external"]
    if not stacked["target"].any():
        del stacked["target"]
    if stacked["active"].all():
        del stacked["active"]
    if not users:
        del stacked["rows"]
    return {name: x[0] for name, x in stacked.items()} if alone else stacked


def judge(
    u: Units, constraints: list[sl.Constraint], problem: Problem, shift: Callable[[], tuple[float, float]],
    found: tuple[Array, Array, int], dtype: str, tolerance: float, chosen: bool = False, formed: bool = True,
) -> Iterator[str]:  # fmt: skip
    """What is wrong with accelerations, forces and status of one sample; `shift` is its sensitivity, and whether mu was
    chosen by the user, and M formed."""
    a, forces, status = found
    if a.dtype != dtype or forces.dtype != dtype:
        yield f"types {a.dtype} and {forces.dtype}"
    name = sl.Status(status).name
    if not (np.isfinite(a).all() and np.isfinite(forces).all()):
        tally["not finite"] += 1
        if name not in ("INACCURATE", "STOPPED"):
            yield f"NaN or infinity, {name}"
        return
    a, forces = a / u.v, forces * row_units(u, constraints) / (u.mass * u.length**2)
    contradictory = problem.clear and problem.miss > CONTRADICTORY[dtype]
    tally[f"{dtype} {name}{', contradictory' if contradictory else ''}"] += 1

    fall = float(np.abs(u.model.gravity).max())
    near = float((np.abs(problem.solution[0] * u.v) * levers(u.model, constraints)).max(initial=fall))
    kinds = [0 if c.dofs else axis // 3 for c in constraints for axis in c.rows]
    rounding = float(np.finfo(dtype).eps) * near / np.array([1.0, robot_size(u.model)])[kinds]
    limit = np.maximum(tolerance, rounding)  # as convergence.py has it
    stopped = problem.left(limit / row_units(u, constraints))
    lost = problem.lost

    def off(
        what: str, ours: Array, right: Array, size: float, which: int, times: float = 1.0, more: float = 0.0
    ) -> Iterator[str]:
        error = float(np.abs(ours - right).max(initial=0.0)) - more
        if error > times * RIGHT[dtype] * size:
            most = times * max(RIGHT[dtype] * size, FACTOR * shift()[which], lost * size) + stopped[which]
            if error > most and most < WORST * size:
                yield f"{name}: {what} off by {error / size:.1e}, at most {most / size:.1e} allowed"

    right, force = problem.solution
    if status == sl.Status.CONVERGED:
        if contradictory:
            yield f"{name}, though constraints are missed by {problem.miss:.1e}"
            return
        if problem.clear:
            yield from off("accelerations", a, right, problem.size, 0)
        rounded = float(np.finfo(dtype).eps) * problem.felt(forces) + float(np.finfo("f8").eps) * problem.balanced(a)
        rounded = 10.0 * min(rounded, WORST * problem.size)
        yield from off("accelerations by forces", problem.pushed(forces), a, problem.size, 0, 10.0, rounded)
        if problem.unique:
            rounded = float(np.finfo(dtype).eps) * problem.carried(formed)
            yield from off("forces", forces, force, float(np.abs(force).max(initial=0.0)), 1, more=rounded)
    regular = problem.singular > RANK
    if status == sl.Status.LEAST_SQUARES and contradictory and (problem.singular[regular] > SLOW).all():
        # Forces on what cannot be met grow by 1 / mu, and accelerations lose as many digits of what the user chose.
        yield from off("accelerations", a, right, problem.size, 0, 1e5 if chosen else 100.0)
