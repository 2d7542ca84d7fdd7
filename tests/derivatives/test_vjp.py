"""Vector-Jacobian products against forward differentiation of the algorithms themselves, on trees of all kinds of joints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.derivatives import integrate_vjp, pull_back
from saltus.dynamics.aba import _aba
from saltus.dynamics.rnea import _nonlinear_effects, _rnea
from saltus.kernel import ALGORITHMS, Algorithm
from saltus.kernel.forward import push_forward
from saltus.kernel.interpret import interpret
from saltus.model.manifold import _integrate
from tests.closeness import assert_close
from tests.generators import TREES, floating_tree, make_tree, mimic_tree, random_state
from tests.kernel.cases import all_kinds, random_inputs, run, sample, single_tolerance

FUNCTIONS = {
    "rnea": (sl.rnea, _rnea, ("q", "v", "a", "forces")),
    "nonlinear_effects": (sl.nonlinear_effects, _nonlinear_effects, ("q", "v", "forces")),
    "aba": (sl.aba, _aba, ("q", "v", "tau", "forces")),
}
KERNELS = [x for x in ALGORITHMS if x.kernel.__module__ in (pull_back.__name__, integrate_vjp.__name__)]

each_function = pytest.mark.parametrize("name", FUNCTIONS)
each_kernel = pytest.mark.parametrize("algorithm", KERNELS, ids=lambda algorithm: algorithm.name)


def slopes_by_duals(algorithm: Algorithm, model: sl.Model, inputs: list[Any]) -> list[np.ndarray]:
    """The Jacobian (directions, nv) by each input: of configurations along the tangent, of others along every entry."""
    jacobians = []
    for k, value in enumerate(inputs):
        if k == 0:
            _, (directions,) = push_forward(_integrate, model, (value, np.zeros(model.nv)), (None, np.eye(model.nv)))
        else:
            directions = np.eye(value.size).reshape(-1, *value.shape)
        slopes = [directions if k == l else None for l in range(len(inputs))]
        jacobians.append(push_forward(algorithm, model, inputs, slopes)[1][0])
    return jacobians


def check(name: str, model: sl.Model, inputs: list[Any], weights: np.ndarray, tolerance: float) -> None:
    function, algorithm, _ = FUNCTIONS[name]
    output, gradients = sl.vjp(function, model, inputs, weights)
    scale = np.abs(algorithm.call(model, tuple(inputs))).max()
    assert_close(output, function(model, *inputs), 1e-12 if name != "aba" else 1e-9, scale)
    jacobians = slopes_by_duals(algorithm, model, inputs)
    assert len(gradients) == len(inputs)
    sizes = [float((np.abs(jacobian) @ np.abs(weights)).max()) for jacobian in jacobians]  # of what is summed up
    for k, (gradient, jacobian) in enumerate(zip(gradients, jacobians, strict=True)):
        assert_close(gradient.ravel(), jacobian @ weights, tolerance, sizes[k] or max(sizes), f"{name}: input {k}")


@each_function
@pytest.mark.parametrize(("seed", "bodies"), TREES[::8])
def test_against_duals(name: str, seed: int, bodies: int) -> None:
    tree = make_tree(seed, bodies)
    weights = np.random.default_rng(seed).normal(size=tree.model.nv)
    given = FUNCTIONS[name][2]
    inputs = [getattr(tree.state, each) for each in given]
    condition = np.linalg.cond(sl.crba(tree.model, tree.state.q)) if name == "aba" else 1.0
    check(name, tree.model, inputs if seed % 2 else inputs[:-1], weights, 1e-13 * max(condition, 10.0))


@each_function
def test_free_flyers(name: str) -> None:
    model = floating_tree(3, 12)
    state, weights = random_state(model, 5), np.random.default_rng(6).normal(size=model.nv)
    check(name, model, [getattr(state, each) for each in FUNCTIONS[name][2]], weights, 1e-11)


@each_function
def test_mimic_joints(name: str) -> None:
    """Gradients along the joints that are free are differences of the function along them."""
    model = mimic_tree(3, 12)
    assert any(joint.mimic for joint in model.joints)
    function, _, given = FUNCTIONS[name]
    state, rng, h = random_state(model, 7), np.random.default_rng(8), 1e-6
    inputs = [getattr(state, each) for each in given]
    weights, dq, *changes = (
        rng.normal(size=model.nv),
        rng.normal(size=model.nv),
        *(rng.normal(size=x.shape) for x in inputs[1:]),
    )
    _, gradients = sl.vjp(function, model, inputs, weights)

    def moved(h: float) -> np.ndarray:
        others = [x + h * change for x, change in zip(inputs[1:], changes, strict=True)]
        return weights @ function(model, sl.integrate(model, inputs[0], h * dq), *others)

    expected = (moved(h) - moved(-h)) / (2 * h)
    slope = sum(np.vdot(gradient, change) for gradient, change in zip(gradients, (dq, *changes), strict=True))
    assert_close(slope, expected, 1e-7)


@each_function
def test_leading_axes(name: str) -> None:
    """Every input may lack the leading axes of others."""
    model = all_kinds()
    function, _, given = FUNCTIONS[name]
    state, weights = random_state(model, 9, (4, 3)), np.random.default_rng(10).normal(size=(3, model.nv))
    inputs = [getattr(state, each) for each in given]
    inputs[1] = inputs[1][0, 0]
    output, gradients = sl.vjp(function, model, inputs, weights)
    for place in np.ndindex(4, 3):
        one = [inputs[0][place], inputs[1], *(x[place] for x in inputs[2:])]
        single, single_gradients = sl.vjp(function, model, one, weights[place[1]])
        assert_close(output[place], single, 1e-12)
        assert_close(tuple(gradient[place] for gradient in gradients), single_gradients, 1e-11)


@pytest.mark.parametrize("size", [0.0, 0.1, 3.0])
def test_steps_along_the_manifold(size: float) -> None:
    model, rng = all_kinds(), np.random.default_rng(11)
    q, v, weights = sl.random_configuration(model, 12), size * rng.normal(size=model.nv), rng.normal(size=model.nq)
    result, gradients = sl.vjp(sl.integrate, model, (q, v), weights)
    assert_close(result, sl.integrate(model, q, v), 1e-15)
    for gradient, jacobian in zip(gradients, slopes_by_duals(_integrate, model, [q, v]), strict=True):
        assert_close(gradient, jacobian @ weights, 1e-13)


@pytest.mark.slow
@each_kernel
def test_lanes_equal_single_calls(algorithm: Algorithm) -> None:
    model, given = all_kinds(), len(algorithm.inputs)
    inputs = [x.astype(np.float32).astype(float) for x in random_inputs(algorithm, given, model, 2, (19,))]
    batch = run(algorithm, model, inputs)
    singles = run(algorithm, model, [x.astype(np.float32) for x in inputs])
    for k in range(19):
        one = run(algorithm, model, sample(algorithm, inputs, (k,)))
        for spec, many, single, single_precision in zip(algorithm.outputs, batch, one, singles, strict=True):
            assert_close(many[k], single, 1e-11, what=spec.name)
            assert single_precision.dtype == np.float32
            assert_close(single_precision[k], single, single_tolerance(model), what=spec.name)


@each_kernel
def test_interpreted_as_compiled(algorithm: Algorithm) -> None:
    model = all_kinds()
    inputs = random_inputs(algorithm, len(algorithm.inputs), model, 1)
    results = interpret(algorithm, model, [x.ravel().tolist() for x in inputs])
    for spec, one, other in zip(algorithm.outputs, results, run(algorithm, model, inputs), strict=True):
        assert_close(one.astype(float), other, 1e-11, what=spec.name)


def test_functions_without_a_rule() -> None:
    """By their Jacobians: several outputs, with axes of their own; inputs that are names have no gradient."""
    model = all_kinds()
    state, rng = random_state(model, 13, (3,)), np.random.default_rng(14)
    weights = rng.normal(size=(3, model.nv, model.nv))
    M, (dq,) = sl.vjp(sl.crba, model, (state.q,), weights)
    (slopes,) = sl.jacobian(sl.crba, model, (state.q,), mode="fdc")
    assert_close(M, sl.crba(model, state.q), 1e-14)
    assert_close(dq, np.einsum("bij,bijk->bk", weights, slopes), 1e-7)

    weights = rng.normal(size=(3, 6))
    _, (*gradients, none) = sl.vjp(sl.frame_acceleration, model, (state.q, state.v, state.a, 3), weights)
    slopes = sl.jacobian(sl.frame_acceleration, model, (state.q, state.v, state.a, 3), mode="fdc")
    assert none is None
    for gradient, slope in zip(gradients, slopes, strict=False):
        assert_close(gradient, np.einsum("bi,bik->bk", weights, slope), 1e-7)

    J, dJ = rng.normal(size=(2, 3, 6, model.nv))
    _, (dq, dv, none) = sl.vjp(sl.frame_jacobian_dot, model, (state.q, state.v, 3), (J, dJ))
    assert none is None
    by_q, by_v, _ = sl.jacobian(sl.frame_jacobian_dot, model, (state.q, state.v, 3), mode="fdc")
    assert_close(dq, sum(np.einsum("bij,bijk->bk", w, D) for w, D in zip((J, dJ), by_q, strict=True)), 1e-7)
    assert_close(dv, sum(np.einsum("bij,bijk->bk", w, D) for w, D in zip((J, dJ), by_v, strict=True)), 1e-7)
    with pytest.raises(ValueError, match="frame_jacobian_dot: 1 weights for 2 outputs"):
        sl.vjp(sl.frame_jacobian_dot, model, (state.q, state.v, 3), J)
