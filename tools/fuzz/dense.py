"""Constrained dynamics of one sample by definition: rows from the oracle's Jacobians, accelerations from one SVD.

    minimise |a - free|_M  over those a that miss  J a = goal  by as little as can be, each row weighted by 1 / mu

All in the robot's own units, in which entries of M and J are about one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cholesky, expm, solve_triangular

import saltus as sl
from saltus.arrays import Array
from tests import oracles
from tools.fuzz.robots import Units

RANK = 1e-9
"""Singular values below so much of the largest count as zero; those of doubled rows are so but for rounding."""

LEAST = 1e-3
"""The least entry of a Jacobian, in the robot's units, that is there on purpose."""


def log6(X: Array) -> Array:
    """The motion of one second that leads to this placement: exp([[skew(w), 1], [0, 0]]) = [[R, V], [0, 1]], p = V u."""
    turn = oracles.Rotation.from_matrix(X[:3, :3]).as_rotvec()
    V = expm(np.block([[oracles.skew(turn), np.eye(3)], [np.zeros((3, 6))]]))[:3, 3:]
    return np.concatenate([np.linalg.solve(V, X[:3, 3]), turn])


def frame_rows(u: Units, constraint: sl.Constraint, kinematics: Any, v: Array) -> tuple[Array, ...]:
    """J (dim, nv), its drift dJ v, relative velocity and error of placement, all (dim,)."""
    X, J, dJ, velocity = kinematics

    def own(joint: int, offset: Array) -> tuple[Array, Array, Array, Array]:
        """Placement, Jacobian, velocity, and acceleration for a = 0, in the frame's own axes."""
        place = X[joint] @ offset
        back = oracles.Ad(oracles.inverse(place))
        return place, back @ J[joint], back @ velocity[joint], back @ (dJ[joint] @ v)

    A, Ja, va, aa = own(constraint.joint_a, constraint.placement_a)
    B, Jb, vb, ab = own(constraint.joint_b, constraint.placement_b)
    AB = oracles.inverse(A) @ B
    if constraint.point:
        R = AB[:3, :3]
        classical = [a[:3] + np.cross(w[3:], w[:3]) for a, w in ((aa, va), (ab, vb))]
        rows = (Ja[:3] - R @ Jb[:3], classical[0] - R @ classical[1], va[:3] - R @ vb[:3], -AB[:3, 3])
    else:
        Z = oracles.Ad(AB)
        drift = aa - Z @ ab + oracles.ad(va) @ (Z @ vb)
        rows = (Ja - Z @ Jb, drift, va - Z @ vb, -log6(AB) if constraint.kp else np.zeros(6))
    chosen = list(constraint.rows)
    return tuple(x[chosen] for x in rows)


def row_units(u: Units, constraints: Sequence[sl.Constraint]) -> Array:
    """(nm,): of velocities and accelerations along the rows. A user's rows have none."""
    return np.concatenate([np.ones(c.dim) if c.dofs else u.motion[list(c.rows)] for c in constraints])


def summed_inertia(u: Units, kinematics: Any) -> Array:
    """(nv, nv): how large the terms are that entries of M are the sum of where bodies are seen from the origin of the first
    one, as by methods that form M. A small body far away has an inertia there that is mostly its distance, squared."""
    X, J, _, _ = kinematics
    to_first = oracles.shift(-X[min(1, len(X) - 1)][:3, 3])
    total = np.zeros((u.model.nv, u.model.nv))
    for i, joint in enumerate(u.model.joints[1:], start=1):
        back = oracles.Ad(oracles.inverse(to_first @ X[i]))
        motions = np.abs(oracles.Ad(to_first) @ J[i])
        total += motions.T @ np.abs(back.T @ oracles.spatial_inertia(joint) @ back) @ motions
    return total


@dataclass(frozen=True)
class Sample:
    """All that a call of `solve` is given for one robot."""

    q: Array
    v: Array
    tau: Array
    active: Array
    target: Array
    rows: Array
    external: Array


@dataclass(frozen=True)
class Problem:
    """M a = rest + J^T f,  J a = goal, in the robot's units; `scale` are the roots of the rows' weights."""

    M: Array
    rest: Array
    J: Array
    goal: Array
    scale: Array
    speed: Array  # J v, without feedback
    summed: Array  # summed_inertia

    @classmethod
    def of(cls, u: Units, constraints: Sequence[sl.Constraint], mu: Array, s: Sample) -> Problem:
        model, kinematics = u.model, oracles._jacobians(u.model, s.q, s.v)
        J, goal, speeds, start, given = [], [], [], 0, 0
        for c, constraint in enumerate(constraints):
            asked, on = s.target[start : start + constraint.dim], s.active[c]
            start += constraint.dim
            if constraint.dofs:
                J.append(on * s.rows[given : given + constraint.dim])
                goal.append(on * asked)
                speeds.append(J[-1] @ s.v)
                given += constraint.dim
                continue
            Jc, drift, speed, error = frame_rows(u, constraint, kinematics, s.v)
            J.append(on * Jc)
            goal.append(on * (asked - drift - constraint.kd * speed - constraint.kp * error))
            speeds.append(on * speed)
        unit = row_units(u, constraints)
        rest = s.tau - oracles.inverse_dynamics(model, s.q, s.v, np.zeros(model.nv), s.external)
        return cls(
            oracles.mass_matrix(model, s.q) / u.M, rest / u.tau, np.concatenate(J) * u.v / unit[:, None],
            np.concatenate(goal) / unit, unit / np.sqrt(mu), np.concatenate(speeds) / unit,
            summed_inertia(u, kinematics) / u.M,
        )  # fmt: skip

    @cached_property
    def _parts(self) -> tuple[Array, Array, tuple[Array, Array, Array]]:
        L = cholesky(self.M, lower=True)
        A = solve_triangular(L, (self.J * self.scale[:, None]).T, lower=True)
        return L, solve_triangular(L, self.rest, lower=True), np.linalg.svd(A, full_matrices=False)

    @cached_property
    def lost(self) -> float:
        """How many digits the factors of M cost, here and in methods that factor it: of its condition, what no choice of
        units takes away."""
        unit = 1.0 / np.sqrt(np.diag(self.M))
        return float(np.finfo("f8").eps * np.linalg.cond(unit[:, None] * self.M * unit))

    @cached_property
    def singular(self) -> Array:
        """Singular values of the weighted rows, relative to the largest, or to that of a row that hardly moves: where
        nothing moves, all are rounding."""
        L, _, (_, values, _) = self._parts
        return values / max(values.max(initial=0.0), LEAST * self.scale.max(initial=1e-300) / np.linalg.norm(L, 2))

    @cached_property
    def clear(self) -> bool:
        """Whether the rank is plain to see: all singular values either sizeable or nothing but rounding."""
        return not ((self.singular > 1e-12) & (self.singular < 1e-5)).any()

    @cached_property
    def free(self) -> Array:
        L, y, _ = self._parts
        return solve_triangular(L, y, lower=True, trans=1)

    def balanced(self, a: Array) -> float:
        """How large the accelerations are that the terms of M a give, each by itself: what their rounding here, where M is
        factored, is relative to. Those of bodies far from a light base balance each other."""
        return float((np.abs(np.linalg.inv(self.M)) @ (np.abs(self.M) @ np.abs(a))).max(initial=0.0))

    @cached_property
    def solution(self) -> tuple[Array, Array]:
        """Accelerations and forces, these of least norm, weighted by mu."""
        return self.after(np.inf, 0.0)

    def after(self, iterations: float, mu: float) -> tuple[Array, Array]:
        """The same after so many proximal iterations, from no forces on: each leaves mu / (mu + s^2) of what was missed
        along a singular value s. `mu` in the robot's units."""
        L, y, (U, values, Vt) = self._parts
        regular = self.singular > RANK
        kept = np.where(regular, values, 1.0)
        inverse, gone = regular / kept, 1.0 - (mu / (mu + kept**2)) ** iterations
        along = gone * (inverse * (Vt @ (self.scale * self.goal)) - regular * (U.T @ y))
        a = solve_triangular(L, y + U @ along, lower=True, trans=1)
        return a, self.scale * (Vt.T @ (inverse * along))

    def left(self, residual: Array) -> tuple[float, float]:
        """How much accelerations and forces change if so much (nm,) is left of the constraints."""
        L, _, (U, values, Vt) = self._parts
        inverse = np.where(self.singular > RANK, 1.0 / np.where(self.singular > RANK, values, 1.0), 0.0)
        along = inverse[:, None] * Vt * self.scale
        motion = np.abs(solve_triangular(L, U @ along, lower=True, trans=1)) @ residual
        forces = np.abs(self.scale[:, None] * (Vt.T @ (inverse[:, None] * along))) @ residual
        return float(motion.max(initial=0.0)), float(forces.max(initial=0.0))

    @cached_property
    def miss(self) -> float:
        """By how much constraints are missed at least, relative to what they are made of."""
        a = self.solution[0]
        along = (np.abs(self.J) @ (np.abs(a) + np.abs(self.free))).max(initial=0.0)
        size = np.abs(self.goal).max(initial=0.0) + max(along, LEAST * np.abs(self.free).max())
        return float(np.abs(self.J @ a - self.goal).max(initial=0.0) / size) if size else 0.0

    @property
    def size(self) -> float:
        """Of accelerations."""
        return float(max(np.abs(self.solution[0]).max(), np.abs(self.free).max()))

    @property
    def unique(self) -> bool:
        """Whether forces are: no row of an active constraint depends on others."""
        return bool(self.clear and (self.singular[-1:] > RANK).all() and self.J.shape[0] <= self.J.shape[1])

    def felt(self, forces: Array) -> float:
        """How large the accelerations are that these forces give, each by itself: what their rounding is relative to."""
        return float((np.abs(np.linalg.solve(self.M, self.J.T)) @ np.abs(forces)).max(initial=0.0))

    def carried(self, formed: bool) -> float:
        """How large the forces are that the terms of the equations of motion ask for, each by itself: what the rounding of
        these is relative to. `formed`: by methods that form M, each term of its entries by itself."""
        L, _, (U, values, Vt) = self._parts
        inverse = np.where(self.singular > RANK, 1.0 / np.where(self.singular > RANK, values, 1.0), 0.0)
        weights = self.scale[:, None] * (Vt.T * inverse) @ solve_triangular(L, U, lower=True, trans=1).T
        M = self.summed if formed else np.abs(self.M)
        return float((np.abs(weights) @ (M @ np.abs(self.solution[0]))).max(initial=0.0))

    def pushed(self, forces: Array) -> Array:
        """The accelerations that these forces give by the equations of motion."""
        L = self._parts[0]
        change = solve_triangular(L, self.J.T @ forces, lower=True)
        return self.free + solve_triangular(L, change, lower=True, trans=1)


def shaken(rng: np.random.Generator, u: Units, s: Sample, by: float) -> tuple[Units, Sample]:
    """The same robot and sample, every number changed by about so much of itself, as rounding might."""

    def near(x: Array, unit: Any = 0.0) -> Array:
        return x + by * rng.uniform(-1.0, 1.0, np.shape(x)) * (np.abs(x) + unit)

    joints = []
    for joint in u.model.joints:
        k = 1.0 + by * rng.uniform(-1.0, 1.0)
        joints.append(replace(joint, mass=joint.mass * k, inertia=joint.inertia * k, com=near(joint.com)))
    model = u.model.replace(joints=tuple(joints))
    return Units(model, u.mass, u.length), replace(
        s, q=near(s.q, u.q), v=near(s.v), tau=near(s.tau), external=near(s.external), rows=near(s.rows)
    )


def sensitivity(rng: np.random.Generator, u: Units, constraints: Sequence[sl.Constraint], mu: Array, s: Sample,
                epsilon: float) -> tuple[float, float]:  # fmt: skip
    """By how much accelerations and forces change if everything is rounded to so many digits: conditioning, measured."""
    by = max(epsilon, 1e-9)
    right = Problem.of(u, constraints, mu, s)
    changes = []
    for _ in range(3):
        near = Problem.of(*_with(shaken(rng, u, s, by), constraints, mu))
        changes.append([np.abs(x - y).max(initial=0.0) for x, y in zip(near.solution, right.solution, strict=True)])
    a, forces = np.max(changes, axis=0) * epsilon / by
    return float(a), float(forces)


def _with(near: tuple[Units, Sample], constraints: Sequence[sl.Constraint], mu: Array) -> tuple[Any, ...]:
    return near[0], constraints, mu, near[1]
