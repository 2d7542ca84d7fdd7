"""The package's functions inside JAX: values, gradients, `jit` and `vmap`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import saltus as sl
from tests.closeness import assert_close, with_rounding
from tests.generators import floating_tree, random_state
from tests.kernel.cases import all_kinds

pytestmark = pytest.mark.slow  # which installs it
jax = pytest.importorskip("jax")
jnp: Any = pytest.importorskip("jax.numpy")


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("name", ["rnea", "aba", "nonlinear_effects", "crba"])
def test_gradients(name: str) -> None:
    """Those of JAX are ours, in coordinates: along the tangent they are differences of the function."""
    model = all_kinds()
    state, rng, h = random_state(model, 1), np.random.default_rng(2), 1e-6
    given = {"rnea": "q v a", "aba": "q v tau", "nonlinear_effects": "q v", "crba": "q"}[name].split()
    inputs = [getattr(state, each) for each in given]
    plain = getattr(sl, name)
    function, weights = sl.jax_function(plain, model), rng.normal(size=plain(model, *inputs).shape)

    def loss(*x: Any) -> Any:
        return (function(*x) * weights).sum()

    assert_close(float(loss(*inputs)), float((plain(model, *inputs) * weights).sum()), 1e-12)
    gradients = jax.jit(jax.grad(loss, argnums=tuple(range(len(inputs)))))(*inputs)
    dq, *changes = (rng.normal(size=(model.nv)) for _ in inputs)
    ahead, behind = (sl.integrate(model, state.q, sign * h * dq) for sign in (1.0, -1.0))
    moved = [(ahead, behind), *((x + h * dx, x - h * dx) for x, dx in zip(inputs[1:], changes, strict=True))]
    expected = sum(
        plain(model, *side).ravel() @ weights.ravel() * sign
        for side, sign in zip(zip(*moved, strict=True), (1, -1), strict=True)
    )
    slope = sum(float(g @ ((one - other) / (2 * h))) for g, (one, other) in zip(gradients, moved, strict=True))
    assert_close(slope, expected / (2 * h), 1e-6)


def test_vmap_is_a_batch() -> None:
    model = floating_tree(2, 4)
    state = random_state(model, 3, (5, 3))
    aba = sl.jax_function(sl.aba, model)
    a = jax.jit(jax.vmap(aba, in_axes=(0, None, 0)))(state.q, state.v[0], state.tau[:, 0])
    expected = sl.aba(model, state.q, state.v[0], state.tau[:, :1])
    assert_close(np.asarray(a), expected, 1e-12)
    slope = jax.vmap(jax.grad(lambda tau, q, v: aba(q, v, tau).sum()))(state.tau[:, 0], state.q[:, 0], state.v[:, 0])
    inverse = sl.minverse(model, state.q[:, 0])
    assert_close(np.asarray(slope), inverse.sum(-2), 1e-10)


def test_broadcast() -> None:
    """The gradient of an input that serves all samples is the sum over them."""
    model = all_kinds()
    state = random_state(model, 4, (4,))
    aba = sl.jax_function(sl.aba, model)
    slope = jax.grad(lambda v: aba(state.q, v, state.tau).sum())(jnp.asarray(state.v[0]))
    _, (_, dv, _) = sl.vjp(sl.aba, model, (state.q, state.v[0], state.tau), np.ones(model.nv))
    assert_close(np.asarray(slope), dv.sum(0), 1e-11)


def test_through_integrate() -> None:
    model = floating_tree(2, 3)
    state, h = random_state(model, 5), 1e-6
    integrate, rnea = sl.jax_function(sl.integrate, model), sl.jax_function(sl.rnea, model)
    dq, direction = np.full(model.nv, 0.1), np.random.default_rng(6).normal(size=model.nv)
    slope = jax.grad(lambda dq: rnea(integrate(state.q, dq), state.v, state.a).sum())(dq)
    ends = [sl.rnea(model, sl.integrate(model, state.q, dq + s * direction), state.v, state.a).sum() for s in (h, -h)]
    assert_close(float(slope @ direction), (ends[0] - ends[1]) / (2 * h), 1e-7)


def test_frames_and_several_outputs() -> None:
    model = all_kinds()
    state = random_state(model, 7)
    frame = len(model.frames) - 1
    velocity = sl.jax_function(sl.frame_velocity, model)
    slope = jax.grad(lambda v: velocity(state.q, v, frame, "world")[2])(state.v)
    assert_close(np.asarray(slope), sl.frame_jacobian(model, state.q, frame, "world")[2], 1e-12)
    com = sl.jax_function(sl.center_of_mass, model)
    slope = jax.jit(jax.grad(lambda v: com(state.q, v)[1].sum()))(state.v)
    assert_close(np.asarray(slope), sl.center_of_mass_jacobian(model, state.q).sum(0), 1e-11)


def test_single_precision() -> None:
    model = all_kinds()
    inputs = [np.asarray(getattr(random_state(model, 8), name), np.float32) for name in ("q", "v", "tau")]
    doubles = [x.astype(np.float64) for x in inputs]
    tolerance = with_rounding(0.0, np.linalg.cond(sl.crba(model, doubles[0])), real=np.float32)
    aba = sl.jax_function(sl.aba, model)
    a, slope = aba(*inputs), jax.grad(lambda tau: aba(*inputs[:2], tau).sum())(inputs[2])
    assert a.dtype == slope.dtype == np.float32
    assert_close(np.asarray(a), sl.aba(model, *doubles), tolerance)
    assert_close(np.asarray(slope), sl.minverse(model, doubles[0]).sum(-2), tolerance)
