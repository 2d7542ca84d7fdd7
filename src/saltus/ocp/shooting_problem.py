"""Shooting problems of robots: phases of contacts and terms become arrays over nodes, and all nodes one batch.

    minimise  sum_t dt_t l_t(x_t, u_t, f_t) + l_T(x_T)    subject to    x_{t+1} = x_t (+) f_t(x_t, u_t),    x = (q, v)

A phase says how long it lasts, which contacts hold and which terms count. An impact is a node of no duration. All nodes are
of one compiled kernel; what differs between them are rows of `data` (term_tables.py), which may change at any time,
without a new problem.

| name | what | shape |
|---|---|---|
| `weights` | of terms, 0 where they do not count | (..., T + 1, nterm) |
| `references` | of terms, one after the other | (..., T + 1, nref) |
| `active` | which contacts hold | (..., T + 1, nc) |
| `dt` | durations of nodes, 0 at impacts | (..., T + 1) |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, real_numbers
from saltus.constraints.constraint import Constraint
from saltus.constraints.dynamics import ConstrainedDynamics
from saltus.dynamics.rnea import gravity
from saltus.model.checks import ModelError, whole_number
from saltus.model.model import Model
from saltus.model.motors import checked_motors, motors_of
from saltus.ocp.culprits import explained, refuse_bad_data, term_to_blame
from saltus.ocp.forward import Motion, roll_out
from saltus.ocp.node_derivatives import _expand_nodes
from saltus.ocp.own_terms import Nodes, OwnTerms
from saltus.ocp.phases import ImpactPhase, Phase, Placed, listed, spans_of, terms_of, unique
from saltus.ocp.problem import EulerSteps, Expansion, Trial, Values
from saltus.ocp.runge_kutta import Stage, chain
from saltus.ocp.shooting_model import INTEGRATORS, METHOD, ShootingModel, robot_algorithms, solver_of
from saltus.ocp.states import MultibodyState
from saltus.ocp.term_tables import DATA, TermSet
from saltus.ocp.term_values import _term_values
from saltus.ocp.terms import CENTER, PLACEMENT, ROTATION, TRANSLATION, Impulse, Term
from saltus.ocp.vector_problem import control_bounds, finite

RANK = 1e-12
"""Singular values below this share of the largest are zero, for `quasi_static`."""


class NodeValues(NamedTuple):
    """What all nodes do; `a` (jumps, at impacts), forces (impulses) and report are those of constrained dynamics."""

    next: Array  # (..., T, nx)
    costs: Array  # (..., T + 1)
    a: Array  # (..., T + 1, nv)
    forces: Array  # (..., T + 1, nm)
    report: Array  # (..., T + 1, 5)


class NodeExpansion(Expansion):
    """The derivatives, and the memory that they are in, that of the last node's controls included."""

    whole: tuple[Array, ...]

    def __reduce__(self) -> Any:
        assert self.euler is not None
        return running, (self.whole, self.euler.blocks, self.euler.h, self.euler.steps)  # views of it are, again


def running(whole: tuple[Array, ...], turns: tuple[tuple[int, int], ...], h: Array, steps: Any) -> NodeExpansion:
    """That of nodes but for the last one's controls."""
    Fx, Fu, Lx, Lu, Lxx, Lxu, Luu, turned, pushed = whole
    here = (..., slice(None, -1), slice(None))
    euler = EulerSteps(turns, turned[here], pushed[here], h, steps)
    answer = NodeExpansion(Fx[*here, :], Fu[*here, :], Lx, Lu[here], Lxx, Lxu[*here, :], Luu[*here, :], euler)
    answer.whole = whole
    return answer


class TermValues(NamedTuple):
    """Of each term, by its name."""

    residuals: dict[str, Array]  # (..., T + 1, rows), also where a term does not count
    costs: dict[str, Array]  # (..., T + 1)


class ShootingProblem:
    """A robot's motion over phases.

    robot: a model, with the `constraints` that may hold (contacts), or `ConstrainedDynamics`, which also name the method.
    x0: (..., nq + nv), where it begins.
    terms: those that count in all phases; terms of forces where their contact holds, of controls where there are any.
    final: those of the last state.
    motors: degrees of freedom that controls drive; by default those of `motors_of`.
    method: of constrained dynamics. integrator: "euler" (semi-implicit), or "rk4".

    >>> import numpy as np, saltus as sl
    >>> from saltus.ocp.terms import Control, FrameTranslation, State
    >>> arm = sl.load_robot("arm")
    >>> x0 = np.zeros(arm.nq + arm.nv)
    >>> reach = FrameTranslation("tool", reference=[0.3, 0.2, 0.6], weight=1e3)
    >>> problem = ShootingProblem(arm, x0, [Phase(nodes=20)], [State(weight=0.1), Control(weight=1e-3)], [reach], dt=0.02)
    >>> xs = problem.rollout(problem.quasi_static(np.tile(x0, (21, 1))))
    >>> bool(np.abs(xs - x0).max() < 1e-9), problem.calc(xs, np.zeros((20, 7))).costs.shape
    (True, (21,))
    """

    def __init__(
        self,
        robot: Model | ConstrainedDynamics,
        x0: ArrayLike,
        phases: Sequence[Phase | ImpactPhase],
        terms: Sequence[Term] = (),
        final: Sequence[Term] = (),
        *,
        dt: float = 1e-2,
        constraints: Sequence[Constraint] = (),
        motors: Sequence[int] | None = None,
        method: str = METHOD,
        integrator: str = "euler",
    ) -> None:
        dynamics = dynamics_of(robot, constraints, method)
        phases = listed(phases, "phases")
        spans, steps = spans_of(phases, dt)
        last = len(steps)
        terms, final = terms_of(terms, "terms"), terms_of(final, "terms of the last node")
        for term in final:
            if term.needs_control or term.needs_force:
                raise ModelError(
                    f"node {last}, the last: term {term.name!r} asks for controls or forces: there are none"
                )
        placed = [Placed(term, 0, last, False) for term in terms]
        for k, (phase, (start, stop)) in enumerate(zip(phases, spans, strict=True)):
            placed += [Placed(term, start, stop, True) for term in terms_of(phase.terms, f"phase {k}: terms")]
        placed += [Placed(term, last, last + 1, True) for term in final]
        self._declare(dynamics, x0, unique([each.term for each in placed]), steps, motors, integrator)
        for k, (phase, (start, stop)) in enumerate(zip(phases, spans, strict=True)):
            for name in listed(phase.contacts, f"phase {k}: contacts"):
                if name not in self.terms.contacts:
                    known = ", ".join(self.terms.contacts) or "none"
                    raise ModelError(f"phase {k}: unknown contact {name!r}, expected one of {known}")
                self.active[start:stop, self.terms.contacts.index(name)] = 1.0
        for one in placed:
            self._place(*one)
        self._check_nodes()

    @classmethod
    def of_nodes(
        cls,
        robot: Model | ConstrainedDynamics,
        x0: ArrayLike,
        terms: Sequence[Term],
        dt: ArrayLike,
        *,
        weights: ArrayLike,
        references: Mapping[str, ArrayLike] | None = None,
        active: ArrayLike | None = None,
        constraints: Sequence[Constraint] = (),
        motors: Sequence[int] | None = None,
        method: str = METHOD,
        integrator: str = "euler",
    ) -> ShootingProblem:
        """The same, node by node.

        dt: (T,), 0 at impacts.
        weights: (T + 1, terms), 0 where a term does not count.
        active: (T + 1 or T, contacts), by default all.
        references: by the terms' names, one for all nodes or (T + 1, size); by default the terms' own.
        """
        self = cls.__new__(cls)
        terms, steps = terms_of(terms, "terms"), finite(dt, "dt")
        if steps.ndim != 1:
            raise ModelError(f"dt has shape {steps.shape}, expected (T,)")
        self._declare(dynamics_of(robot, constraints, method), x0, unique(terms), steps.tolist(), motors, integrator)
        if active is None:
            self.active[:-1] = 1.0
        else:
            held = finite(active, "active")
            if held.shape not in ((self.T, self.nc), (self.T + 1, self.nc)):
                raise ModelError(
                    f"active has shape {held.shape}, expected {(self.T, self.nc)} or {(self.T + 1, self.nc)}"
                )
            self.active[: len(held)] = held
        given = dict(references or {})
        for term in self.terms.terms:
            value = given.pop(term.name, term.reference)
            if value is not None or term.kind not in (CENTER, PLACEMENT, ROTATION, TRANSLATION):
                self.set_reference(term.name, value)
        if given:
            raise ModelError(
                f"references: there is no term {next(iter(given))!r}, expected one of {names_of(self.terms)}"
            )
        wanted, shape = finite(weights, "weights"), (self.T + 1, len(self.terms.terms))
        if wanted.shape != shape:
            raise ModelError(f"weights have shape {wanted.shape}, expected {shape}")
        for k, term in enumerate(self.terms.terms):
            wrong = np.flatnonzero((wanted[:, k] > 0) & (self._sensible(term, True) == 0))
            if len(wrong):
                raise ModelError(
                    f"node {wrong[0]}: term {term.name!r} counts there, but has not the control or the force it asks for"
                )
            self.set_weight(term.name, wanted[:, k])
        self._check_nodes()
        return self

    def _declare(
        self,
        dynamics: Any,
        x0: ArrayLike,
        terms: Sequence[Term],
        steps: Sequence[float],
        motors: Sequence[int] | None,
        integrator: str,
    ) -> None:
        """All but what phases and nodes fill in."""
        if integrator not in INTEGRATORS:
            raise ModelError(
                f"ShootingProblem: unknown integrator {integrator!r}, expected one of {', '.join(INTEGRATORS)}"
            )
        self.integrator, self.rk4 = integrator, integrator == "rk4"
        if dynamics.problem.nu:
            raise ModelError("ShootingProblem: constraints with rows of users cannot be part of it")
        self.T = len(steps)
        if self.T == 0:
            raise ModelError("ShootingProblem: there is no node, expected a phase at least")
        for t, step in enumerate(steps):
            if not 0.0 <= step < np.inf:
                raise ModelError(f"node {t}: dt is {step}, expected a positive time, or 0 at an impact")
        self.dynamics, self.model, self.method = dynamics, dynamics.model, solver_of(dynamics)
        self.state, self.no_forces = MultibodyState(self.model), np.zeros((self.T + 1, dynamics.problem.nm))
        motors = motors_of(self.model) if motors is None else checked_motors(self.model, motors, "ShootingProblem")
        self.terms = TermSet(dynamics, terms, motors)
        self.problem = ShootingModel(dynamics, self.terms, self.T)
        sizes = self.terms.sizes
        self.nx, self.ndx, self.nu = sizes["nx"], sizes["ndx"], sizes["nact"]
        self.nq, self.nv, self.nc = self.model.nq, self.model.nv, len(dynamics.constraints)
        own = tuple(term.residual for term in self.terms.own)
        self.kernels, self.algorithms = robot_algorithms(self.method, own, self.rk4)
        self.own, self.stages = OwnTerms(self), robot_algorithms(self.method, own)[0].calc
        if self.rk4 and self.own.functions:
            raise ModelError(
                f"term {self.own.functions[0].name!r}: functions in Python know no stages of RK4, expected kernels"
            )
        limit = self.model.effort_limit[list(motors)]
        self.u_lower, self.u_upper = -limit, limit.copy()
        self.data, self.x0 = np.zeros((self.T + 1, sizes["ndata"])), x0
        self.data[:-1, 0], impacts = steps, np.array([*(step == 0.0 for step in steps), False])
        self.data[:, 2] = impacts
        self.data[:, 1] = np.where(impacts, 1.0, self.data[:, 0])
        self.data[-1, 1] = 1.0
        for term in self.terms.terms:  # where a term does not count, its reference is valid all the same
            self.references[:, self.terms.places[term.name]] = self.terms.idle(term)

    def __reduce__(self) -> tuple[Any, ...]:
        steps = self.data.reshape(-1, *self.data.shape[-2:])[0, :-1, 0].tolist()
        arguments = (self.dynamics, self.x0, self.terms.terms, steps, self.terms.motors, self.integrator)
        return restored, (type(self), arguments, self.data, self.u_lower, self.u_upper)

    def _state(self, x0: ArrayLike) -> Array:
        state = finite(x0, "x0")
        if state.shape[-1:] != (self.nx,):
            raise ModelError(f"ShootingProblem: x0 has shape {state.shape}, expected (..., {self.nx})")
        self.terms.check_configuration(state, "x0")
        return state

    @property
    def x0(self) -> Array:
        """(..., nx) where it begins; another one may be set at any time."""
        return self._x0

    @x0.setter
    def x0(self, x0: ArrayLike) -> None:
        self._x0 = self._state(x0)

    # ------------------------------------------------------------------------------------------------ declaration

    def _place(self, term: Term, start: int, stop: int, own: bool) -> None:
        """A term counts from a node to another."""
        where = f" at nodes {start} to {stop - 1}"
        value = self.terms.pack(term, term.reference, where)
        if value.ndim > 1 and value.shape[-2] != stop - start:
            raise ModelError(f"reference of term {term.name!r}{where} is of {value.shape[-2]} nodes")
        self.references[start:stop, self.terms.places[term.name]] = value
        weight = float(term.weight) * self._sensible(term, own)[start:stop]
        self.weights[start:stop, self.terms.index(term.name)] = weight

    def _sensible(self, term: Term, own: bool) -> Array:
        """(T + 1,) where a term has what it asks for; `own`: forces of impacts count as well."""
        flat = self.data.reshape(-1, *self.data.shape[-2:])[0]
        impacts, here = flat[:, 2], np.ones(self.T + 1)
        if term.needs_control:
            here = 1.0 - impacts
        if term.needs_force:
            here = (flat[:, DATA + self.terms.contact(term)] > 0) * 1.0
            if isinstance(term, Impulse):
                here *= impacts
            elif not own:
                here *= 1.0 - impacts
        if term.needs_control or term.needs_force:
            here[-1] = 0.0
        return here

    def _check_nodes(self) -> None:
        counted = (self.weights > 0).any(axis=-1) | (self.data[..., 2] > 0)
        missing = np.argwhere(~counted)
        if len(missing):
            node = int(missing[0][-1])
            last = " (the last)" if node == self.T else ""
            raise ModelError(f"node {node}{last}: no term counts there, expected one at least")

    def check(self) -> None:
        """An error if rows of `data`, which may be written to, make no sense; it names node and term."""
        refuse_bad_data(self)

    # ------------------------------------------------------------------------------------------------ arrays over nodes

    @property
    def dt(self) -> Array:
        return self.data[..., 0]

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading axes of the problems that this one stands for."""
        return np.broadcast_shapes(self.x0.shape[:-1], self.data.shape[:-2])

    @property
    def controlled(self) -> Array:
        """(T,), 0 where controls do nothing."""
        flat = self.data.reshape(-1, *self.data.shape[-2:])[0]
        found: Array = 1.0 - flat[:-1, 2]
        return found

    @property
    def active(self) -> Array:
        return self.data[..., DATA : DATA + self._nc]

    @property
    def weights(self) -> Array:
        return self.data[..., DATA + self._nc : DATA + self._nc + len(self.terms.terms)]

    @property
    def references(self) -> Array:
        return self.data[..., DATA + self._nc + len(self.terms.terms) :]

    @property
    def _nc(self) -> int:
        return len(self.dynamics.constraints)

    def set_reference(self, name: str, value: ArrayLike, nodes: slice | int = slice(None)) -> None:
        """The reference of a term, by its name, at some nodes: one for all, or (..., nodes, size)."""
        term = self.terms.terms[self.terms.index(name)]
        where = "" if nodes == slice(None) else f" at nodes {nodes}"
        packed = self.terms.pack(term, value, where)
        self._check_places(nodes)
        target = self.references[..., nodes, self.terms.places[name]]
        try:
            target[...] = packed
        except ValueError:
            raise ModelError(
                f"reference of term {name!r}{where} has shape {np.shape(value)}: it does not fit {target.shape[:-1]} nodes"
            ) from None

    def set_weight(self, name: str, value: ArrayLike, nodes: slice | int = slice(None)) -> None:
        """The weight of a term, by its name, at some nodes; it stays 0 where the term has not what it asks for."""
        k = self.terms.index(name)
        weight = real_numbers(value, f"weight of term {name!r}").astype(float)
        if not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise ModelError(f"weight of term {name!r} at nodes {nodes} is {value}, expected finite, nothing negative")
        self._check_places(nodes)
        target, sensible = self.weights[..., nodes, k], self._sensible(self.terms.terms[k], True)[nodes]
        try:
            target[...] = weight * sensible
        except ValueError:
            raise ModelError(
                f"weight of term {name!r} at nodes {nodes} has shape {weight.shape}: it does not fit {target.shape} nodes"
            ) from None

    def _check_places(self, nodes: slice | int) -> None:
        if not isinstance(nodes, slice) and not -self.T - 1 <= whole_number(nodes, "node") <= self.T:
            raise ModelError(f"there is no node {nodes}, expected 0 to {self.T}")

    # ------------------------------------------------------------------------------------------------ what solvers ask

    def integrate(self, x: Array, dx: Array) -> Array:
        """x (+) dx, for (..., nx) and (..., ndx)."""
        return self.state.integrate(x, dx)

    def difference(self, a: Array, b: Array) -> Array:
        """b (-) a, for states that solvers have: unlike `state.difference` it asks nobody whether they are valid."""
        found: Array
        if a.shape != b.shape or a.ndim > 2:  # the short way takes one leading axis
            shape = np.broadcast_shapes(a.shape, b.shape)
            flat = tuple(np.broadcast_to(x, shape).reshape(-1, self.nx) for x in (a, b))
            return self.difference(*flat).reshape(*shape[:-1], self.ndx)
        found = self.algorithms.difference.call(self.problem, (a, b))
        return found

    def _whole(self, xs: Array, us: Array) -> tuple[Array, Array]:
        """States and controls of all nodes; those of the last are zero."""
        xs, us = (real_numbers(x, name).astype(float, copy=False) for x, name in ((xs, "xs"), (us, "us")))
        for name, array, shape in (("xs", xs, (self.T + 1, self.nx)), ("us", us, (self.T, self.nu))):
            if array.shape[-2:] != shape:
                raise ValueError(
                    f"ShootingProblem: {name} has shape {array.shape}, expected (..., {shape[0]}, {shape[1]})"
                )
        padded = np.zeros((*us.shape[:-2], self.T + 1, self.nu))
        padded[..., :-1, :] = us
        return xs, padded

    def _split(self, xs: Array, us: Array) -> tuple[Array, Array, Array]:
        """The same in three: q, v, u."""
        xs, us = self._whole(xs, us)
        # In one piece each: such arrays go the short way into kernels.
        return np.ascontiguousarray(xs[..., : self.nq]), np.ascontiguousarray(xs[..., self.nq :]), us

    def calc_nodes(self, xs: Array, us: Array) -> NodeValues:
        """All nodes, as one batch, with accelerations and forces."""
        q, v, u = self._split(xs, us)
        try:
            answers = self.kernels.calc.call(self.problem, (q, v, u, self.data))
        except ValueError as error:
            raise explained(self, error) from None
        next_q, next_v, cost, a, forces, report = answers
        next = np.concatenate([next_q[..., :-1, :], next_v[..., :-1, :]], axis=-1)
        costs = cost[..., 0] + self.own.costs_of_functions(Nodes(q, v, u)) if self.own.functions else cost[..., 0]
        return NodeValues(next, costs, a, forces, report)

    def calc(self, xs: Array, us: Array) -> Values:
        """All nodes, as one batch."""
        found = self.calc_nodes(xs, us)
        return Values(found.next, found.costs, Motion(found.a, found.forces))

    def term_values(self, xs: Array, us: Array, values: NodeValues | None = None) -> TermValues:
        """Residuals of all terms, and what each costs, at all nodes."""
        values = self.calc_nodes(xs, us) if values is None else values
        q, v, u = self._split(xs, us)
        residuals, costs = _term_values.call(self.problem, (q, v, u, values.forces, self.data))
        for term in [*self.own.kernels, *self.own.functions]:
            own = self.own.rows(term, Nodes(q, v, u))
            residuals[..., self.terms.rows[term.name]] = own
            value, _, _ = self.own.activated(term, own)
            costs[..., self.terms.index(term.name)] = self.own.weight(term) * value.sum(axis=-1)
        rows = {name: residuals[..., place] for name, place in self.terms.rows.items()}
        return TermValues(rows, {name: costs[..., k] for k, name in enumerate(self.terms.places)})

    def calc_diff(
        self, xs: Array, us: Array, out: Expansion | None = None, values: NodeValues | Motion | None = None
    ) -> NodeExpansion:
        """The derivatives of all nodes.

        out: an earlier result, whose memory this one takes.
        values: of `calc_nodes` or a rollout at the same place, if they are at hand.
        """
        values = self.calc_nodes(xs, us) if values is None else values
        xs, u = self._whole(xs, us)
        lead = xs.shape[:-1] if self.data.ndim == 2 else np.broadcast_shapes(xs.shape[:-1], self.data.shape[:-1])
        old = out if isinstance(out, NodeExpansion) and out.Lx.shape[:-1] == lead else None
        inputs = xs, u, values.a, values.forces, self.data
        found = _expand_nodes.call(self.problem, inputs, None if old is None else old.whole)
        if self.own or self.rk4:
            nodes = Nodes(xs[..., : self.nq], xs[..., self.nq :], u)
            if self.own:
                self.own.expand(nodes, *found[2:7])
            if self.rk4:
                self._chain(nodes, found)
        if old is None:
            steps = np.full(self.T, 0 if self.rk4 else 1, np.int32)  # impacts as well: they take no time
            old = running(found, tuple(self.terms.turns), np.empty((*lead[:-1], self.T)), steps)
        assert old.euler is not None
        np.copyto(old.euler.h, self.dt[..., :-1])
        return old

    def _chain(self, nodes: Nodes, found: tuple[Array, ...]) -> None:
        """In the places of nodes that are steps of RK4, their derivatives."""
        stages = self.data.copy()
        stages[..., 0] = 1.0

        def stage_at(y: Array) -> Stage:
            q, v = y[..., : self.nq], y[..., self.nq :]
            _, _, _, a, forces, _ = self.stages.call(self.problem, (q, v, nodes.u, self.data))
            at = _expand_nodes.call(self.problem, (y, nodes.u, a, forces, stages))
            if self.own:
                self.own.expand(Nodes(q, v, nodes.u), *at[2:7])
            return Stage(np.concatenate([v, a], axis=-1), *at[:7])

        steps = chain(self.state, nodes.x, self.data[..., 0], stage_at, self.nu)
        here = (self.data[..., 2] == 0.0) & (np.arange(self.T + 1) < self.T)
        for old, new, axes in zip(found, steps, (2, 2, 1, 1, 2, 2, 2), strict=False):
            np.copyto(old, new, where=here.reshape(*here.shape, *[1] * axes))

    def forward(
        self,
        xs: Array,
        us: Array,
        gaps: Array,
        K: Array,
        k: Array,
        lengths: Array,
        bounded: Any = False,
        values: NodeValues | Motion | None = None,
    ) -> Trial:
        """Rollouts for all `lengths` (A,) at once; one that leaves joints turned more than configurations may be is lost.
        values: as in `calc_diff`."""
        inputs, rest = (self.x0, xs, us, gaps, K, k), (control_bounds(self, bounded), self.data)
        start = self.no_forces if values is None else values.forces
        trial = roll_out(self.algorithms.forward, self.problem, inputs, lengths, *rest, start)
        if self.own.functions:
            lost = ~np.isfinite(trial.costs)[..., None, None]  # functions of users see numbers alone
            there = np.where(lost, xs, trial.xs), np.where(lost, us, trial.us)
            own = np.sum(self.own.costs_of_functions(Nodes(*self._split(*there))), axis=-1)
            trial = trial._replace(costs=trial.costs + own)
        return trial

    def blame(self, xs: Array, us: Array, node: int) -> str:
        """Which term of a node may be to blame if a solver fails there, at states (T + 1, nx) and controls (T, nu)."""
        return term_to_blame(self, xs, us, node)

    def rollout(self, us: ArrayLike, x0: ArrayLike | None = None) -> Array:
        """The states (..., T + 1, nx) from x0 on, in one call."""
        us = finite(us, "us")
        x0 = self.x0 if x0 is None else self._state(x0)
        xs = np.broadcast_to(x0[..., None, :], (*x0.shape[:-1], self.T + 1, self.nx))
        gaps, K = np.zeros((self.T + 1, self.ndx)), np.zeros((self.T, self.nu, self.ndx))
        rest = control_bounds(self, False), self.data, self.no_forces
        inputs = (x0, xs, us, gaps, K, np.zeros((self.T, self.nu)), np.zeros(1), *rest)
        states: Array = self.algorithms.forward.call(self.problem, inputs)[0]
        return states

    def quasi_static(self, xs: ArrayLike) -> Array:
        """Controls (..., T, nu) that hold the robot still at each of the states (..., T + 1 or T, nx), with the contacts of
        its node: those and the forces of contacts are the least that do; zero at impacts."""
        states = finite(xs, "quasi_static: xs")
        if states.shape[-2:] not in ((self.T, self.nx), (self.T + 1, self.nx)):
            shapes = f"(..., {self.T + 1}, {self.nx}) or (..., {self.T}, {self.nx})"
            raise ValueError(f"quasi_static: xs has shape {states.shape}, expected {shapes}")
        q = states[..., : self.T, : self.nq]
        active, still = self.active[..., : self.T, :], np.zeros(self.nv)
        rows = self.dynamics.constraint_acceleration_derivatives(q, still, still, active).dacceleration_da
        S = np.zeros((self.nv, self.nu))
        S[list(self.terms.motors), np.arange(self.nu)] = 1.0
        push = np.concatenate([np.broadcast_to(S, (*rows.shape[:-2], *S.shape)), np.swapaxes(rows, -1, -2)], axis=-1)
        u = np.linalg.pinv(push, rcond=RANK) @ gravity(self.model, q)[..., None]
        held: Array = u[..., : self.nu, 0] * self.controlled[:, None]
        return held


def restored(cls: Any, arguments: Any, data: Array, lower: Array, upper: Array) -> ShootingProblem:
    """A problem that was pickled."""
    problem: ShootingProblem = cls.__new__(cls)
    problem._declare(*arguments)
    problem.data, problem.u_lower, problem.u_upper = data, lower, upper
    return problem


def dynamics_of(robot: Any, constraints: Sequence[Constraint], method: str) -> ConstrainedDynamics:
    """What was given as a robot: with its constraints, or a model that gets these."""
    if isinstance(robot, ConstrainedDynamics):
        return robot
    if not isinstance(robot, Model):
        raise ModelError(f"ShootingProblem: the robot is {robot!r}, expected a Model or ConstrainedDynamics")
    return ConstrainedDynamics(robot, constraints, method)


def names_of(terms: TermSet) -> str:
    return ", ".join(terms.places)
