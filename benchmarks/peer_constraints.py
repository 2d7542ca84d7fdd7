"""Pinocchio's constrained dynamics, Delassus matrix and its inverse, on the constraints of a case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.robots import import_pinocchio

pin = import_pinocchio()

VERSION: str = pin.__version__


class ConstrainedPeer:
    """A model of Pinocchio under constraints given by ours: points and welds, in local axes."""

    def __init__(self, model: Any, constraints: Sequence[sl.Constraint]) -> None:
        self.model, self.data = model, model.createData()
        self.models, self.datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for constraint in constraints:
            self.models.append(rigid(model, constraint))
            self.datas.append(self.models[-1].createData())
        pin.initConstraintDynamics(model, self.data, self.models, self.datas)
        self.factors = pin.ContactCholeskyDecomposition(model, self.data, self.models, self.datas)

    def settings(self, tolerance: float, mu: float, iterations: int) -> Any:
        return pin.ProximalSettings(tolerance, mu, iterations)

    def until(self, residual: float, mu: float, iterations: int) -> Any:
        """Settings that end the iteration where so much is left of the constraints.

        That is mu times the last change of forces, which Pinocchio's relative accuracy is compared with; what `solve`
        compares the absolute one with (as of 4.1) leaves out the accelerations of the free robot, and is never met.
        """
        return pin.ProximalSettings(residual, residual / mu, mu, iterations)

    def solve(self, q: Any, v: Any, tau: Any, settings: Any) -> Any:
        """Accelerations; forces are then in `forces`."""
        return pin.constraintDynamics(self.model, self.data, q, v, tau, self.models, self.datas, settings)

    @property
    def forces(self) -> Any:
        """(nm,) of the last solve, as ours: on the first body of each constraint, along its rows."""
        return self.data.lambda_c.copy()

    def iterations_all(self, call: Any, q: Any, v: Any, tau: Any, settings: Any) -> tuple[Any, Any]:
        """Accelerations (B, nv) by `solve` or `lcaba`, and how many iterations each sample took (B,)."""
        found = [(call(*each, settings).copy(), settings.iter) for each in zip(q, v, tau, strict=True)]
        a, iterations = zip(*found, strict=True)
        return np.array(a), np.array(iterations)

    def solve_all(self, q: Any, v: Any, tau: Any, settings: Any) -> tuple[Any, Any]:
        """Accelerations (B, nv) and forces (B, nm) of many samples, one after the other."""
        a, forces = [], []
        for each in zip(q, v, tau, strict=True):
            a.append(self.solve(*each, settings).copy())
            forces.append(self.forces)
        return np.array(a), np.array(forces)

    def order_for_lcaba(self) -> None:
        """Once, before `lcaba`."""
        pin.computeJointMinimalOrdering(self.model, self.data, self.models)

    def lcaba(self, q: Any, v: Any, tau: Any, settings: Any) -> Any:
        return pin.lcaba(self.model, self.data, q, v, tau, self.models, self.datas, settings)

    def delassus(self, q: Any, mu: float = 0.0) -> Any:
        return pin.computeDelassusMatrix(self.model, self.data, q, self.models, self.datas, mu)

    def damped_inverse(self, q: Any, mu: float) -> Any:
        return pin.computeDampedDelassusMatrixInverse(self.model, self.data, q, self.models, self.datas, mu)

    def by_cholesky(self, q: Any, mu: float, inverse: bool) -> Any:
        """The Delassus matrix, or the inverse of the damped one, from the factors of the KKT matrix."""
        pin.crba(self.model, self.data, q, pin.Convention.WORLD)
        self.factors.compute(self.model, self.data, self.models, self.datas, mu)
        factors = self.factors
        return (
            factors.getOperationalSpaceInertiaMatrix() if inverse else factors.getInverseOperationalSpaceInertiaMatrix()
        )


def rigid(model: Any, constraint: sl.Constraint) -> Any:
    """One of our constraints as Pinocchio has it."""
    if not constraint.point and constraint.dim != 6:
        raise ValueError(f"constraint {constraint.name!r} has {constraint.dim} rows; Pinocchio knows points and welds")
    kind = pin.ContactType.CONTACT_3D if constraint.point else pin.ContactType.CONTACT_6D
    A, B = (pin.SE3(np.array(X)) for X in (constraint.placement_a, constraint.placement_b))
    return pin.RigidConstraintModel(kind, model, constraint.joint_a, A, constraint.joint_b, B, pin.LOCAL)
