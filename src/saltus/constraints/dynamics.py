"""Constrained dynamics of a model: constraints, a method, and what is computed with them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, OnInvalid, on_gpu
from saltus.constraints.constrained_aba import _constrained_aba
from saltus.constraints.constraint import Constraint
from saltus.constraints.coupled import _coupled_impact, _coupled_prox_ltl, _coupled_system
from saltus.constraints.impact import Impact, _impact
from saltus.constraints.inverse_dynamics import InverseDynamics, _inverse_dynamics
from saltus.constraints.kkt import solve_kkt
from saltus.constraints.kkt_factors import KKTFactors, factor_kkt
from saltus.constraints.loop_aba import _loop_aba
from saltus.constraints.nodes import Plan
from saltus.constraints.operational_space import OSIM_METHODS, RESPONSES, FactoredOSIM
from saltus.constraints.osim_base import _osim_base
from saltus.constraints.precision import in_double, is_single
from saltus.constraints.prox_ltl import _prox_ltl
from saltus.constraints.prox_ltls import _prox_ltls
from saltus.constraints.prox_pv import _prox_pv
from saltus.constraints.report import Reported
from saltus.constraints.response import _response
from saltus.constraints.scale import amplification, typical_delassus
from saltus.constraints.system import _constrained_system, _constraint_accelerations
from saltus.constraints.tables import ConstrainedModel
from saltus.dynamics.rnea import gravity
from saltus.kernel.algorithm import decline
from saltus.kernel.gpu_arrays import device_of, to_device
from saltus.kernel.marking import call_marking, check_choice
from saltus.model.checks import ModelError
from saltus.model.joints import JointKind
from saltus.model.model import Model

if TYPE_CHECKING:
    from saltus.derivatives.constrained import ConstrainedDerivatives, ConstraintAccelerationDerivatives
    from saltus.derivatives.impact import ImpactDerivatives
    from saltus.derivatives.parameters import ParameterDerivatives

METHODS: dict[str, Callable[[ConstrainedModel, tuple[Any, ...]], tuple[Array, Array, Array]]] = {
    "constrained_aba": _constrained_aba.call,
    "loop_aba": _loop_aba.call,
    "prox_ltl": _prox_ltl.call,
    "prox_ltls": _prox_ltls.call,
    "prox_pv": _prox_pv.call,
    "kkt": solve_kkt,
}
"""Each takes (q, v, tau, active, target, start), those in `TAKE_ROWS` the user's rows as well, and returns accelerations,
forces, and (iterations, residual, change)."""

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)

SOFT = {"soft": "prox_ltls", "pv_soft": "constrained_aba"}
"""The first iteration of another method: constraints as springs of compliance mu, as MuJoCo has them."""

INVERSE_MU = 1e-4
"""Of inverse dynamics, whose matrix has entries of size one: no masses are in it."""

TREES_ONLY = {"constrained_aba", "prox_pv"}
"""Methods for contacts; they know nothing of constraints between two moving bodies."""

TAKE_ROWS = {"prox_ltl", "prox_ltls", "kkt"}
"""Methods that take rows given by users."""

TAKE_COUPLED = {"prox_ltl", "kkt"}
"""Methods for robots with mimic joints."""

RELATIVE_MU = {DOUBLE: 1e-7, SINGLE: 1e-4}
"""The default mu, by a typical entry of the Delassus matrix (scale.py)."""

ABSORBED = {DOUBLE: 0.02, SINGLE: 0.5}
"""So much of the default mu is what `constrained_aba` takes: two iterations then do where it was three, three where four.
It looks at the equations of motion anew in each, which gives back the digits that it costs; methods that factor a matrix
of redundant rows have nothing that gives them back."""

LEAST_RELATIVE_MU, MOST_RELATIVE_MU = {DOUBLE: 1e-10, SINGLE: 1e-5}, 1e3
"""Of a mu that users give: beyond, no status is better than INACCURATE."""

HARDLY_AMPLIFIED, MOST_AMPLIFIED = 100.0, 300.0
"""Above the latter, the rounding of a model's numbers to single precision may spoil accelerations by more than 1e-4
(scale.py). Below the former, bodies that move no constraint need no second look: they are as right as `aba` has them."""

DOUBLE_ONLY = {"prox_ltl", "prox_ltls", "prox_pv", "kkt"}
"""Methods that form a matrix, of inertias or of Delassus, whose condition takes more digits than single precision has: they
compute in double."""

_prox_ltl.take_for_coupled(_coupled_prox_ltl)
_impact.take_for_coupled(_coupled_impact)
_constrained_system.take_for_coupled(_coupled_system)


class _Solved(NamedTuple):
    a: Array  # (..., nv) [rad/s^2, m/s^2]
    forces: Array  # (..., nm) on body a of each constraint, along its rows [N, N m]
    report: Array  # (..., 5) iterations, residual [m/s^2, rad/s^2], its last change, imbalance, status


class Solution(_Solved, Reported):
    """Accelerations and forces, each with the leading shape of the inputs, and how the iteration ended."""

    __slots__ = ()


class ConstrainedDynamics:
    """A model under constraints, solved by the method named."""

    def __init__(
        self,
        model: Model,
        constraints: Sequence[Constraint],
        method: str = "constrained_aba",
        mu: float | None = None,
        tolerance: float = 1e-9,
        most_iterations: int = 50,
    ) -> None:
        """mu: the amount that is added to the Delassus matrix's diagonal [1/kg, 1/(kg m^2)]; smaller converges in fewer
        iterations, larger keeps more digits. By default it follows the number type and the masses at hand: so much of a
        typical entry of the matrix as `RELATIVE_MU` says.
        tolerance: on what is left of the constraints [m/s^2, rad/s^2]; more than rounding allows is not asked.
        """
        if method not in METHODS and method not in SOFT:
            raise ModelError(f"unknown method {method!r}, expected one of {', '.join([*METHODS, *SOFT])}")
        loops = [constraint.name for constraint in constraints if constraint.joint_b > 0]
        solver, iterations = (SOFT[method], 1) if method in SOFT else (method, most_iterations)
        if loops and solver == "constrained_aba":
            solver = "loop_aba"
        if loops and solver in TREES_ONLY:
            rest = ", ".join(set(METHODS) - TREES_ONLY)
            raise ModelError(f"method {method!r} is for contacts; {loops[0]!r} ties two bodies, expected one of {rest}")
        if model.coupling is not None and solver not in TAKE_COUPLED:
            raise ModelError(
                f"method {method!r} knows no mimic joints, which model {model.name!r} has, expected one of "
                f"{', '.join(sorted(TAKE_COUPLED))}"
            )
        given = [constraint.name for constraint in constraints if constraint.dofs]
        if given and solver not in TAKE_ROWS:
            rest = ", ".join(sorted(TAKE_ROWS))
            raise ModelError(f"method {method!r} takes no rows of users, such as {given[0]!r}, expected one of {rest}")
        if not ((mu is None or 0 < mu < np.inf) and 0 <= tolerance < np.inf and whole(most_iterations) > 0):
            raise ModelError(
                f"mu = {mu}, tolerance = {tolerance}, most_iterations = {most_iterations}: expected positive numbers"
            )
        for constraint in constraints:
            constraint.check_model(model)
        self.model, self.constraints, self.method = model, tuple(constraints), method
        self._given_mu, self.tolerance, self.most_iterations = mu, tolerance, most_iterations
        self._typical = typical_delassus(model, self.constraints)
        self._absorbs = mu is None and method == solver == "constrained_aba"
        self.problem = ConstrainedModel(
            model, constraints, self.mu, tolerance, iterations, reliable=self._sensible(DOUBLE), typical=self._typical,
            absorbed=self._absorbed(DOUBLE),
        )  # fmt: skip
        self._problems = {DOUBLE: self.problem}
        self._double_only = solver in DOUBLE_ONLY
        self._run, self._loops = METHODS[solver], loops
        self._plans: dict[Plan, ConstrainedModel] = {}
        self._actuated: dict[bytes | None, ConstrainedModel] = {}
        none = np.zeros(self.problem.nm)
        self._all: tuple[Any, ...] = (np.ones(self.problem.nc), none, none, np.zeros((self.problem.nu, model.nv)))
        self._one: tuple[Any, ...] = self._all if solver in TAKE_ROWS else self._all[:3]
        own = getattr(self._run, "__self__", None)
        self._algorithm = None if self.problem.nu else own
        self._left: tuple[Any, ...] = (
            () if model.specialised and own and own.knows_defaults(self.problem) else self._one
        )
        """What calls of the method give beside q, v and tau, if users give no more."""
        self._shortest: Callable[..., Any] = decline
        """The builtin for one sample of which no more is said, once there is one; an integer is its answer if it cannot."""
        self._declared = _prox_ltl if solver in TAKE_ROWS else _constrained_aba
        """An algorithm that takes what the method takes: `kkt` is none itself."""
        self._kept: dict[Any, tuple[Any, ...]] = {}
        self._way: Any = None
        """How derivatives along directions are found, once that was looked at (derivatives/constrained_along.py)."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        settings = (self.method, self._given_mu, self.tolerance, self.most_iterations)
        return ConstrainedDynamics, (self.model, self.constraints, *settings)

    @property
    def mu(self) -> float:
        """What is added to the Delassus matrix's diagonal in double precision, but for the constraints' weights."""
        return self.mu_in(DOUBLE)

    def mu_in(self, dtype: Any) -> float:
        """The same in a number type, float64 or float32."""
        return RELATIVE_MU[np.dtype(dtype)] * self._typical if self._given_mu is None else self._given_mu

    def _absorbed(self, dtype: Any) -> float:
        return ABSORBED[np.dtype(dtype)] if self._absorbs else 1.0

    def _sensible(self, dtype: Any) -> bool:
        """Whether mu is neither lost in the rounding of Delassus entries nor so large that nothing would change."""
        return LEAST_RELATIVE_MU[np.dtype(dtype)] < self.mu_in(dtype) / self._typical < MOST_RELATIVE_MU

    def problem_in(self, dtype: Any) -> ConstrainedModel:
        """The tables that kernels take for numbers of a type."""
        if dtype not in self._problems:
            amplified = amplification(self.model)
            self._problems[dtype] = ConstrainedModel(
                self.model, self.constraints, self.mu_in(dtype), self.tolerance, self.problem.most_iterations,
                dtype=dtype, reliable=self._sensible(dtype) and amplified < MOST_AMPLIFIED,
                absorbed=self._absorbed(dtype), thorough=amplified > HARDLY_AMPLIFIED,
            )  # fmt: skip
        return self._problems[dtype]

    def solve(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        active: ArrayLike | None = None,
        target: ArrayLike | None = None,
        start: ArrayLike | None = None,
        external: ArrayLike | None = None,
        rows: ArrayLike | None = None,
        *,
        on_invalid: OnInvalid = "raise",
    ) -> Solution:
        """Accelerations and forces for `q` (..., nq), `v` and `tau` (..., nv).

        active: (..., nc), 1 for constraints that hold and 0 for others; all by default.
        target: (..., nm), accelerations asked of the constraints, zero by default.
        start: (..., nm), forces to start from.
        external: (..., njoints, 6), forces on each joint's body in its own frame, linear first [N, N m], as in `aba`.
        rows: (..., nu, nv), the rows of all `UserRows`, one below the other.
        on_invalid: "raise", or "mark" for NaN and the status INVALID where a sample's inputs are not valid.
        """
        if active is target is start is external is rows is None and on_invalid == "raise":
            answer = self._shortest((q, v, tau, *self._left) if self._left else (q, v, tau), None)
            if answer.__class__ is not int:
                return tuple.__new__(Solution, answer)
        problem, rest = self.problem, self._one
        if not (q.__class__ is np.ndarray and q.ndim == 1 and q.dtype is DOUBLE):
            if self._double_only and all(map(is_single, (q, v, tau))):
                solve = partial(self.solve, on_invalid=on_invalid)
                return in_double(self.model, solve, q, v, tau, active, target, start, external, rows)
            rest = self._defaults(q, v, tau)[: len(self._one)]
            problem = self.problem_in(rest[0].dtype)
        if rows is not None or self.problem.nu:
            rows = self._checked(rows)
        if external is not None:
            carried = gravity(self.model, q, external, on_invalid=on_invalid)
            tau = tau + (gravity(self.model, q, on_invalid=on_invalid) - carried)
        if not (active is target is start is rows is None):
            if active is not None:
                check_active(active)
            given = zip((active, target, start, rows), rest, strict=False)
            rest = tuple(default if value is None else value for value, default in given)
        elif self._left is not self._one and on_invalid == "raise":
            rest = self._left
        inputs = (q, v, tau, *rest)
        if on_invalid == "raise":
            solution = Solution(*self._run(problem, inputs))
            if self._shortest is decline and self._algorithm in self.problem.quick:
                self._shortest = self.problem.quick[self._algorithm][3 + len(self._left)]
            return solution
        check_choice(on_invalid, "solve")
        return Solution(*call_marking(self._declared, problem, inputs, run=self._run))

    def _defaults(self, *arrays: Any) -> tuple[Any, ...]:
        """All constraints active, no targets, no start, no rows: of the type of these arrays, and where they are."""
        q, there = arrays[0], on_gpu(arrays[0])
        dtype = SINGLE if all(map(is_single, arrays)) else DOUBLE
        key = (dtype, device_of(q) if there else q.shape[:-1] if isinstance(q, np.ndarray) else ())
        rest = self._kept.get(key)
        if rest is None:
            rest = tuple(x.astype(dtype) for x in self._all)
            if there:
                rest = tuple(to_device(x, q) for x in rest)
            elif isinstance(q, np.ndarray) and q.ndim == 2:  # the short way wants a leading axis of all inputs
                rest = tuple(np.tile(x, (len(q), *[1] * x.ndim)) for x in rest)
            self._kept = {key: rest}
        return rest

    def derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        active: ArrayLike | None = None,
        target: ArrayLike | None = None,
        start: ArrayLike | None = None,
        external: ArrayLike | None = None,
        rows: ArrayLike | None = None,
        mode: str = "analytical",
        *,
        out: ConstrainedDerivatives | None = None,
        on_invalid: OnInvalid = "raise",
    ) -> ConstrainedDerivatives:
        """How accelerations and forces change with `q` (..., nq), `v` and `tau` (..., nv); arguments as in `solve`.

        mode: "analytical", "ad", "fd" or "fdc" (see `jacobian`); derivatives by gains are always analytical.
        out: an earlier result, whose memory the matrices of an analytical one take.

        The solution comes along. Rows of users count as constant. Redundant constraints are no problem; where they
        contradict each other (`status`), forces grow with every iteration: only `ad` follows it, analytical ones are NaN.

        >>> import numpy as np, saltus as sl
        >>> robot = sl.load_robot("quadruped")
        >>> feet = [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet]
        >>> dynamics, still = sl.ConstrainedDynamics(robot, feet), np.zeros(robot.nv)
        >>> D = dynamics.derivatives(robot.reference_configurations["standing"], still, still)
        >>> D.da_dq.shape, D.df_dtau.shape
        ((18, 18), (12, 18))
        """
        return _differentiation("constrained").differentiate(
            self, q, v, tau, active, target, start, external, rows, mode, out, on_invalid
        )

    def parameter_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        active: ArrayLike | None = None,
        target: ArrayLike | None = None,
    ) -> ParameterDerivatives:
        """How accelerations and forces change with `inertial_parameters(model).ravel()`; arguments as in `solve`.

        >>> import numpy as np, saltus as sl
        >>> robot = sl.load_robot("quadruped")
        >>> dynamics = sl.ConstrainedDynamics(robot, [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet])
        >>> still = np.zeros(robot.nv)
        >>> D = dynamics.parameter_derivatives(robot.reference_configurations["standing"], still, still)
        >>> D.da.shape, D.df.shape
        ((18, 130), (12, 130))
        """
        found: ParameterDerivatives = _differentiation("parameters").differentiate(self, q, v, tau, active, target)
        return found

    def constraint_accelerations(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        active: ArrayLike | None = None,
        rows: ArrayLike | None = None,
        *,
        on_invalid: OnInvalid = "raise",
    ) -> Array:
        """What the constraints compare with their targets (..., nm) [m/s^2, rad/s^2]: accelerations along their rows, with
        Baumgarte's feedback, at `q` (..., nq), `v` and `a` (..., nv). Other arguments as in `solve`.

        >>> import numpy as np, saltus as sl
        >>> robot = sl.load_robot("quadruped")
        >>> dynamics = sl.ConstrainedDynamics(robot, [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet])
        >>> q, v, tau = robot.reference_configurations["standing"], np.ones(robot.nv), np.zeros(robot.nv)
        >>> bool(np.abs(dynamics.constraint_accelerations(q, v, dynamics.solve(q, v, tau).a)).max() < 1e-8)
        True
        """
        held, given = self._held(q, v, active, rows)
        accelerations: Array = _constraint_accelerations.call(self.problem, (q, v, a, held, given), None, on_invalid)
        return accelerations

    def constraint_acceleration_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        active: ArrayLike | None = None,
        rows: ArrayLike | None = None,
        mode: str = "analytical",
        *,
        on_invalid: OnInvalid = "raise",
    ) -> ConstraintAccelerationDerivatives:
        """How `constraint_accelerations` change with `q`, `v` and `a`: three matrices (..., nm, nv).

        mode: "analytical", "ad", "fd" or "fdc" (see `jacobian`).
        """
        return _differentiation("constrained").differentiate_accelerations(
            self, q, v, a, active, rows, mode, on_invalid
        )

    def _held(self, q: Any, v: Any, active: ArrayLike | None, rows: ArrayLike | None) -> tuple[Any, Any]:
        """Activities and the user's rows, as kernels take them."""
        everything, _, _, given = self._defaults(q, v)
        if rows is not None or self.problem.nu:
            given = self._checked(rows)
        if active is not None:
            check_active(active)
        return everything if active is None else active, given

    def impact(
        self,
        q: ArrayLike,
        v: ArrayLike,
        active: ArrayLike | None = None,
        restitution: ArrayLike = 0.0,
        rows: ArrayLike | None = None,
        *,
        on_invalid: OnInvalid = "raise",
    ) -> Impact:
        """Velocities just after the active constraints are met at once, at `q` (..., nq), with velocities `v` (..., nv).

            M (v+ - v-) = J^T impulses,      J v+ = -restitution J v-

        active: (..., nc), as in `solve`: the contacts that strike, and whatever holds already (loops, other feet).
        restitution: one number or (..., nc), from 0 (nothing bounces) to 1 (no energy is lost).
        rows: as in `solve`.

        What holds already has no velocity to give back. The method is that of `prox_ltl`, whatever `solve` uses.

        >>> import numpy as np, saltus as sl
        >>> robot = sl.load_robot("quadruped")
        >>> feet = [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet]
        >>> q, v = robot.reference_configurations["standing"], np.zeros(robot.nv)
        >>> v[2] = -1.0  # it lands
        >>> after = sl.ConstrainedDynamics(robot, feet).impact(q, v)
        >>> speed = sl.frame_velocity(robot, q, after.v, "LF_FOOT")[:3]
        >>> bool(np.abs(speed).max() < 1e-8), bool(after.impulses[2] > 0)
        (True, True)
        """
        if is_single(q) and is_single(v):
            return in_double(self.model, partial(self.impact, on_invalid=on_invalid), q, v, active, restitution, rows)
        inputs = self._impact_inputs(q, v, active, restitution, rows)
        return Impact(*_impact.call(self.problem, (q, v, *inputs), None, on_invalid))

    def _impact_inputs(
        self, q: Any, v: Any, active: ArrayLike | None, restitution: ArrayLike, rows: ArrayLike | None
    ) -> tuple[Any, Any, Any]:
        """Activities, restitutions and the user's rows, as kernels take them."""
        held, given = self._held(q, v, active, rows)
        if not on_gpu(restitution):
            restitution = self._spread(restitution, SINGLE if is_single(q) and is_single(v) else DOUBLE)
            if on_gpu(q):
                restitution = to_device(restitution, q)
        return held, restitution, given

    def impact_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        active: ArrayLike | None = None,
        restitution: ArrayLike = 0.0,
        rows: ArrayLike | None = None,
        mode: str = "analytical",
        *,
        on_invalid: OnInvalid = "raise",
    ) -> ImpactDerivatives:
        """How velocities after an impact, and impulses, change with `q` (..., nq) and with the velocities `v` (..., nv)
        before; arguments as in `impact`, which comes along.

        mode: "analytical", "ad", "fd" or "fdc" (see `jacobian`).

        >>> import numpy as np, saltus as sl
        >>> robot = sl.load_robot("quadruped")
        >>> feet = [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet]
        >>> q, v = robot.reference_configurations["standing"], np.ones(robot.nv)
        >>> D = sl.ConstrainedDynamics(robot, feet).impact_derivatives(q, v)
        >>> bool(np.allclose(D.dv_dv @ v, D.impact.v))  # what comes after is linear in what was before
        True
        """
        return _differentiation("impact").differentiate_impact(self, q, v, active, restitution, rows, mode, on_invalid)

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        active: ArrayLike | None = None,
        actuated: ArrayLike | None = None,
        rows: ArrayLike | None = None,
        *,
        on_invalid: OnInvalid = "raise",
    ) -> InverseDynamics:
        """Torques and forces of the constraints for the accelerations `a` (..., nv), at `q` (..., nq) and `v` (..., nv).

            M a + b = S^T tau + J^T forces

        Forces are the least, weighted as the constraints are, that carry what has no actuator; torques do the rest. Where no
        forces can, the rows without actuator are missed by as little as can be, as `residual` [N, N m] and `status` say.

        active, rows: as in `solve`.
        actuated: (nv,), whether each degree of freedom has an actuator; by default all but those of free flyers.

        >>> import numpy as np, saltus as sl
        >>> robot = sl.load_robot("quadruped")
        >>> feet = [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet]
        >>> dynamics, still = sl.ConstrainedDynamics(robot, feet), np.zeros(robot.nv)
        >>> q = robot.reference_configurations["standing"]
        >>> standing = dynamics.inverse_dynamics(q, still, still)
        >>> bool(np.abs(dynamics.solve(q, still, standing.tau).a).max() < 1e-8)
        True
        """
        if all(map(is_single, (q, v, a))):
            inverse = partial(self.inverse_dynamics, on_invalid=on_invalid)
            return in_double(self.model, inverse, q, v, a, active, actuated, rows)
        inputs = (q, v, a, *self._held(q, v, active, rows))
        return InverseDynamics(*_inverse_dynamics.call(self._driven(actuated), inputs, None, on_invalid))

    def _checked(self, rows: ArrayLike) -> ArrayLike:
        """The user's rows; kernels check the rest of them."""
        users, shape = [c for c in self.constraints if c.dofs], (self.problem.nu, self.model.nv)
        if not users:
            raise ValueError("rows are given, but no constraint takes them, expected one made by UserRows")
        if rows is None:
            names = ", ".join(repr(user.name) for user in users)
            raise ValueError(f"rows is None, expected (..., {shape[0]}, {shape[1]}), for {names}")
        if not on_gpu(rows) and np.shape(rows)[-2:] == shape:
            used, start = np.any(np.reshape(rows, (-1, *shape)), axis=0), 0
            for user in users:
                for k in np.flatnonzero(used[start : start + user.dim].any(0)):
                    if k not in user.dofs:
                        raise ValueError(
                            f"rows are not 0 in column {k}, expected only in the dofs {user.dofs} of {user.name!r}"
                        )
                start += user.dim
        return rows

    def _spread(self, restitution: ArrayLike, dtype: Any) -> Array:
        """A restitution for each constraint."""
        count = self.problem.nc
        if restitution.__class__ is float and 0.0 <= restitution <= 1.0:
            return np.full(count, restitution, dtype)
        restitution = np.asarray(restitution)
        if ((restitution < 0) | (restitution > 1)).any():
            raise ValueError(f"impact: restitution is {restitution}, expected numbers from 0 to 1")
        if restitution.shape[-1:] not in ((), (count,)):
            raise ValueError(f"impact: restitution has shape {restitution.shape}, expected a number or (..., {count})")
        return restitution * np.ones(count, dtype)

    def _driven(self, actuated: ArrayLike | None) -> ConstrainedModel:
        """The problem, with the degrees of freedom that have no actuator marked."""
        nv, key = self.model.nv, None if actuated is None else np.asarray(actuated, bool).tobytes()
        if key not in self._actuated:
            if actuated is None:
                floating = [joint for joint in self.model.joints if joint.kind == JointKind.FREE_FLYER]
                passive = [k for joint in floating for k in range(joint.iv, joint.iv + joint.nv)]
            elif np.shape(actuated) == (nv,):
                passive = np.flatnonzero(~np.asarray(actuated, bool)).tolist()
            else:
                raise ValueError(f"inverse_dynamics: actuated has shape {np.shape(actuated)}, expected ({nv},)")
            self._actuated[key] = ConstrainedModel(
                self.model, self.constraints, INVERSE_MU, self.tolerance, self.most_iterations, passive=passive
            )
        return self._actuated[key]

    def factor(
        self,
        q: ArrayLike,
        active: ArrayLike | None = None,
        M: ArrayLike | None = None,
        rows: ArrayLike | None = None,
        *,
        on_invalid: OnInvalid = "raise",
    ) -> KKTFactors:
        """The sparse Cholesky factors of the KKT matrix [[-mu, J], [J^T, M]] at `q` (..., nq).

        M: (..., nv, nv), by default the inertia matrix; any positive definite matrix that is zero where that one is, by the
        structure of the tree.
        rows: as in `solve`.
        """
        if M is None:
            self.problem.refuse_weightless("factor")
        if is_single(q) and (M is None or is_single(M)):  # the pivots of doubled rows are rounding there
            return in_double(self.model, partial(self.factor, on_invalid=on_invalid), q, active, M, rows)
        everything, nothing, _, given = self._defaults(q)
        if rows is not None or self.problem.nu:
            given = self._checked(rows)
        still = np.zeros(self.model.nv, getattr(q, "dtype", DOUBLE))
        inputs = (q, still, still, everything if active is None else active, nothing, given)
        inertia, _, J, _, _ = _constrained_system.call(self.problem, inputs, None, on_invalid)
        return factor_kkt(self.problem, inertia if M is None else M, J, on_invalid)

    def delassus(
        self,
        q: ArrayLike,
        active: ArrayLike | None = None,
        method: str | None = None,
        *,
        on_invalid: OnInvalid = "raise",
    ) -> Array:
        """The Delassus matrix J M^-1 J^T (..., nm, nm) at `q` (..., nq), rows of constraints that are not active zero.

        method: "pv_r" (by default), "pv" or "efpa" for contacts; "ltl" (by default if there are loops).
        """
        if is_single(q):
            return in_double(self.model, partial(self.delassus, on_invalid=on_invalid), q, active, method)
        able = [name for name, method in OSIM_METHODS.items() if method.delassus is not None]
        name = self._osim_method(method, able, "pv_r")
        plan = OSIM_METHODS[name].delassus
        assert plan is not None
        problem = self._planned(plan)
        return OSIM_METHODS[name].algorithm.call(problem, (q, self._active(q, active)), None, on_invalid)

    def osim(
        self,
        q: ArrayLike,
        active: ArrayLike | None = None,
        method: str | None = None,
        *,
        on_invalid: OnInvalid = "raise",
    ) -> Array:
        """The damped operational-space inertia matrix (J M^-1 J^T + mu)^-1 (..., nm, nm) at `q` (..., nq).

        method: "pv_r" (by default), "pv", "efpa", "caba", "caba_f" or "pv_f" for contacts; "ltl" (by default if there are
            loops). Those that give factors give their product here; see `osim_factors`. "caba", "caba_f" and "pv_f" lose
            digits where a limb has fewer degrees of freedom than rows.
        """
        if is_single(q):
            return in_double(self.model, partial(self.osim, on_invalid=on_invalid), q, active, method)
        name = self._osim_method(method, list(OSIM_METHODS), "pv_r")
        chosen = OSIM_METHODS[name]
        if chosen.algorithm is _osim_base:
            return self.osim_factors(q, active, name, on_invalid=on_invalid).matrix
        return chosen.algorithm.call(self._planned(chosen.osim), (q, self._active(q, active)), None, on_invalid)

    def osim_factors(
        self,
        q: ArrayLike,
        active: ArrayLike | None = None,
        method: str = "caba_f",
        *,
        on_invalid: OnInvalid = "raise",
    ) -> FactoredOSIM:
        """The same of a floating robot as B - Z C Z^T: what limbs do, and what their base adds.

        method: "caba_f" or "pv_f".
        """
        if is_single(q):
            return in_double(self.model, partial(self.osim_factors, on_invalid=on_invalid), q, active, method)
        able = [name for name, method in OSIM_METHODS.items() if method.algorithm is _osim_base]
        problem = self._planned(OSIM_METHODS[self._osim_method(method, able, method)].osim)
        return FactoredOSIM(problem, *_osim_base.call(problem, (q, self._active(q, active)), None, on_invalid))

    def delassus_times(
        self,
        q: ArrayLike,
        x: ArrayLike,
        active: ArrayLike | None = None,
        *,
        on_invalid: OnInvalid = "raise",
    ) -> Array:
        """The Delassus matrix times x (..., nm), for contacts, without making the matrix."""
        return self._respond("delassus", q, x, active, on_invalid)

    def osim_times(
        self,
        q: ArrayLike,
        x: ArrayLike,
        active: ArrayLike | None = None,
        *,
        on_invalid: OnInvalid = "raise",
    ) -> Array:
        """The damped operational-space inertia matrix times x (..., nm), for contacts, without making the matrix."""
        return self._respond("osim", q, x, active, on_invalid)

    def _respond(self, what: str, q: ArrayLike, x: ArrayLike, active: ArrayLike | None, on_invalid: OnInvalid) -> Array:
        if self._loops:
            raise ModelError(f"{what}_times is for contacts; {self._loops[0]!r} ties two bodies")
        if is_single(q) and is_single(x):
            return in_double(self.model, partial(self._respond, what, on_invalid=on_invalid), q, x, active)
        return _response.call(self._planned(RESPONSES[what]), (q, self._active(q, active), x), None, on_invalid)

    def _osim_method(self, method: str | None, able: list[str], default: str) -> str:
        name = method or ("ltl" if self._loops else default)
        if name not in able:
            raise ModelError(f"unknown method {name!r}, expected one of {', '.join(able)}")
        if self._loops and name != "ltl":
            raise ModelError(f"method {name!r} is for contacts; {self._loops[0]!r} ties two bodies, expected 'ltl'")
        return name

    def _planned(self, plan: Plan) -> ConstrainedModel:
        if self.problem.nu:
            raise ModelError("Delassus and operational-space matrices are for frames, expected no UserRows")
        if plan not in self._plans:
            self._plans[plan] = ConstrainedModel(self.model, self.constraints, self.mu, plan=plan)
        return self._plans[plan]

    def _active(self, q: ArrayLike, active: ArrayLike | None) -> ArrayLike:
        if active is not None:
            check_active(active)
        return self._defaults(q)[0] if active is None else active


@cache
def _differentiation(name: str) -> Any:
    """A module of the layer above, which knows the derivatives of this one; looked up once, for the speed of a call."""
    return import_module(f"saltus.derivatives.{name}")


def check_active(active: Any) -> None:
    """Constraints hold or do not; those on a GPU are not looked at."""
    if not on_gpu(active):
        values = np.asarray(active)
        wrong = values[
            (values != 0) & (values != 1) & ~np.isnan(values)
        ]  # NaN is refused, or marked, with the other inputs
        if wrong.size:
            raise ValueError(
                f"active has the entry {wrong.flat[0]}, expected 1 for constraints that hold and 0 for others"
            )


def whole(count: Any) -> int:
    """A count, which is an integer."""
    try:
        return operator.index(count)
    except TypeError:
        raise ModelError(f"most_iterations = {count!r}: expected an integer") from None
