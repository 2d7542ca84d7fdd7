"""How a step through contact changes with the state it starts from and with torques: its linearisation.

    F(x; y) = x - P(x - r u) = 0,      dx = -(dF/dx)^-1 dF/dy,      y = (q, v, tau)

by the implicit function theorem on the contact problem that was solved: contacts that stick stay where they are, those that
slide turn with their velocities, open ones have no impulse. One step of Newton's method from the solution on is

    x - (dF/dx)^-1 F(x; y),

whose value is x and whose slope along y is dx: run on dual numbers (forward.py), the kernels of a step with that in the
place of the solver give derivatives that are exact to rounding. Where modes change (a contact closes, or begins to slide),
there is no derivative; what is found is that of one side.

    q+ = q (+) d,      dq+ = Ad(exp d)^-1 dq + J(d) dd                    d: coasting.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from saltus.arrays import Array
from saltus.collision.contacts import find_contacts
from saltus.derivatives.forward import coordinate_rates
from saltus.kernel import declare, kernel, ld, less, lift, select, some, tail, zero
from saltus.kernel.sloped import Sloped
from saltus.model.manifold import difference, integrate
from saltus.model.manifold_jacobians import integrate_jacobians
from saltus.simulation.coasting import find_way, turn_along
from saltus.simulation.commands import PDTargets
from saltus.simulation.contact_newton import begin, find_rates, judge
from saltus.simulation.contact_rows import find_rows, let_be
from saltus.simulation.contact_step import PER_STEP, WORK, add_impulses, begin_from, begin_step, recall
from saltus.simulation.contact_system import assemble, eliminate
from saltus.simulation.simulated import TABLES
from saltus.simulation.step_derivatives import StepDerivatives

PULLED = 1e-9
"""The share of home in the last steps (contact_newton.py): contacts that are more than needed are held by it."""

AGAIN = 2
"""Newton's steps: one for what the solver has left, one for slopes."""


@kernel
def polish(w, first, n, law):
    """Newton's steps without a line search, from a solution on."""
    o = zero(w.delassus)
    begin(w, first, n)
    for _ in range(AGAIN):
        for i in range(n):
            w.home[i] = w.impulse[i]
        m, symmetric = assemble(w, first, n, law, PULLED + o, False)
        eliminate(w, n, m, symmetric, False)
        for i in range(n):
            w.impulse[i] = w.impulse[i] + w.step[i]
        find_rates(w, n)


@kernel
def as_solved(tree, w, first, n, law, tolerance):
    """The problem that known impulses solve: this one, or that in which what overlaps need not part."""
    o, one = zero(w.delassus), lift(1.0, zero(w.delassus))
    begin(w, first, n)
    for i in range(n):
        w.home[i] = w.impulse[i]
    _, parts = judge(w, first, n, law, None, o)
    if some(less(tolerance * tolerance, parts)):
        let_be(tree, first, n, one, w)
        find_rates(w, n)
        _, stays = judge(w, first, n, law, None, o)
        wedged = select(less(tolerance * tolerance, parts), select(less(stays, parts), one, o), o)
        let_be(tree, first, n, wedged - one, w)


@declare(
    TABLES,
    inputs={"plan": "2 int", "pushed": "npush int"} | PER_STEP | {
        "at": "npush 3", "push": "npush 3", "tau": "nv", "kp": "nv", "kd": "nv", "target": "nq optional",
    },
    outputs={"after": "nv", "way": "nv"},
    work=WORK,
    inverts_inertia=True,
    valued=False,
)  # fmt: skip
def _contact_velocities(
    tree, plan, pushed, q, v, held, touch, settings, effort, at, push, tau, kp, kd, target, w, after, way
):
    """Velocities after a step whose impulses are known, and the way that it leads. `plan`: law, pushes."""
    begin_from(tree, held, touch, w)
    begin_step(tree, q, v, settings, tau, target, kp, kd, effort, plan[1], pushed, at, push, w)
    w.origin[0] = w.place[0].p * -1.0
    find_contacts(tree, w)
    first, n, _ = find_rows(tree, q, v, ld(settings, 0), tail(settings, 3), w)
    recall(first, n, w)
    as_solved(tree, w, first, n, plan[0], ld(settings, 1))
    polish(w, first, n, plan[0])
    add_impulses(tree, first, n, w)
    for i in range(1, tree.nj):
        find_way(tree, i, w.mean, ld(settings, 0), way)
        turn_along(tree, i, w.speed, w.mean, ld(settings, 0), after)


def differentiate_step(problem: Any, given: dict[str, Any]) -> StepDerivatives:
    """Of a step whose impulses are known; `given`: what the kernel takes, by name."""
    nv, model = problem.nv, problem.model
    q, v, tau = (given[name] for name in ("q", "v", "tau"))
    leading = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], tau.shape[:-1])
    directions = np.eye(3 * nv).reshape(3 * nv, *[1] * len(leading), 3 * nv)

    def sloped(x: Any, slope: Any) -> Sloped:
        shape = (*leading, x.shape[-1])
        return Sloped(np.broadcast_to(x, shape), np.broadcast_to(slope, (3 * nv, *shape)))

    along_q = np.broadcast_to(directions[..., :nv], (3 * nv, *leading, nv))
    given |= {
        "q": sloped(q, coordinate_rates(model, q, along_q)),
        "v": sloped(v, directions[..., nv : 2 * nv]),
        "tau": sloped(tau, directions[..., 2 * nv :]),
    }
    names = [spec.name for spec in _contact_velocities.inputs if spec.name in given]
    after, way = _contact_velocities.call(problem, tuple(given[name] for name in names))
    along_q, along_way = integrate_jacobians(model, q, way.value)
    moved = along_way @ np.moveaxis(way.slopes, 0, -1)
    moved[..., :nv] += along_q
    return joined(integrate(model, q, way.value), after.value, moved, np.moveaxis(after.slopes, 0, -1))


def joined(q: Array, v: Array, along: Array, slopes: Array) -> StepDerivatives:
    """By the state after the step, and the slopes of both its parts (..., nv, 3 nv)."""
    nv = v.shape[-1]
    whole = np.concatenate([along, slopes], axis=-2)
    return StepDerivatives(q, v, whole[..., : 2 * nv], whole[..., 2 * nv :])


DISTANCE = 1e-6
"""Of central differences."""


def difference_step(
    simulator: Any, state: Sequence[Array], torques: Array, tau: Any, friction: Any, pushes: Any
) -> StepDerivatives:
    """The same by central differences of steps; `torques` (..., nv) are those of a command `tau`."""
    model = simulator.model
    nv = model.nv
    steps = DISTANCE * np.concatenate([np.eye(3 * nv), -np.eye(3 * nv), np.zeros((1, 3 * nv))])
    q, v = (x[..., None, :] for x in state[:2])
    torques = torques[..., None, :] + steps[:, 2 * nv :]
    moved = replace(tau, tau=torques) if isinstance(tau, PDTargets) else torques
    after = simulator.step(
        integrate(model, q, steps[:, :nv]), v + steps[:, nv : 2 * nv], moved, pushes=pushes,
        friction=np.asarray(friction)[..., None],
    )  # fmt: skip
    ahead, last = difference(model, after.q[..., -1:, :], after.q), after.v[..., -1, :]
    along, slopes = (
        np.swapaxes(x[..., : 3 * nv, :] - x[..., 3 * nv : 6 * nv, :], -1, -2) / (2.0 * DISTANCE)
        for x in (ahead, after.v)
    )
    return joined(after.q[..., -1, :], last, along, slopes)
