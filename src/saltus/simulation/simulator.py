"""Simulation of robots that touch the world: push, slip, fall, and get up.

A `Simulator` is a robot, a terrain, and what holds the robot together; `step` and `rollout` move it (contact_step.py).
Any number of steps of a whole batch of robots is one native call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from saltus.arrays import ArrayLike, OnInvalid, on_gpu
from saltus.collision.queries import Contacts, find_contacts
from saltus.collision.scene import MARGIN, Scene
from saltus.collision.tables import COLLISIONS
from saltus.collision.terrain import PIECES, Terrain
from saltus.constraints.constraint import Constraint
from saltus.kernel.marking import check_choice
from saltus.kernel.tables import filled_part
from saltus.model.model import Model
from saltus.simulation.commands import OverTime, PDTargets
from saltus.simulation.contact_derivatives import difference_step, differentiate_step
from saltus.simulation.contact_law import CONVEX, COULOMB
from saltus.simulation.contact_problem import METHODS
from saltus.simulation.contact_step import _contact_step, _contact_steps
from saltus.simulation.driven import Function
from saltus.simulation.gpu_simulation import roll_out
from saltus.simulation.job import Job
from saltus.simulation.motion import Motion, Push, Step
from saltus.simulation.simulated import SimulatedModel
from saltus.simulation.step_derivatives import StepDerivatives

LAWS = {"coulomb": COULOMB, "convex": CONVEX}

TOLERANCE = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-5}
"""Of the natural map of the contact problem [m/s, rad/s]."""

LEAST_SHARE = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}
"""Of its diagonal, added to the Delassus matrix while Newton's steps are looked for."""

FAST = 20.0
"""The speed of approach that contacts are looked for in time [m/s]."""

TURNS = 30
"""New starts of Newton's method, at most, where it finds no way."""


class Simulator:
    """A robot in a world, with a time step.

    robot: a model; with code of its own if it is specialised.
    terrain: a `Terrain`, or pieces of one; None for empty space.
    constraints: loops (`LoopClosure`, `JointLock`) and contacts that hold both ways.
    dt: the time step [s].
    method: "admm" (Newton's method, and ADMM where it finds no way) or "pgs" (projected Gauss-Seidel).
    law: "coulomb", or "convex": what slides lifts off, as in MuJoCo.
    tolerance: of residuals [m/s]; by default 1e-8, in single precision 1e-5.
    self_collision: whether the robot's bodies touch each other.
    most_contacts: how many hold at a time, at most; by default as many as there may be, up to 64. Where
        more are near, those come first that touch, and the status says STOPPED.
    compliance: of contacts [m/N].
    passive: whether springs and dampers of joints act as the model says.

    Limits of joints hold, dry friction of joints acts, and bodies touch the terrain and each other as the model's
    `colliders` say.

    >>> import saltus as sl
    >>> robot = sl.load_robot("quadruped")
    >>> sim = sl.Simulator(robot, sl.Ground(friction=0.8))
    >>> q, v = robot.reference_configurations["standing"], np.zeros(robot.nv)
    >>> motion = sim.rollout(q, v, sl.PDTargets(q, kp=200.0, kd=5.0), duration=0.2)
    >>> motion.q.shape, bool(motion.fallen.any()), int(motion.status.max())
    ((201, 19), False, 0)
    >>> bool(abs(motion.contact_forces[-1, :, 2].sum() - 9.81 * robot.total_mass) < 30.0)
    True
    """

    def __init__(
        self,
        robot: Model,
        terrain: Terrain | PIECES | Iterable[PIECES] | None = None,
        *,
        constraints: Sequence[Constraint] = (),
        dt: float = 1e-3,
        method: Literal["admm", "pgs"] = "admm",
        law: Literal["coulomb", "convex"] = "coulomb",
        tolerance: float | None = None,
        self_collision: bool = True,
        most_contacts: int | None = None,
        compliance: float = 0.0,
        passive: bool = True,
    ) -> None:
        if not isinstance(robot, Model):
            raise TypeError(f"Simulator: robot is {robot!r}, expected a Model")
        if not (np.isfinite(dt) and dt > 0):
            raise ValueError(f"Simulator: dt is {dt}, expected a positive time in seconds")
        if method not in METHODS or law not in LAWS:
            raise ValueError(
                f"Simulator: method is {method!r} and law {law!r}, expected one of {', '.join(METHODS)}, and of "
                f"{', '.join(LAWS)}"
            )
        for name, value in (("tolerance", tolerance), ("compliance", compliance)):
            if value is not None and not (np.isfinite(value) and value >= 0):
                raise ValueError(f"Simulator: {name} is {value}, expected a number, not negative")
        self.model, self.dt, self.method, self.law, self.tolerance = robot, float(dt), method, law, tolerance
        self.scene = Scene(robot, terrain, self_collision, max(MARGIN, FAST * dt))
        slots = len(self.scene.slots)
        self.most_contacts = min(slots, 64) if most_contacts is None else int(most_contacts)
        if not 0 <= self.most_contacts <= slots:
            raise ValueError(
                f"Simulator: most_contacts is {most_contacts}, expected 0 to {slots}, the possible contacts"
            )
        self.constraints, self.compliance, self.passive = tuple(constraints), float(compliance), bool(passive)
        self.self_collision = self_collision
        self.problem = SimulatedModel(robot, self.constraints, self.scene, self.most_contacts)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        given = {name: getattr(self, name) for name in (
            "constraints", "dt", "method", "law", "tolerance", "self_collision", "most_contacts", "compliance", "passive",
        )}  # fmt: skip
        return _remade, (self.model, self.scene.terrain, given)

    @property
    def plan(self) -> tuple[int, int, int]:
        """Law, method, turns of the solver."""
        return LAWS[self.law], METHODS[self.method], TURNS

    def settings(self, real: Any) -> Any:
        """What steps need in a number type (contact_step.py)."""
        tolerance = TOLERANCE[real] if self.tolerance is None else self.tolerance
        passive = float(self.passive)
        return np.array([self.dt, tolerance, LEAST_SHARE[real], 1.0, self.compliance, passive, passive], real)

    @cached_property
    def nothing(self) -> Step:
        """A step without impulses, to start from."""
        none: Any = np.empty(0, np.float32)
        touch: Any = np.zeros((self.most_contacts, 4), np.float32)
        touch[:, 0] = -1.0
        held: Any = np.zeros(self.problem.nheld, np.float32)
        return Step(self, none, none, none, none, held, touch, none)

    @cached_property
    def _plain(self) -> tuple[Any, ...]:
        """What a step of the plain kind takes besides: plan, impulses to start from, settings, limits of motors."""
        double = np.dtype(np.float64)
        none = self.nothing
        most = np.full(self.model.nv, np.finfo(double).max / 4.0)
        held, touch = none.held.astype(double), none.touch.astype(double)
        return np.array(self.plan, np.int32), held, touch, self.settings(double), most

    @cached_property
    def slot_bodies(self) -> Any:
        """(nslot, 2) the joints of the two bodies of each possible contact; 0 is the terrain."""
        part = filled_part(COLLISIONS, self.scene, COLLISIONS.measure(self.scene))
        view = COLLISIONS.ints.view(part.ints, COLLISIONS.measure(self.scene))
        return np.array([[view.slot_a[s], view.slot_b[s]] for s in range(len(self.scene.slots))], int).reshape(-1, 2)

    def contacts(self, q: ArrayLike) -> Contacts:
        """Which contacts there are in configurations `q` (..., nq), forces apart."""
        return find_contacts(self.scene, None, q)

    def step(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike | PDTargets | None = None,
        *,
        friction: ArrayLike = 1.0,
        pushes: Sequence[Push] = (),
        start: Step | Motion | None = None,
        on_invalid: OnInvalid = "raise",
    ) -> Step:
        """One step from `q` (..., nq), `v` (..., nv) on.

        tau: torques (..., nv) [N m, N], or `PDTargets` of (..., nq).
        friction: (...) by what all coefficients of friction are multiplied.
        start: the step before, or a motion: the solver begins with its impulses, and needs fewer steps.

        >>> import saltus as sl
        >>> robot = sl.load_robot("quadruped")
        >>> sim = sl.Simulator(robot, sl.Ground())
        >>> after = sim.step(robot.reference_configurations["standing"], np.zeros(robot.nv))
        >>> after.status, after.v.shape
        (<Status.CONVERGED: 0>, (18,))
        """
        one = (
            tau.__class__ is q.__class__ is v.__class__ is np.ndarray
            and q.dtype == np.float64
            and on_invalid == "raise"
            and (start is None or start.__class__ is Step)
        )
        if one and friction.__class__ is float and friction == 1.0 and not pushes:
            plan, held, touch, settings, most = self._plain
            if start is not None:
                held, touch = start.held, start.touch
            return Step(self, q, *_contact_step.call(self.problem, (plan, q, v, held, touch, settings, most, tau)))
        check_choice(on_invalid, "step")
        job = self._job(q, v, tau, 1, 1, friction, pushes, start)
        results = _contact_steps.call(self.problem, tuple(job.inputs(0, 1, *job.state).values()), None, on_invalid)
        rank = len(job.leading)
        return Step(self, job.state[0], *(x[(slice(None),) * rank + (0,)] for x in results))

    def step_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike | PDTargets | None = None,
        *,
        friction: ArrayLike = 1.0,
        pushes: Sequence[Push] = (),
        start: Step | Motion | None = None,
        mode: Literal["analytical", "fdc"] = "analytical",
    ) -> StepDerivatives:
        """How a step changes: `.A` (..., 2 nv, 2 nv) with the state, (dq, dv) before, and `.B` (..., 2 nv, nv) with torques.

        Contacts stay as they are: what sticks, slides or is open does so on both sides. Where that changes, there is no
        derivative, and that of one side is given. `mode`: "analytical" solves the linearised contact problem, exact to
        rounding; "fdc" takes central differences of steps, as one batch.

        >>> import saltus as sl
        >>> robot = sl.load_robot("quadruped")
        >>> sim = sl.Simulator(robot, sl.Ground())
        >>> D = sim.step_derivatives(robot.reference_configurations["standing"], np.zeros(robot.nv))
        >>> D.A.shape, D.B.shape
        ((36, 36), (36, 18))
        """
        if mode not in ("analytical", "fdc"):
            raise ValueError(f"step_derivatives: mode is {mode!r}, expected 'analytical' or 'fdc'")
        job = self._job(q, v, tau, 1, 1, friction, pushes, start)
        given = job.inputs(0, 1, *job.state)
        given |= {name: given[name][..., 0, :] for name in ("tau", "kp", "kd", "target") if name in given}
        if mode == "fdc":
            return difference_step(self, job.state, given["tau"], tau, friction, pushes)
        solved = self.step(q, v, tau, friction=friction, pushes=pushes, start=start)
        given |= {
            "plan": given["plan"][[0, 5]], "push": given["push"][0], "held": solved.held, "touch": solved.touch
        }  # fmt: skip
        given = {name: value for name, value in given.items() if name not in ("clock", "record")}
        return differentiate_step(self.problem, given)

    def rollout(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike | OverTime | PDTargets | Function | None = None,
        *,
        duration: float,
        every: int = 1,
        control_period: float | None = None,
        friction: ArrayLike = 1.0,
        pushes: Sequence[Push] = (),
        start: Step | Motion | None = None,
        progress: Callable[[int, int], None] | None = None,
        on_invalid: OnInvalid = "raise",
    ) -> Motion:
        """The motion from `q` (..., nq), `v` (..., nv) on, for a duration [s], rounded to a whole number of steps.

        tau: torques (..., nv) that stay the same; `OverTime` or `PDTargets`, with a row for each step or for every so many
            (targets with no more axes than states have stay the same: (..., nq)); or a function tau(t, q, v) of the whole
            batch, whose torques are held for the control period [s].
        every: how many steps are between two states that are recorded.
        pushes: forces on bodies.
        friction, start: as in `step`.
        progress: is called as progress(steps done, steps in all).
        on_invalid: "raise", or "mark": robots whose states are not finite are lost, with NaN recorded and the status
            INVALID, and the others go on.

        On a GPU, q and v of CuPy or PyTorch, (robots, ...): all steps under torques or targets known ahead are one launch,
        and what is recorded is there.

        PD control acts on motors (`motors_of`) unless its gains are given joint by joint, within the model's effort limits.
        Ctrl-C raises `Interrupted`, and a motion that cannot go on `RolloutError`; both have the motion until then.
        """
        steps = round(duration / self.dt) if np.isfinite(duration) else -1
        if steps < 0:
            raise ValueError(f"rollout: duration is {duration}, expected a time in seconds, not negative")
        if every < 1 or steps % every:
            raise ValueError(f"rollout: every is {every}, expected a divisor of the number of steps, {steps}")
        check_choice(on_invalid, "rollout")
        if on_gpu(q) or on_gpu(v):
            if callable(tau) or pushes:
                raise TypeError("rollout: on a GPU torques are known ahead, and nothing pushes; expected no function")
            return roll_out(self, q, v, tau, steps, every, friction, start)
        if callable(tau):
            held = round((control_period or self.dt) / self.dt)
            if held < 1 or abs(held * self.dt - (control_period or self.dt)) > 1e-6 * self.dt:
                raise ValueError(
                    f"rollout: control_period is {control_period}, expected a multiple of dt, {self.dt:g} s"
                )
            if held % every and every % held:
                raise ValueError(
                    f"rollout: every is {every}, expected a divisor of the {held} steps of a control period"
                )
        elif control_period is not None:
            raise ValueError(
                "rollout: control_period is that of a function, and tau is none; expected no control_period"
            )
        else:
            held = 0
        job = self._job(q, v, None if callable(tau) else tau, steps, every, friction, pushes, start)
        return job.run(self, tau if callable(tau) else None, held, progress, on_invalid)

    def _job(
        self, q: ArrayLike, v: ArrayLike, tau: Any, steps: int, every: int, friction: ArrayLike, pushes: Sequence[Push],
        start: Step | Motion | None,
    ) -> Job:  # fmt: skip
        return Job(self, q, v, tau, steps, every, friction, pushes, start)


def _remade(model: Model, terrain: Terrain, given: dict[str, Any]) -> Simulator:
    return Simulator(model, terrain, **given)
