"""Solvers of quadratic programs for whole-body QPs, each by what makes it fastest, all with the same three steps.

`load` puts a problem into the arrays that a solver wants, which is not timed; `solve` hands them over, factors and solves;
`point` is x, the multipliers y of the equalities, and z of all else, as `sl.fccqp` has them. Bounds are those of torques,
and cones have friction: what the families have.

| solver | cone | how |
|---|---|---|
| DAQP | pyramid | dense, a workspace of its own, equalities eliminated, limited variables first |
| ProxQP, PIQP | pyramid | dense, updated |
| OSQP | pyramid | sparse, values updated, polished |
| Clarabel, QOCO | cone | sparse, values updated |

A pyramid has four sides and lies in its cone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import clarabel
import daqp
import numpy as np
import osqp
import piqp
import qoco
from proxsuite import proxqp
from scipy import sparse

import saltus as sl
from saltus.arrays import Array
from tests.control.whole_body_qps import Problem

FAR = 1e30


class Point(NamedTuple):
    x: Array
    y: Array
    z: Array


def limited(problem: Problem) -> Array:
    """The variables with bounds."""
    return np.flatnonzero(np.isfinite(problem.upper))


def pyramids(problem: Problem) -> Array:
    """G of G x <= 0, four rows a contact."""
    G = np.zeros((len(problem.cones), 4, len(problem.c)))
    for rows, (x, y, z), mu in zip(G, problem.cones, problem.friction, strict=True):
        rows[[0, 1], x] = rows[[2, 3], y] = 1.0, -1.0
        rows[:, z] = -mu / np.sqrt(2.0)
    return G.reshape(-1, len(problem.c))


def circles(problem: Problem) -> Array:
    """G of -G x = (mu f_z, f_x, f_y) in its second-order cone, three rows a contact."""
    G = np.zeros((len(problem.cones), 3, len(problem.c)))
    for rows, (x, y, z), mu in zip(G, problem.cones, problem.friction, strict=True):
        rows[0, z], rows[1, x], rows[2, y] = -mu, -1.0, -1.0
    return G.reshape(-1, len(problem.c))


class Sparse:
    """Matrices of one pattern: all that is anywhere among some examples."""

    def __init__(self, examples: Array) -> None:
        columns, rows = np.nonzero((examples != 0).any(0).T)
        self.places = rows, columns
        pointers = np.r_[0, np.cumsum(np.bincount(columns, minlength=examples.shape[2]))]
        self.matrix = sparse.csc_matrix((self.values(examples[0]), rows, pointers), examples.shape[1:])

    def values(self, matrix: Array) -> Array:
        return np.ascontiguousarray(matrix[self.places])


class Ours:
    pyramid, warm = False, True
    method = "interior_point"

    def __init__(self, examples: Problem, tolerance: float, warm: bool) -> None:
        self.options: dict[str, Any] = {"tolerance": tolerance, "method": self.method}
        self.cones = tuple(map(tuple, examples.cones.tolist()))
        self.follows, self.found = warm, None

    def load(self, problem: Problem) -> None:
        self.problem = problem
        if self.follows and self.found is not None:
            self.options |= {"x": self.found.x, "y": self.found.y, "z": self.found.z}

    def solve(self) -> None:
        Q, c, A, b, _, friction, lower, upper = self.problem
        self.found = sl.fccqp(Q, c, A, b, cones=self.cones, friction=friction, lower=lower, upper=upper, **self.options)

    def point(self) -> Point:
        return Point(self.found.x, self.found.y, self.found.z)


class OursADMM(Ours):
    method = "admm"


class DAQP:
    pyramid, warm = True, True

    def __init__(self, examples: Problem, tolerance: float, warm: bool) -> None:
        self.model, self.follows, self.lam = daqp.Model(), warm, None
        self.model.settings = {"primal_tol": tolerance, "eq_reduction": 1}
        self.first = limited(examples[0])
        others = np.setdiff1d(np.arange(len(examples.c[0])), self.first)
        self.order, count = np.r_[self.first, others], len(self.first)
        self.equalities, sides = len(examples.b[0]), 4 * len(examples.cones)
        self.sense = np.r_[np.zeros(count), np.full(self.equalities, 5), np.zeros(sides)].astype(np.int32)
        self.load(examples[0])
        self.model.setup(*self.data)

    def load(self, problem: Problem) -> None:
        Q, c, A, b, *_, lower, upper = problem
        rows, sides = np.vstack([A, pyramids(problem)]), np.zeros(4 * len(problem.cones))
        sense = self.sense.copy()
        if self.follows and self.lam is not None:
            sense[self.lam != 0] |= 1
        H, J = map(np.ascontiguousarray, (Q[np.ix_(self.order, self.order)], rows[:, self.order]))
        ends = np.r_[upper[self.first], b, sides], np.r_[lower[self.first], b, sides - FAR]
        self.data = H, c[self.order], J, *ends, sense
        self.rows = rows

    def solve(self) -> None:
        self.model.update(*self.data)
        self.found = self.model.solve()
        self.lam = self.found[3]["lam"]

    def point(self) -> Point:
        x, z = np.empty(len(self.order)), np.zeros(len(self.order))
        x[self.order] = self.found[0]
        count, rows = len(self.first), self.equalities
        z[self.first] = self.lam[:count]
        y, sides = self.lam[count : count + rows], self.lam[count + rows :]
        return Point(x, y, z + self.rows[rows:].T @ sides)


class ProxQP:
    pyramid, warm = True, True

    def __init__(self, examples: Problem, tolerance: float, warm: bool) -> None:
        self.first, rows, sides = limited(examples[0]), len(examples.b[0]), 4 * len(examples.cones)
        self.qp = proxqp.dense.QP(len(examples.c[0]), rows, len(self.first) + sides)
        settings = self.qp.settings
        settings.eps_abs, settings.eps_rel = tolerance, 0.0
        settings.check_duality_gap, settings.eps_duality_gap_abs, settings.eps_duality_gap_rel = True, 1e-6, 0.0
        settings.initial_guess = (
            proxqp.WARM_START_WITH_PREVIOUS_RESULT if warm else proxqp.EQUALITY_CONSTRAINED_INITIAL_GUESS
        )
        self.load(examples[0])
        self.qp.init(*self.data)

    def load(self, problem: Problem) -> None:
        Q, c, A, b, *_, lower, upper = problem
        self.C = np.vstack([np.eye(len(c))[self.first], pyramids(problem)])
        none = np.zeros(4 * len(problem.cones))
        self.data = Q, c, A, b, self.C, np.r_[lower[self.first], none - FAR], np.r_[upper[self.first], none]

    def solve(self) -> None:
        self.qp.update(*self.data, update_preconditioner=False)
        self.qp.solve()

    def point(self) -> Point:
        found = self.qp.results
        return Point(found.x.copy(), found.y.copy(), self.C.T @ found.z)


class PIQP:
    pyramid, warm = True, False

    def __init__(self, examples: Problem, tolerance: float, warm: bool) -> None:
        self.qp = piqp.DenseSolver()
        settings = self.qp.settings
        settings.eps_abs, settings.eps_rel = tolerance, 0.0
        settings.eps_duality_gap_abs, settings.eps_duality_gap_rel = tolerance, 0.0
        self.load(examples[0])
        self.qp.setup(*self.data)

    def load(self, problem: Problem) -> None:
        Q, c, A, b, *_, lower, upper = problem
        self.G, none = pyramids(problem), np.zeros(4 * len(problem.cones))
        Q, A, G = map(np.asfortranarray, (Q, A, self.G))
        self.data = Q, c, A, b, G, none - np.inf, none, lower, upper

    def solve(self) -> None:
        self.qp.update(*self.data)
        self.qp.solve()

    def point(self) -> Point:
        found = self.qp.result
        return Point(found.x.copy(), found.y.copy(), self.G.T @ found.z_u + found.z_bu - found.z_bl)


class OSQP:
    pyramid, warm = True, True

    def __init__(self, examples: Problem, tolerance: float, warm: bool) -> None:
        self.first, self.equalities = limited(examples[0]), len(examples.b[0])
        self.P = Sparse(np.triu(examples.Q))
        self.A = Sparse(np.stack([self.stacked(examples[k]) for k in range(len(examples.c))]))
        self.load(examples[0])
        _, q, _, l, u = self.data
        self.qp, self.follows = osqp.OSQP(), warm
        self.qp.setup(
            self.P.matrix, q, self.A.matrix, l, u, verbose=False, eps_abs=tolerance, eps_rel=0.0, max_iter=20_000,
            polishing=True, warm_starting=True,
        )  # fmt: skip

    def stacked(self, problem: Problem) -> Array:
        return np.vstack([problem.A, np.eye(len(problem.c))[self.first], pyramids(problem)])

    def load(self, problem: Problem) -> None:
        _, c, _, b, *_, lower, upper = problem
        self.rows, none = self.stacked(problem), np.zeros(4 * len(problem.cones))
        l, u = np.r_[b, lower[self.first], none - np.inf], np.r_[b, upper[self.first], none]
        self.data = self.P.values(problem.Q), c, self.A.values(self.rows), l, u

    def solve(self) -> None:
        P, q, A, l, u = self.data
        self.qp.update(Px=P, Ax=A, q=q, l=l, u=u)
        if not self.follows:
            self.qp.warm_start(x=np.zeros_like(q), y=np.zeros_like(l))
        self.found = self.qp.solve(raise_error=False)

    def point(self) -> Point:
        y, rows = self.found.y, self.equalities
        return Point(self.found.x, y[:rows], self.rows[rows:].T @ y[rows:])


class Clarabel:
    pyramid, warm = False, False

    def __init__(self, examples: Problem, tolerance: float, warm: bool) -> None:
        self.first, self.equalities = limited(examples[0]), len(examples.b[0])
        self.P = Sparse(np.triu(examples.Q))
        self.A = Sparse(np.stack([self.stacked(examples[k]) for k in range(len(examples.c))]))
        self.load(examples[0])
        settings = clarabel.DefaultSettings()
        settings.verbose = settings.presolve_enable = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        kinds = [clarabel.ZeroConeT(self.equalities), clarabel.NonnegativeConeT(2 * len(self.first))]
        kinds += [clarabel.SecondOrderConeT(3)] * len(examples.cones)
        _, q, _, b = self.data
        self.qp = clarabel.DefaultSolver(self.P.matrix, q, self.A.matrix, b, kinds, settings)

    def stacked(self, problem: Problem) -> Array:
        one = np.eye(len(problem.c))[self.first]
        return np.vstack([problem.A, one, -one, circles(problem)])

    def load(self, problem: Problem) -> None:
        _, c, _, b, cones, _, lower, upper = problem
        self.rows = self.stacked(problem)
        sides = np.r_[b, upper[self.first], -lower[self.first], np.zeros(3 * len(cones))]
        self.data = self.P.values(problem.Q), c, self.A.values(self.rows), sides

    def solve(self) -> None:
        P, q, A, b = self.data
        self.qp.update(P=P, q=q, A=A, b=b)
        self.found = self.qp.solve()

    def point(self) -> Point:
        y, rows = np.array(self.found.z), self.equalities
        return Point(np.array(self.found.x), y[:rows], self.rows[rows:].T @ y[rows:])


class QOCO:
    pyramid, warm = False, False

    def __init__(self, examples: Problem, tolerance: float, warm: bool) -> None:
        self.first = limited(examples[0])
        self.P, self.A = Sparse(np.triu(examples.Q)), Sparse(examples.A)
        self.G = Sparse(np.stack([self.stacked(examples[k]) for k in range(len(examples.c))]))
        self.load(examples[0])
        _, c, _, b, _, h = self.data
        self.qp, count = qoco.QOCO(), len(examples.cones)
        self.qp.setup(
            len(c), len(h), len(b), self.P.matrix, c, self.A.matrix, b, self.G.matrix, h, 2 * len(self.first), count,
            np.full(count, 3), abstol=tolerance, reltol=tolerance, verbose=0,
        )  # fmt: skip

    def stacked(self, problem: Problem) -> Array:
        one = np.eye(len(problem.c))[self.first]
        return np.vstack([one, -one, circles(problem)])

    def load(self, problem: Problem) -> None:
        Q, c, A, b, cones, _, lower, upper = problem
        self.rows = self.stacked(problem)
        h = np.r_[upper[self.first], -lower[self.first], np.zeros(3 * len(cones))]
        self.data = self.P.values(Q), c, self.A.values(A), b, self.G.values(self.rows), h

    def solve(self) -> None:
        P, c, A, b, G, h = self.data
        self.qp.update_vector_data(c, b, h)
        self.qp.update_matrix_data(P, A, G)
        self.found = self.qp.solve()

    def point(self) -> Point:
        return Point(np.array(self.found.x), np.array(self.found.y), self.rows.T @ np.array(self.found.z))


PEERS: dict[str, Any] = {
    "DAQP": DAQP, "ProxQP": ProxQP, "PIQP": PIQP, "OSQP": OSQP, "Clarabel": Clarabel, "QOCO": QOCO,
}  # fmt: skip
OURS: dict[str, Any] = {"fccqp": Ours, "fccqp admm": OursADMM}
