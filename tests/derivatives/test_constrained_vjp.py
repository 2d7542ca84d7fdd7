"""Vector-Jacobian products of constrained dynamics and of impacts against forward differentiation of the solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.derivatives.constrained_vjp import _constrained_vjp, _impact_vjp
from saltus.kernel import Algorithm
from saltus.kernel.interpret import interpret
from tests.closeness import assert_close
from tests.constraints.test_forms import problem
from tests.constraints.test_forms import random_inputs as inputs_of
from tests.generators import random_state
from tests.kernel.cases import all_kinds, run, sample, single_tolerance

SOLVE, IMPACT = sl.ConstrainedDynamics.solve, sl.ConstrainedDynamics.impact
MODEL = all_kinds()
STATE = random_state(MODEL, 1)
FRAMES = {frame.joint: k for k, frame in enumerate(MODEL.frames) if frame.kind == sl.FrameKind.JOINT}
"""A frame on each body."""


def anchor(frame: int) -> np.ndarray:
    """Not far from where the frame is."""
    return sl.frame_placement(MODEL, sl.integrate(MODEL, STATE.q, np.full(MODEL.nv, 0.05)), frame)


CONSTRAINTS: dict[str, Callable[[], list[sl.Constraint]]] = {
    "point": lambda: [sl.Contact(MODEL, FRAMES[8])],
    "surface": lambda: [sl.Contact(MODEL, FRAMES[8], 6)],
    "velocity gain": lambda: [sl.Contact(MODEL, FRAMES[8], kd=2.0), sl.Contact(MODEL, FRAMES[5], kd=3.0)],
    "pulled point": lambda: [sl.Contact(MODEL, FRAMES[8], anchor=anchor(FRAMES[8]), kp=5.0, kd=2.0)],
    "pulled surface": lambda: [sl.Contact(MODEL, FRAMES[8], 6, anchor=anchor(FRAMES[8]), kp=5.0, kd=2.0)],
    "wheel": lambda: [sl.Contact(MODEL, FRAMES[8], rows=(1, 3))],
    "tied points": lambda: [sl.LoopClosure(MODEL, FRAMES[10], FRAMES[8], 3, kp=3.0, kd=1.0)],
    "hinge": lambda: [sl.LoopClosure(MODEL, FRAMES[9], FRAMES[8], 5, kp=3.0, kd=1.0)],
    "weld": lambda: [sl.LoopClosure(MODEL, FRAMES[9], FRAMES[8], 6)],
    "twice the same": lambda: [sl.Contact(MODEL, FRAMES[8]), sl.Contact(MODEL, FRAMES[8])],
    "users' rows": lambda: [sl.Contact(MODEL, FRAMES[8]), sl.UserRows(MODEL, 2, [1, 4, 7])],
}
each_set = pytest.mark.parametrize("name", CONSTRAINTS)


def dynamics_of(name: str) -> tuple[sl.ConstrainedDynamics, np.ndarray | None]:
    """The dynamics, and the rows of users if there are any."""
    dynamics = sl.ConstrainedDynamics(MODEL, CONSTRAINTS[name](), method="prox_ltl", mu=1e-4)
    if not dynamics.problem.nu:
        return dynamics, None
    rows = np.zeros((dynamics.problem.nu, MODEL.nv))
    rows[:, [1, 4, 7]] = np.random.default_rng(2).normal(size=(len(rows), 3))
    return dynamics, rows


def weights_of(dynamics: sl.ConstrainedDynamics, leading: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.normal(size=(*leading, dynamics.model.nv)), rng.normal(size=(*leading, dynamics.problem.nm))


def check(function: Any, dynamics: sl.ConstrainedDynamics, inputs: tuple[Any, ...], tolerance: float) -> None:
    """All gradients that there are, with weights on motions, on forces, and on both."""
    motions, forces = weights_of(dynamics)
    jacobians = sl.jacobian(function, dynamics, inputs, mode="ad")
    for weights in ((motions, forces), (motions, None), (None, forces)):
        output, gradients = sl.vjp(function, dynamics, inputs, weights)
        assert_close(output[0] if function is SOLVE else output.v, jacobians_base(function, dynamics, inputs), 1e-12)
        for k, (gradient, entry) in enumerate(zip(gradients, jacobians, strict=True)):
            assert (gradient is None) == (entry is None)
            if entry is not None:
                parts = zip(weights, entry, strict=True)
                expected = sum(np.tensordot(w, J, 1) for w, J in parts if w is not None)
                assert_close(gradient, expected, tolerance, what=f"input {k}")


def jacobians_base(function: Any, dynamics: sl.ConstrainedDynamics, inputs: tuple[Any, ...]) -> np.ndarray:
    solution = function(dynamics, *inputs)
    return solution.a if function is SOLVE else solution.v


@each_set
def test_dynamics(name: str) -> None:
    dynamics, rows = dynamics_of(name)
    target: Any = np.random.default_rng(4).normal(size=dynamics.problem.nm)
    if name == "twice the same":  # targets may change only if they all do, of which a Jacobian knows nothing
        target = None
    check(SOLVE, dynamics, (STATE.q, STATE.v, STATE.tau, None, target, None, STATE.forces, rows), 1e-8)


@each_set
def test_impacts(name: str) -> None:
    dynamics, rows = dynamics_of(name)
    check(IMPACT, dynamics, (STATE.q, STATE.v, None, 0.3, rows), 1e-8)


def test_redundant_rows_that_turn() -> None:
    """Five degrees of freedom under six rows: which forces do nothing depends on the configuration. At rest there is a
    solution, and at impacts always."""
    surface = [sl.Contact(MODEL, FRAMES[3], 6)]
    assert np.linalg.matrix_rank(sl.frame_jacobian(MODEL, STATE.q, FRAMES[3])) == 5
    dynamics = sl.ConstrainedDynamics(MODEL, surface, "prox_ltl", mu=1e-4, tolerance=1e-12)
    still, (motions, forces) = np.zeros(MODEL.nv), weights_of(dynamics)
    by_q, _, by_tau = sl.jacobian(SOLVE, dynamics, (STATE.q, still, STATE.tau), mode="ad")
    _, (dq, _, dtau) = sl.vjp(SOLVE, dynamics, (STATE.q, still, STATE.tau), (motions, forces))
    assert_close(dq, motions @ by_q[0] + forces @ by_q[1], 1e-8)
    assert_close(dtau, motions @ by_tau[0] + forces @ by_tau[1], 1e-8)
    check(IMPACT, dynamics, (STATE.q, STATE.v, None, 0.3), 1e-7)


@pytest.mark.parametrize("method", ["constrained_aba", "prox_ltls", "prox_pv", "kkt", "soft"])
def test_methods(method: str) -> None:
    """Gradients are those of the Jacobians, whatever solved the system; springs have a single iteration."""
    robot = sl.load_robot("quadruped")
    feet = [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet]
    dynamics, state = sl.ConstrainedDynamics(robot, feet, method), random_state(robot, 5)
    inputs = (robot.reference_configurations["standing"], state.v, state.tau)
    weights = weights_of(dynamics)
    D = dynamics.derivatives(*inputs)
    _, gradients = sl.vjp(SOLVE, dynamics, inputs, weights)
    for gradient, name in zip(gradients, ("dq", "dv", "dtau"), strict=True):
        expected = weights[0] @ getattr(D, f"da_{name}") + weights[1] @ getattr(D, f"df_{name}")
        assert_close(gradient, expected, 1e-8)


def test_masks_and_batches() -> None:
    """Samples of a batch have constraints of their own; what is not active has no gradients."""
    robot = sl.load_robot("quadruped")
    feet = [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet]
    dynamics, state = sl.ConstrainedDynamics(robot, feet), random_state(robot, 6, (5, 2))
    active = np.random.default_rng(7).integers(0, 2, (5, 2, 4)).astype(float)
    target, weights = np.zeros(12), weights_of(dynamics, (2,))
    _, (dq, dv, dtau, none, dtarget) = sl.vjp(
        SOLVE, dynamics, (state.q, state.v[0, 0], state.tau, active, target), weights
    )
    assert none is None
    assert not dtarget[active.repeat(3, axis=-1) == 0].any()
    for place in np.ndindex(5, 2):
        one = (state.q[place], state.v[0, 0], state.tau[place], active[place], target)
        _, single = sl.vjp(SOLVE, dynamics, one, tuple(w[place[1]] for w in weights))
        for many, few in zip((dq, dv, dtau, dtarget), (*single[:3], single[4]), strict=True):
            assert_close(many[place], few, 1e-8, scale=float(np.abs(many).max()))


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", [_constrained_vjp, _impact_vjp], ids=lambda algorithm: algorithm.name)
def test_forms(algorithm: Algorithm) -> None:
    """Lanes of a packet equal single calls, in single precision too, and what is interpreted."""
    inputs = [x.astype(np.float32).astype(float) for x in inputs_of(algorithm, 2, (9,))]
    batch = run(algorithm, problem(algorithm), inputs)
    singles = run(algorithm, problem(algorithm), [x.astype(np.float32) for x in inputs])
    for k in range(9):
        one = run(algorithm, problem(algorithm), sample(algorithm, inputs, (k,)))
        for spec, many, few, single in zip(algorithm.outputs, batch, one, singles, strict=True):
            assert_close(many[k], few, 1e-10, what=spec.name)
            assert_close(single[k], few, single_tolerance(MODEL), what=spec.name)
    few = sample(algorithm, inputs, (0,))
    results = interpret(algorithm, problem(algorithm), [x.ravel().tolist() for x in few])
    for spec, interpreted, compiled in zip(
        algorithm.outputs, results, run(algorithm, problem(algorithm), few), strict=True
    ):
        assert_close(interpreted.astype(float), compiled, 1e-10, what=spec.name)


def test_refusal() -> None:
    dynamics, _ = dynamics_of("point")
    with pytest.raises(ValueError, match="vjp: expected two weights"):
        sl.vjp(SOLVE, dynamics, (STATE.q, STATE.v, STATE.tau), np.ones(7))
