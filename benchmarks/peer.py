"""Pinocchio's calls for the rows of the table of algorithms: of those that give the same, the cheapest.

Where Pinocchio leaves its result in its data object (`forwardKinematics`), reading it from there is not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.algorithms import Row
from benchmarks.robots import import_pinocchio, pinocchio_model

pin = import_pinocchio()

VERSION: str = pin.__version__


def factor_and_solve(model: Any, data: Any, M: Any, x: Any) -> Any:  # M is in the data already
    pin.cholesky.decompose(model, data)
    return pin.cholesky.solve(model, data, x)


def frame_placement(model: Any, data: Any, q: Any, frame: int) -> Any:
    pin.forwardKinematics(model, data, q)
    return pin.updateFramePlacement(model, data, frame)


def frame_velocity(model: Any, data: Any, q: Any, v: Any, frame: int) -> Any:
    pin.forwardKinematics(model, data, q, v)
    return pin.getFrameVelocity(model, data, frame, pin.LOCAL)


def frame_acceleration(model: Any, data: Any, q: Any, v: Any, a: Any, frame: int) -> Any:
    pin.forwardKinematics(model, data, q, v, a)
    return pin.getFrameAcceleration(model, data, frame, pin.LOCAL)


def frame_jacobian_dot(model: Any, data: Any, q: Any, v: Any, frame: int) -> Any:
    pin.computeJointJacobiansTimeVariation(model, data, q, v)
    J = pin.getFrameJacobian(model, data, frame, pin.LOCAL)
    return J, pin.getFrameJacobianTimeVariation(model, data, frame, pin.LOCAL)


def joint_jacobian_dot(model: Any, data: Any, q: Any, v: Any, joint: int) -> Any:
    pin.computeJointJacobiansTimeVariation(model, data, q, v)
    J = pin.getJointJacobian(model, data, joint, pin.LOCAL)
    return J, pin.getJointJacobianTimeVariation(model, data, joint, pin.LOCAL)


WITH_DATA: dict[str, Callable[..., Any]] = {
    "aba": pin.aba,
    "rnea": pin.rnea,
    "crba": pin.crba,
    "centroidal_momentum_matrix": pin.computeCentroidalMap,
    "nonlinear_effects": pin.nonLinearEffects,
    "gravity": pin.computeGeneralizedGravity,
    "minverse": pin.computeMinverse,
    "ltl": factor_and_solve,
    "joint_placements": pin.forwardKinematics,
    "joint_velocities": pin.forwardKinematics,
    "joint_accelerations": pin.forwardKinematics,
    "forward_kinematics": pin.forwardKinematics,
    "frame_placements": pin.framesForwardKinematics,
    "frame_placement": frame_placement,
    "frame_velocity": frame_velocity,
    "frame_acceleration": frame_acceleration,
    "frame_jacobian": pin.computeFrameJacobian,
    "frame_jacobian_dot": frame_jacobian_dot,
    "joint_jacobian": pin.computeJointJacobian,
    "joint_jacobian_dot": joint_jacobian_dot,
    "center_of_mass": pin.centerOfMass,
    "center_of_mass_velocity": pin.centerOfMass,
    "center_of_mass_acceleration": pin.centerOfMass,
    "center_of_mass_jacobian": pin.jacobianCenterOfMass,
    "centroidal_momentum": pin.computeCentroidalMomentum,
    "centroidal_momentum_rate": pin.computeCentroidalMomentumTimeVariation,
    "centroidal_momentum_drift": pin.computeCentroidalMomentumTimeVariation,  # much cheaper than dccrba
    "kinetic_energy": pin.computeKineticEnergy,
    "potential_energy": pin.computePotentialEnergy,
}

WITHOUT_DATA: dict[str, Callable[..., Any]] = {
    "integrate": pin.integrate,
    "difference": pin.difference,
    "interpolate": pin.interpolate,
    "distance": pin.distance,
    "integrate_jacobians": pin.dIntegrate,
    "difference_jacobians": pin.dDifference,
}

EXTRA: dict[str, Callable[[Any], Any]] = {
    "center_of_mass": lambda model: False,  # no centres of mass of all subtrees
    "center_of_mass_velocity": lambda model: False,
    "center_of_mass_acceleration": lambda model: False,
    "center_of_mass_jacobian": lambda model: False,
    "centroidal_momentum_drift": lambda model: np.zeros(model.nv),  # accelerations
}
"""A last argument."""


class Peer:
    """One robot in Pinocchio."""

    def __init__(self, robot: str) -> None:
        self.model = pinocchio_model(robot)
        self.data = self.model.createData()

    def call(self, name: str, row: Row, inputs: dict[str, Any]) -> Callable[[], Any]:
        """The call for a row of the table, ready to be made."""
        given = row.choose(inputs)
        if name in WITHOUT_DATA:
            return partial(WITHOUT_DATA[name], self.model, *given)
        if "M" in inputs:
            self.data.M = inputs["M"]
        extra = [EXTRA[name](self.model)] if name in EXTRA else []
        return partial(WITH_DATA[name], self.model, self.data, *given, *extra)


def as_arrays(result: Any) -> list[Any]:
    """What a call returned, as arrays; nothing if it left its result in the data object."""
    if isinstance(result, tuple):
        return [array for each in result for array in as_arrays(each)]
    if isinstance(result, pin.SE3):
        return [result.homogeneous]
    if isinstance(result, (pin.Motion, pin.Force)):
        return [result.vector]
    return [] if result is None else [np.asarray(result)]
