"""A pendulum on a cart, twice: for the library, and as Lagrange's equations written down with CasADi, which share nothing.

    minimal       x, angle                        the cart on its rail
    constrained   x, z, tilt, angle               the cart a box in the plane, kept on its rail by two rows of a contact:
                                                  no velocity along its own z, none about y

| symbol | what |
|---|---|
| `CART`, `BOB` | masses [kg] |
| `TURN_CART`, `TURN_BOB` | inertias about y through the centre of mass [kg m^2] |
| `ROD` | from the hinge, in the middle of the cart, to the pendulum's centre of mass [m] |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

import saltus as sl
from saltus.arrays import Array

CART, TURN_CART, BOB, TURN_BOB, ROD, G = 1.3, 0.2, 0.7, 0.05, 0.6, 9.81


def build(kinds: tuple[tuple[str, str], ...]) -> Any:
    """The library's model of the joints named, the pendulum's hinge last."""
    builder, parent = sl.ModelBuilder("cart-pendulum", physical=False), 0
    axes = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
    for n, (kind, axis) in enumerate((*kinds, ("revolute", "y"))):
        if n == len(kinds):
            builder.add_body(parent, mass=CART, inertia=np.diag([0.1, TURN_CART, 0.1]))
        parent = builder.add_joint(f"{kind} {axis} {n}", kind, parent=parent, axis=axes[axis])
    builder.add_body(parent, mass=BOB, com=(0.0, 0.0, -ROD), inertia=np.diag([0.05, TURN_BOB, 0.05]))
    return builder.build()


def lagrangian(constrained: bool, q: Any, v: Any) -> tuple[Any, Any]:
    """Inertia matrix M and rest b with M a + b = tau, from kinetic and potential energy."""
    x, z, tilt = (q[0], q[1], q[2]) if constrained else (q[0], 0.0, 0.0)
    angle = tilt + q[q.numel() - 1]
    bob = casadi.vertcat(x - ROD * casadi.sin(angle), z - ROD * casadi.cos(angle))

    def rate(place: Any) -> Any:
        return casadi.jtimes(place, q, v)

    def square(speed: Any) -> Any:
        return casadi.sumsqr(speed)

    cart, turns = casadi.vertcat(x, z), casadi.vertcat(tilt, angle)
    kinetic = 0.5 * (CART * square(rate(cart)) + BOB * square(rate(bob)))
    kinetic += 0.5 * (TURN_CART * rate(turns)[0] ** 2 + TURN_BOB * rate(turns)[1] ** 2)
    potential = G * (CART * z + BOB * bob[1])
    M = casadi.hessian(kinetic, v)[0]
    b = casadi.jtimes(M @ v, q, v) - casadi.gradient(kinetic, q) + casadi.gradient(potential, q)
    return M, b


def rail(q: Any, v: Any) -> Any:
    """The velocities that the rail forbids: of the box along its own z, and about y."""
    return casadi.vertcat(casadi.sin(q[2]) * v[0] + casadi.cos(q[2]) * v[1], v[2])


@dataclass(frozen=True)
class Case:
    """One algorithm on one model: ours, and the exact Jacobian of the same function."""

    name: str
    function: Callable[..., Any]
    model: Any
    given: int  # inputs: q, or q and v, or q, v and a third
    exact: Any  # casadi.Function: all inputs -> Jacobian of all outputs by all inputs


def cases(constrained: bool) -> list[Case]:
    kinds = (("prismatic", "x"), ("prismatic", "z"), ("revolute", "y")) if constrained else (("prismatic", "x"),)
    model = build(kinds)
    q, v, u = (casadi.SX.sym(name, model.nv) for name in "qvu")
    M, b = lagrangian(constrained, q, v)

    def case(name: str, function: Any, target: Any, given: int, value: Any) -> Case:
        inputs = [q, v, u][:given]
        value = casadi.simplify(value)
        return Case(name, function, target, given, casadi.Function(
            "exact", inputs, [casadi.densify(casadi.jacobian(value, casadi.vertcat(*inputs)))]))  # fmt: skip

    found = [
        case("CRBA", sl.crba, model, 1, casadi.vec(M.T)),
        case("RNEA", sl.rnea, model, 3, M @ u + b),
        case("NEFF", sl.nonlinear_effects, model, 2, b),
        case("ABA", sl.aba, model, 3, casadi.solve(M, u - b)),
    ]
    if constrained:
        held = [sl.Contact(model, "revolute y 2", rows=(2, 4))]
        J, drift = casadi.jacobian(rail(q, v), v), casadi.jtimes(rail(q, v), q, v)
        inverse = casadi.solve(M, casadi.horzcat(J.T, u - b))
        response, free = inverse[:, :2], inverse[:, 2]
        forces = casadi.solve(J @ response, -drift - J @ free)
        value = casadi.vertcat(free + response @ forces, forces)
        for method in ("constrained_aba", "prox_ltl"):
            dynamics = sl.ConstrainedDynamics(model, held, method, tolerance=1e-13)
            found.append(case(f"constrained, {method}", sl.ConstrainedDynamics.solve, dynamics, 3, value))
    return found


def exact_slopes(case: Case, inputs: tuple[Array, ...], directions: tuple[Array, ...]) -> Array:
    """(samples, directions, numbers of all outputs), of inputs (samples, n) along directions (samples, directions, n)."""
    samples = len(inputs[0])
    flat = np.asarray(case.exact.map(samples)(*(x.T for x in inputs)))
    J = flat.reshape(flat.shape[0], samples, -1).transpose(1, 0, 2)
    return np.asarray(np.concatenate(directions, -1) @ J.transpose(0, 2, 1))
