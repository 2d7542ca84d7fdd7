"""What the solution of a whole-body QP must be, by NumPy and Clarabel: the conditions as written, and a conic solver.

    minimise 1/2 x'Qx + c'x    subject to    A x = b,    x in C

C being the friction cones and bounds. Of x, y and z, all of this decides, and nothing else:

    A x = b,      x in C,      Q x + c + A'y + z = 0,      sup over C of z'x = z'x

The last says that z is in the normal cone of C at x. The sup is infinite for some z: what has to be taken from z to make it
finite is the `dual` violation, and sup - z'x of the rest the gap, which bounds how far the objective is from the least.
"""

from __future__ import annotations

from itertools import product
from operator import itemgetter
from typing import NamedTuple

import clarabel
import numpy as np
from scipy import sparse

from saltus.arrays import Array
from tests.control.whole_body_qps import Problem


class Missed(NamedTuple):
    """By how much each condition is missed, at worst; once as it is, once by the size of what it is made of."""

    stationarity: float
    equalities: float
    cones: float  # and bounds
    dual: float
    gap: float


def objective(problem: Problem, x: Array) -> float:
    return float(x @ (0.5 * problem.Q @ x + problem.c))


def missed(problem: Problem, x: Array, y: Array, z: Array, pyramid: bool = False) -> tuple[Missed, Missed]:
    """The conditions, absolute and relative; of cones, or of the pyramids with four sides that lie in them."""
    Q, c, A, b, *_ = problem
    if not all(np.isfinite(each).all() for each in (x, y, z)):
        return Missed(*[np.inf] * 5), Missed(*[np.inf] * 5)
    slopes, sides = (Q @ x, c, A.T @ y, z), (A @ x, b)
    inside, allowed, support = nearest(problem, x, z, pyramid)
    absolute = Missed(
        largest(sum(slopes)),
        largest(sides[0] - sides[1]),
        largest(x - inside),
        largest(z - allowed),
        abs(support - float(allowed @ x)),
    )
    work = max(1e-300, abs(objective(problem, x)), *(float(np.abs(x * slope).sum()) for slope in slopes[:2]))
    sizes = (max(map(largest, slopes)), max(map(largest, sides)), largest(x), max(map(largest, slopes)), work)
    relative = [miss / size if miss else 0.0 for miss, size in zip(absolute, sizes, strict=True)]
    return absolute, Missed(*relative)


def largest(x: Array) -> float:
    return float(np.abs(x).max(initial=0.0))


def nearest(problem: Problem, x: Array, z: Array, pyramid: bool) -> tuple[Array, Array, float]:
    """A point of C near x, a multiplier near z under which C is bounded, and its sup."""
    *_, cones, friction, lower, upper = problem
    inside = np.clip(x, lower, upper)
    allowed = np.where(np.isinf(upper), np.minimum(z, 0.0), z)
    allowed = np.where(np.isinf(lower), np.maximum(allowed, 0.0), allowed)
    ends = np.where(allowed > 0, upper, np.where(allowed < 0, lower, 0.0))
    support = 0.0
    for cone, mu in zip(cones, friction, strict=True):
        low, high = max(lower[cone[2]], 0.0), upper[cone[2]]
        inside[cone[2]] = max(inside[cone[2]], 0.0)
        edge = mu * inside[cone[2]]
        if pyramid:
            inside[cone[:2]] = np.clip(x[cone[:2]], -edge / np.sqrt(2), edge / np.sqrt(2))
            across = float(np.abs(z[cone[:2]]).sum()) / np.sqrt(2)
        else:
            inside[cone[:2]] = x[cone[:2]] * min(1.0, edge / max(np.hypot(*x[cone[:2]]), 1e-300))
            across = np.hypot(*z[cone[:2]])
        rate = z[cone[2]] + mu * across  # of z'x, along the edge that it likes best
        allowed[cone] = z[cone] - [0.0, 0.0, max(0.0, rate) if np.isinf(high) else 0.0]
        rate = min(0.0, rate) if np.isinf(high) else rate
        support += rate * (high if rate > 0 else low)
        ends[cone] = 0.0
    return inside, allowed, support + float(allowed @ ends)


class Truth(NamedTuple):
    x: Array
    y: Array
    z: Array
    objective: float
    status: str


WAYS = tuple(product((1e-10, 1e-8), (1e-11, 1e-13, 1e-9), (False, True)))
"""Regularisation, tolerance, and whether rows and columns are scaled: none is the best for all problems."""
GOOD = 1e-11


def conic(problem: Problem) -> Truth:
    """By Clarabel, in the first way that is good, or the best."""
    found = []
    for way in WAYS:
        truth = by_clarabel(problem, *way)
        found.append((max(missed(problem, truth.x, truth.y, truth.z)[1]), truth))
        if found[-1][0] <= GOOD:
            break
    return min(found, key=itemgetter(0))[1]


def by_clarabel(problem: Problem, regularisation: float, tolerance: float, scaled: bool) -> Truth:
    """What has no inside (equal bounds, cones without friction or without load) is an equality there."""
    Q, c, A, b, cones, friction, lower, upper = problem
    n, eye = len(c), np.eye(len(c))
    thin = np.flatnonzero(lower == upper)
    rough = [k for k in range(len(cones)) if friction[k] > 0 and upper[cones[k, 2]] > 0]
    still = np.setdiff1d(np.arange(len(cones)), rough)
    floor = lower.copy()
    floor[cones[still, 2]] = np.maximum(floor[cones[still, 2]], 0.0)
    thin = np.union1d(np.flatnonzero(floor == upper), cones[still, :2].ravel())
    above = np.setdiff1d(np.flatnonzero(np.isfinite(upper)), thin)
    below = np.setdiff1d(np.flatnonzero(np.isfinite(floor)), thin)
    edges = np.array([[friction[k], 1.0, 1.0] for k in rough]).reshape(-1, 3, 1) * eye[cones[rough][:, [2, 0, 1]]]
    values = np.where(np.isfinite(floor), floor, 0.0)
    rows = np.vstack([A, eye[thin], eye[above], -eye[below], -edges.reshape(-1, n)])
    sides = np.concatenate([b, values[thin], upper[above], -floor[below], np.zeros(3 * len(rough))])
    kinds = [clarabel.ZeroConeT(len(b) + len(thin)), clarabel.NonnegativeConeT(len(above) + len(below))]
    kinds += [clarabel.SecondOrderConeT(3)] * len(rough)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.equilibrate_enable, settings.static_regularization_constant = scaled, regularisation
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    solver = clarabel.DefaultSolver(sparse.csc_matrix(np.triu(Q)), c, sparse.csc_matrix(rows), sides, kinds, settings)
    found = solver.solve()
    x, multipliers = np.array(found.x), np.array(found.z)
    y, z = multipliers[: len(b)], rows[len(b) :].T @ multipliers[len(b) :]
    return Truth(x, y, z, objective(problem, x), str(found.status))
