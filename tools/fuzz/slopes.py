"""Derivatives in all modes, of free and constrained robots, against differences of the dense oracle along random directions.

The oracle's slope is a difference of five points; how far it is from that of twice the step is the doubt about it.

Dual numbers have the slopes of the iterations that run, which is one where it meets the constraints: an impact of what is at
rest. They are held to those, which Problem.after has, as closely as all others to those of the solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import saltus as sl
from saltus.arrays import Array
from saltus.derivatives.modes import REGISTERED
from tests import oracles
from tools.fuzz.constrained import methods_for, random_constraints, random_samples, with_fixed_frames
from tools.fuzz.dense import Problem, Sample
from tools.fuzz.robots import Units, random_base, random_q, random_robot, scaled

STEP = 1e-3
TOLERANCE = {"analytical": 1e-6, "ad": 1e-6, "fdc": 1e-4, "fd": 1e-2, "vjp": 1e-6}
"""Of the largest entry that a slope can have, one direction being about one: the differences' own error is in it."""
ROUNDING = 1e-11
"""Of the function itself, times the condition number of M, by differences of numbers a step apart."""

FACTOR = 20.0
"""How many times machine epsilon, times the condition numbers of M and of the Delassus matrix, slopes under constraints may
be off."""

SEAM = 0.1
"""Where doubts are larger than so much of a slope, its steps lead over a jump: the angle of a joint that follows a
continuous one jumps where that one has turned by pi."""

Point = dict[str, Array]


def spatial(name: str, which: str) -> Callable[..., Any]:
    return lambda m, *x: getattr(oracles, name)(m, *x[: len(which)], x[-2], x[-1])


FREE: dict[str, tuple[Callable[..., Any], str, Callable[..., Any], Callable[[Units], Any]]] = {
    "rnea": (sl.rnea, "qva", oracles.inverse_dynamics, lambda u: u.tau),
    "nonlinear_effects": (sl.nonlinear_effects, "qv", oracles.bias, lambda u: u.tau),
    "gravity": (sl.gravity, "q", oracles.gravity_torque, lambda u: u.tau),
    "aba": (sl.aba, "qvt", oracles.forward_dynamics, lambda u: u.v),
    "crba": (sl.crba, "q", oracles.mass_matrix, lambda u: u.M),
    "frame_velocity": (sl.frame_velocity, "qv", spatial("frame_velocity", "qv"), lambda u: u.motion),
    "frame_acceleration": (sl.frame_acceleration, "qva", spatial("frame_acceleration", "qva"), lambda u: u.motion),
    "center_of_mass": (sl.center_of_mass, "qva", lambda *x: np.array(oracles.center_of_mass(*x)), lambda u: u.length),
    "centroidal_momentum": (sl.centroidal_momentum, "qv", oracles.centroidal_momentum, lambda u: u.wrench),
    "centroidal_momentum_rate": (
        sl.centroidal_momentum_rate, "qva", oracles.centroidal_momentum_time_variation, lambda u: u.wrench,
    ),
    "kinetic_energy": (sl.kinetic_energy, "qv", oracles.kinetic_energy, lambda u: u.mass * u.length**2),
    "potential_energy": (sl.potential_energy, "q", oracles.potential_energy, lambda u: u.mass * u.length**2),
}  # fmt: skip


def moved(m: sl.Model, point: Point, direction: Point, e: float) -> Point:
    return {
        name: oracles.integrate(m, x, e * direction[name]) if name == "q" else x + e * direction[name]
        for name, x in point.items()
    }


def slope_of(function: Callable[[Point], Array], m: sl.Model, point: Point, direction: Point) -> tuple[Array, Array]:
    """The slope, and the doubt about each of its numbers."""
    f = {k: np.asarray(function(moved(m, point, direction, k * STEP))) for k in (-4, -2, -1, 1, 2, 4)}
    near, far = ((8.0 * (f[k] - f[-k]) - (f[2 * k] - f[-2 * k])) / (12.0 * k * STEP) for k in (1, 2))
    return near, np.abs(near - far)


def together(x: Any) -> Array:
    """One array of several outputs of the same shape."""
    return np.stack([np.asarray(each) for each in x]) if isinstance(x, tuple) else np.asarray(x)


def product(entry: Any, direction: Array) -> Array:
    """A Jacobian, or one of each output, along a direction."""
    return np.stack([J @ direction for J in entry]) if isinstance(entry, tuple) else entry @ direction


def check(rng: np.random.Generator) -> Iterator[str]:
    yield from free(rng) if rng.random() < 0.5 else constrained(rng)


def free(rng: np.random.Generator) -> Iterator[str]:
    model, u = random_robot(rng, 10, mimics=True)
    point = {
        "q": random_q(rng, u),
        "v": rng.normal(size=model.nv) * u.v,
        "a": rng.normal(size=model.nv) * u.v,
        "t": 10.0 * rng.normal(size=model.nv) * u.tau,
    }
    units = {"q": u.v, "v": u.v, "a": u.v, "t": u.tau}
    frame = [int(rng.integers(len(model.frames))), str(rng.choice(["local", "world", "local_world_aligned"]))]
    condition = float(np.linalg.cond(oracles.mass_matrix(model, point["q"]) / u.M))
    for name in rng.choice(list(FREE), 4, replace=False).tolist():
        ours, letters, theirs, unit = FREE[name]
        here = {letter: point[letter] for letter in letters}
        direction = {letter: rng.uniform(-1.0, 1.0, model.nv) * units[letter] for letter in letters}
        more = frame if name.startswith("frame") else []
        inputs, along = (*here.values(), *more), (*direction.values(), *[None] * len(more))
        slope, doubts = slope_of(lambda x: theirs(model, *x.values(), *more), model, here, direction)  # noqa: B023
        right, doubt = slope / unit(u), float(np.max(doubts / unit(u), initial=0.0))
        if doubt > SEAM * float(np.abs(right).max(initial=0.0)) + SEAM:
            continue
        value = np.asarray(theirs(model, *inputs)) / unit(u)
        modes = ["ad", *(["analytical"] if ours in REGISTERED else [])] if model.coupling is None else []
        modes += ["fd", "fdc"] if u.length == 1.0 else []
        entries = sl.jacobian(ours, model, inputs, "ad" if model.coupling is None else "fdc")
        whole = [np.abs(product(entries[k], np.diag(units[x])) / np.asarray(unit(u))[..., None]).max(initial=0.0)
                 if np.ndim(unit(u)) < 2 else np.abs(entries[k] * units[x] / unit(u)[..., None]).max(initial=0.0)
                 for k, x in enumerate(letters)]  # fmt: skip
        size = float(max(whole)) + ROUNDING / TOLERANCE["ad"] * condition * float(np.abs(value).max(initial=0.0))
        for mode in modes:
            _, slopes = sl.jvp(ours, model, inputs, along, mode)
            yield from compare(
                f"jvp of {name}, {mode}", together(slopes) / unit(u), right, TOLERANCE[mode] * size + doubt
            )
            entries = sl.jacobian(ours, model, inputs, mode)
            total = sum(product(entries[k], direction[x]) for k, x in enumerate(letters))
            yield from compare(f"jacobian of {name}, {mode}", total / unit(u), right, TOLERANCE[mode] * size + doubt)
        if model.coupling is not None:  # mimic joints have no dual numbers
            continue
        weights = rng.normal(size=right.shape) / unit(u)
        given = tuple(weights) if name == "center_of_mass" else weights
        _, gradients = sl.vjp(ours, model, inputs, given)
        total = sum(float(gradients[k] @ direction[x]) for k, x in enumerate(letters))
        most = (TOLERANCE["vjp"] * size + doubt) * float(np.abs(weights * unit(u)).sum())
        yield from compare(f"vjp of {name}", np.array(total), np.sum(weights * unit(u) * right), most)


def lost(problem: Problem, size: float) -> float:
    """What rounding may take from slopes under constraints, rows that depend on others left out: from their size, and from
    what forces add, which turn with the rows and are rounded likewise."""
    least = float(problem.singular[problem.singular > 1e-9].min(initial=1.0))
    worst = FACTOR * float(np.finfo(float).eps) * float(np.linalg.cond(problem.M)) / least**2
    return worst * (size + problem.felt(problem.solution[1]))


def compare(what: str, ours: Any, right: Any, most: float) -> Iterator[str]:
    if np.shape(ours) != np.shape(right):
        yield f"{what}: shape {np.shape(ours)}, expected {np.shape(right)}"
    elif not np.isfinite(ours).all():
        yield f"{what}: NaN or infinity"
    elif (error := np.abs(ours - right).max(initial=0.0)) > most:
        yield f"{what}: off by {error:.1e} of {np.abs(right).max(initial=0.0):.1e}, at most {most:.1e} allowed"


def constrained(rng: np.random.Generator) -> Iterator[str]:
    """Around a sample whose rank is plain and does not change; where constraints contradict each other, NaN is right too."""
    _, u = with_fixed_frames(rng, scaled(random_base(rng, 8, False), 1.0, 1.0)[1])
    q = random_q(rng, u)
    constraints = random_constraints(rng, u, q)
    if any(c.dofs for c in constraints):
        return
    sample = random_samples(rng, u, constraints, q, 1, "f8")[0]
    sample = replace(sample, external=0.0 * sample.external, target=0.0 * sample.target)
    weights = np.concatenate([c.weight[list(c.rows)] for c in constraints])
    ranks, m = set(), u.model

    def dense(x: Point) -> Problem:
        problem = Problem.of(u, constraints, weights, replace(sample, **x))
        ranks.add((problem.clear, int((problem.singular > 1e-9).sum())))
        return problem

    point = {"q": sample.q, "v": sample.v, "tau": sample.tau}
    direction = {name: rng.uniform(-1.0, 1.0, m.nv) for name in point}
    right, doubts = slope_of(lambda x: np.concatenate(dense(x).solution), m, point, direction)
    doubt, force_doubt = (float(x.max(initial=0.0)) for x in (doubts[: m.nv], doubts[m.nv :]))
    problem = dense(point)
    if len(ranks) > 1 or not problem.clear or (problem.singular[problem.singular > 1e-9] < 1e-3).any():
        return  # near a singular pose, differences say nothing
    contradictory = problem.miss > 1e-9
    method = str(rng.choice([name for name in methods_for(constraints) if name in ("constrained_aba", "prox_ltl")]))
    dynamics = sl.ConstrainedDynamics(m, constraints, method, tolerance=1e-11, most_iterations=200)
    along = tuple(direction.values())
    size = float(np.abs(right[: m.nv]).max() + np.abs(problem.solution[0]).max() + np.abs(problem.free).max())
    doubt, force_doubt = doubt + lost(problem, size), force_doubt + lost(problem, size)
    for mode in ("analytical", "ad", "fdc"):
        if contradictory and mode == "fdc":
            continue
        D = dynamics.derivatives(**point, active=sample.active, mode=mode)
        about = f"{mode} derivatives of {method}, {sl.Status(int(D.solution.status)).name}"
        if D.status in (sl.Status.STOPPED, sl.Status.INACCURATE) or (contradictory and np.isnan(D.da_dq).any()):
            continue
        theirs, more, rounded = right, 0.0 * doubts, 0.0
        if mode == "ad":  # where constraints contradict each other, forces are 1 / mu of what they miss, and cancel
            run = int(D.solution.iterations), dynamics.mu
            theirs, more = slope_of(lambda x: np.concatenate(dense(x).after(*run)), m, point, direction)  # noqa: B023
            rounded = FACTOR * float(np.finfo(float).eps) * problem.felt(D.solution.forces)
        total = sum(J @ d for J, d in zip((D.da_dq, D.da_dv, D.da_dtau), along, strict=True))
        rounded += float(more[: m.nv].max())
        yield from compare(f"{about}, accelerations", total, theirs[: m.nv], TOLERANCE[mode] * size + doubt + rounded)
        if problem.unique and not contradictory:
            total = sum(J @ d for J, d in zip((D.df_dq, D.df_dv, D.df_dtau), along, strict=True))
            most = float(np.abs(right[m.nv :]).max(initial=0.0) + np.abs(problem.solution[1]).max(initial=0.0)) + size
            most = TOLERANCE[mode] * most + force_doubt + float(more[m.nv :].max(initial=0.0))
            yield from compare(f"{about}, forces", total, theirs[m.nv :], most)
    if not contradictory:
        yield from products(rng, u, dynamics, problem, sample, direction, right, size, doubt)
        yield from impacts(rng, u, dynamics, constraints, weights, sample, direction)


def products(
    rng: np.random.Generator, u: Units, dynamics: sl.ConstrainedDynamics, problem: Problem, sample: Sample,
    direction: Point, right: Array, size: float, doubt: float,
) -> Iterator[str]:  # fmt: skip
    """Slopes and gradients without a Jacobian."""
    m, along = u.model, tuple(direction.values())
    inputs = (sample.q, sample.v, sample.tau, sample.active)
    for mode in ("analytical", "ad"):
        _, slopes = sl.jvp(sl.ConstrainedDynamics.solve, dynamics, inputs, (*along, None), mode)
        yield from compare(f"jvp of solve, {mode}", slopes[0], right[: m.nv], TOLERANCE[mode] * size + doubt)
    w = rng.normal(size=m.nv)
    given = (w, np.zeros(dynamics.problem.nm))
    _, gradients = sl.vjp(sl.ConstrainedDynamics.solve, dynamics, inputs, given)
    total = sum(g @ d for g, d in zip(gradients[:3], along, strict=True))
    most = (TOLERANCE["vjp"] * size + doubt) * float(np.abs(w).sum())
    yield from compare("vjp of solve", np.array(total), np.array(w @ right[: m.nv]), most)


def impacts(
    rng: np.random.Generator, u: Units, dynamics: sl.ConstrainedDynamics, constraints: list[sl.Constraint], weights: Array,
    sample: Sample, direction: Point,
) -> Iterator[str]:  # fmt: skip
    restitution = float(rng.uniform(0.0, 1.0))
    bounce = 1.0 + restitution

    def jump(x: Point) -> Problem:
        problem = Problem.of(u, constraints, weights, replace(sample, **x))
        return replace(problem, rest=0.0 * problem.rest, goal=-bounce * problem.speed)

    def after(x: Point, iterations: float = np.inf) -> Array:
        return np.asarray(x["v"] + jump(x).after(iterations, dynamics.mu)[0])

    point, along = {"q": sample.q, "v": sample.v}, {"q": direction["q"], "v": direction["v"]}
    right, doubts = slope_of(after, u.model, point, along)
    size = float(np.abs(right).max() + np.abs(sample.v).max())
    doubt = float(doubts.max()) + lost(jump(point), size)
    for mode in ("analytical", "ad", "fdc"):
        D = dynamics.impact_derivatives(**point, active=sample.active, restitution=restitution, mode=mode)
        theirs, count, more = right, int(D.impact.iterations), 0.0 * doubts
        if mode == "ad":
            theirs, more = slope_of(lambda x: after(x, count), u.model, point, along)  # noqa: B023
        total = D.dv_dq @ along["q"] + D.dv_dv @ along["v"]
        most = TOLERANCE[mode] * size + doubt + float(more.max())
        yield from compare(f"{mode} derivatives of impact", total, theirs, most)
