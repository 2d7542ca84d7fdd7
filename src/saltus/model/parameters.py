"""Inertial parameters, ten numbers a body: those of one robot, and batches of robots that differ in them.

| code | what | frame |
|---|---|---|
| `inertial_parameters` | m, m c, and of the inertia about the origin xx, xy, yy, xz, yz, zz: Pinocchio's order | joint |
| `inertias_for` | the same ten as a `Rigid`: the moments as xx, xy, xz, yy, yz, zz | canonical (tree.py) |
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from saltus.arrays import on_gpu, real_numbers
from saltus.model.checks import Array, ModelError
from saltus.model.model import Model
from saltus.model.tree import canonical_rotation

PARAMETERS = 10

PLACES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
"""Of the moments in Pinocchio's order; in that of kernels they are those of `np.triu_indices`."""

SLACK = 1e-9
"""By how much of its size a distribution of mass may be negative, for rounding's sake."""


def inertial_parameters(model: Model) -> Array:
    """(njoints - 1, 10) of the body that each joint moves, in the joint's frame: mass [kg], mass times centre of mass
    [kg m], and of the inertia about the joint's origin xx, xy, yy, xz, yz, zz [kg m^2]. Of a batch of robots
    (`vary_inertia`) all of them, (..., njoints - 1, 10).

    >>> import saltus as sl
    >>> sl.inertial_parameters(sl.load_robot("double_pendulum"))[:, 0]
    array([1.2, 0.6])
    """
    if not isinstance(model, Model):
        raise TypeError(f"inertial_parameters: the model is a {type(model).__name__}, expected a saltus.Model")
    return model.parameters if isinstance(model, VariedModel) else of_joints(model)


def of_joints(model: Model) -> Array:
    found = np.zeros((model.njoints - 1, PARAMETERS))
    for row, joint in zip(found, model.joints[1:], strict=True):
        c = joint.com
        J = joint.inertia + joint.mass * (c @ c * np.eye(3) - np.outer(c, c))
        row[:] = joint.mass, *(joint.mass * c), *(J[place] for place in PLACES)
    return found


def vary_inertia(model: Model, parameters: ArrayLike) -> VariedModel:
    """A batch of robots that differ in their inertial parameters alone, in the place of a model.

    parameters: (..., njoints - 1, 10), as `inertial_parameters` gives them. Leading axes broadcast with those of all inputs:
        sample k of a batch is computed with the parameters of robot k.

    Dynamics, constrained dynamics, rollouts and analytical derivatives take it, on processors and GPUs; `jvp`, `jacobian` by
    dual numbers or differences, `OperationalSpaceControl` and functions of PyTorch and JAX do not. What is not computed by
    samples is the model's: `total_mass`, armature, the default `mu`.

    >>> import numpy as np, saltus as sl
    >>> robot = sl.load_robot("quadruped")
    >>> loads = np.linspace(0.5, 2.0, 1000)[:, None, None]
    >>> robots = sl.vary_inertia(robot, loads * sl.inertial_parameters(robot))
    >>> robots
    Model('quadruped', nq=19, nv=18, njoints=14, nframes=35, (1000,) robots)
    >>> still = np.zeros(robot.nv)
    >>> sl.rnea(robots, robot.neutral(), still, still)[[0, -1], 2].round(1)
    array([147.1, 588.6])
    """
    if not isinstance(model, Model):
        raise TypeError(f"vary_inertia: the model is a {type(model).__name__}, expected a saltus.Model")
    if model.coupling is not None:
        raise ModelError(f"vary_inertia: model {model.name!r} has mimic joints, expected one without")
    given = {each.name: getattr(model, each.name) for each in fields(Model)}
    return VariedModel(**given, parameters=parameters)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False, repr=False)
class VariedModel(Model):
    """See `vary_inertia`."""

    varied: ClassVar[bool] = True

    parameters: Array = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        given = np.array(real_numbers(self.parameters, "vary_inertia: parameters"), np.float64)
        wanted = (self.njoints - 1, PARAMETERS)
        if given.shape[-2:] != wanted:
            raise ModelError(
                f"vary_inertia: parameters has shape {given.shape}, expected (..., {wanted[0]}, {wanted[1]})"
            )
        check_physical(self, given)
        given.setflags(write=False)
        self._set("parameters", given)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.leading} robots)"

    def __reduce__(self) -> Any:
        return vary_inertia, (self.nominal, self.parameters)

    def replace(self, **changes: Any) -> Model:
        """The same robots with other values for some of their fields; their joints are those of the parameters."""
        if "joints" in changes:
            raise TypeError("robots that `vary_inertia` has made differ in their joints: replace those of `nominal`")
        return super().replace(**changes)

    @cached_property
    def weightless(self) -> tuple[int, ...]:
        """As of a model; a body that has no mass in one of the robots counts as one without."""
        one = self.parameters.reshape(-1, *self.parameters.shape[-2:])[:1].copy()
        if not one.size:
            return self.nominal.weightless
        one[0][(self.parameters == 0.0).all(axis=-1).any(axis=tuple(range(len(self.leading))))] = 0.0
        return with_parameters(self.nominal, one[0]).weightless

    @cached_property
    def nominal(self) -> Model:
        """The model that they differ from."""
        return Model(*(getattr(self, each.name) for each in fields(Model)))

    @property
    def leading(self) -> tuple[int, ...]:
        """The shape of the batch of robots."""
        return self.parameters.shape[:-2]

    @cached_property
    def _inertias(self) -> dict[Any, Any]:
        """Of each type of number, and on each GPU."""
        return {np.dtype(np.float64): rigid(self, self.parameters)}

    def inertias_for(self, inputs: tuple[Any, ...]) -> Any:
        """(..., njoints, 10), as kernels take them, of the type of these inputs, and where they are."""
        from saltus.kernel.gpu_arrays import device_of, to_device

        types = {str(getattr(x, "dtype", "float64")).removeprefix("torch.") for x in inputs} - {"int32", "int64"}
        dtype = np.dtype(np.float32 if types == {"float32"} else np.float64)
        kept, there = self._inertias, next(filter(on_gpu, inputs), None)
        if dtype not in kept:
            with np.errstate(over="ignore"):
                kept[dtype] = kept[np.dtype(np.float64)].astype(dtype)
            if not np.isfinite(kept[dtype]).all():
                raise ModelError("vary_inertia: parameters are too large for single precision, expected at most 3e38")
        if there is None:
            return kept[dtype]
        key = (dtype, device_of(there))
        if key not in kept:
            kept[key] = to_device(kept[dtype], there, turned=len(self.leading) == 1)
        return kept[key]


def rigid(model: Model, parameters: Array) -> Array:
    """(..., njoints, 10), in the order and the frames that kernels have; zeros for the universe."""
    found = np.zeros((*parameters.shape[:-2], model.njoints, PARAMETERS))
    for i, joint in enumerate(model.joints[1:], 1):
        own, R = parameters[..., i - 1, :], canonical_rotation(joint.kind, joint.axis)
        found[..., i, 0], found[..., i, 1:4] = own[..., 0], own[..., 1:4] @ R
        found[..., i, 4:] = (R.T @ moments(own) @ R)[(..., *np.triu_indices(3))]
    return found


def with_parameters(model: Model, parameters: Array) -> Model:
    """A model whose joints have these parameters (njoints - 1, 10)."""
    joints = [model.joints[0]]
    for joint, own in zip(model.joints[1:], parameters, strict=True):
        m, c = own[0], own[1:4] / (own[0] or 1.0)
        about = moments(own) - m * (c @ c * np.eye(3) - np.outer(c, c))
        joints.append(replace(joint, mass=m, com=c, inertia=0.5 * (about + about.T)))
    return model.replace(joints=tuple(joints))


def over_time(model: Model) -> Model:
    """For arrays with an axis of time behind those of the robots."""
    return vary_inertia(model.nominal, model.parameters[..., None, :, :]) if isinstance(model, VariedModel) else model


def refuse_several(model: Any, name: str) -> None:
    """Complains of robots where one is expected; `model` may be `ConstrainedDynamics`."""
    if isinstance(getattr(model, "model", model), VariedModel):
        raise ModelError(f"{name}: is for one robot, expected a model that `vary_inertia` has not varied")


def moments(parameters: Array) -> Array:
    """(..., 3, 3) of (..., 10)"""
    J = np.empty((*parameters.shape[:-1], 3, 3))
    for k, (i, j) in enumerate(PLACES, 4):
        J[..., i, j] = J[..., j, i] = parameters[..., k]
    return J


def is_unreal(parameters: Array) -> Any:
    """Whether there is negative mass somewhere: (...) of (..., 10)."""
    J, spread = moments(parameters), np.empty((*parameters.shape[:-1], 4, 4))
    spread[..., :3, :3] = 0.5 * np.trace(J, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - J
    spread[..., 3, :3] = spread[..., :3, 3] = parameters[..., 1:4]
    spread[..., 3, 3] = parameters[..., 0]
    size = np.abs(spread).max(axis=(-2, -1), initial=0.0)
    return np.linalg.eigvalsh(spread)[..., 0] < -SLACK * size


def check_physical(model: Model, parameters: Array) -> None:
    """Complains of a body whose mass is distributed as no body's can be: of negative mass somewhere."""
    if not np.isfinite(parameters).all():
        *sample, i, k = np.argwhere(~np.isfinite(parameters))[0].tolist()
        raise ModelError(
            f"vary_inertia: parameters[{', '.join(map(str, (*sample, i, k)))}] is {parameters[(*sample, i, k)]}, expected a "
            "finite number"
        )
    wrong = is_unreal(parameters) & ~is_unreal(of_joints(model))  # files have such bodies
    if wrong.any():
        *sample, i = np.argwhere(wrong)[0].tolist()
        of = f" of robot {tuple(sample) if len(sample) > 1 else sample[0]}" if sample else ""
        raise ModelError(
            f"vary_inertia: the parameters of joint {model.joints[i + 1].name!r}{of} are of no real body: "
            f"{parameters[(*sample, i)].tolist()}; expected a mass, centre of mass and inertia that some distribution of "
            "mass has"
        )
