"""The modes of differentiation agree with each other, on every kind of joint, and take what they are given as it comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.derivatives.forward import coordinate_rates
from tests.closeness import assert_close
from tests.generators import floating_tree, mimic_tree
from tests.kernel.test_memory import in_new_process

TREE = sl.random_model(seed=3, bodies=9)  # every kind of joint
FRAME = TREE.frames[-1].name
RNG = np.random.default_rng(0)
Q, V, A = sl.random_configuration(TREE, RNG, 3), *RNG.normal(size=(2, 3, TREE.nv))
FORCES = RNG.normal(size=(3, TREE.njoints, 6))

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "crba": (sl.crba, (Q,)),
    "rnea": (sl.rnea, (Q, V, A)),
    "rnea with forces": (sl.rnea, (Q, V, A, FORCES)),
    "nonlinear_effects": (sl.nonlinear_effects, (Q, V)),
    "gravity": (sl.gravity, (Q,)),
    "aba": (sl.aba, (Q, V, A)),
    "minverse": (sl.minverse, (Q,)),
    "frame_placement": (sl.frame_placement, (Q, FRAME)),
    "frame_velocity": (sl.frame_velocity, (Q, V, FRAME, "world")),
    "frame_acceleration": (sl.frame_acceleration, (Q, V, A, FRAME)),
    "frame_jacobian": (sl.frame_jacobian, (Q, FRAME, "local_world_aligned")),
    "center_of_mass": (sl.center_of_mass, (Q, V, A)),
    "centroidal_momentum_matrix": (sl.centroidal_momentum_matrix, (Q,)),
    "centroidal_momentum_rate": (sl.centroidal_momentum_rate, (Q, V, A)),
    "kinetic_energy": (sl.kinetic_energy, (Q, V)),
    "potential_energy": (sl.potential_energy, (Q,)),
}


def parts(jacobians: tuple[Any, ...]) -> list[Any]:
    """All arrays of what `jacobian` returns."""
    return [x for entry in jacobians if entry is not None for x in (entry if isinstance(entry, tuple) else (entry,))]


STEEP = {"aba": 30.0, "minverse": 100.0}
"""What inverts the inertia matrix has larger second and third derivatives, beside which these slopes are small."""


@pytest.mark.parametrize("name", CASES)
def test_differences_agree_with_dual_numbers(name: str) -> None:
    function, inputs = CASES[name]
    exact = parts(sl.jacobian(function, TREE, inputs))
    values = max(float(np.abs(x).max()) for x in parts((function(TREE, *inputs),)))  # differences lose digits of these
    for mode, tolerance in (("fd", 1e-6), ("fdc", 1e-9)):
        for ours, right in zip(parts(sl.jacobian(function, TREE, inputs, mode)), exact, strict=True):
            scale = max(1.0, values, float(np.abs(right).max())) * STEEP.get(name, 1.0)
            assert_close(ours, right, tolerance, scale, f"{name}, {mode}")


@pytest.mark.parametrize("name", ["rnea", "aba", "crba", "center_of_mass"])
def test_one_sample_and_a_batch_are_the_same(name: str) -> None:
    function, inputs = CASES[name]
    many = parts(sl.jacobian(function, TREE, inputs))
    for k in range(3):
        one = parts(sl.jacobian(function, TREE, tuple(x[k] for x in inputs)))
        for ours, right in zip(one, many, strict=True):
            assert np.array_equal(ours, right[k])


@pytest.mark.parametrize("mode", ["fd", "fdc", "ad", "analytical"])
@pytest.mark.parametrize("count", [None, 1, 2, 7])
def test_slopes_are_products_with_the_jacobian(mode: str, count: int | None) -> None:
    """One direction or several, of some inputs or all, for one sample and for batches; one direction for all samples."""
    rng, several = np.random.default_rng(1), () if count is None else (count,)
    Js = sl.jacobian(sl.rnea, TREE, (Q, V, A))
    tolerance = {"fd": 1e-6, "fdc": 1e-9}.get(mode, 1e-13)
    shapes: list[tuple[Any, tuple[int, ...]]] = [(1, ()), (slice(None), (3,)), (slice(None), (1,))]
    for which, leading in shapes:
        inputs, jacobians = (Q[which], V[which], A[which]), [J[which] for J in Js]
        directions = [None, *rng.normal(size=(2, *leading, *several, TREE.nv))]
        right: Any = 0.0
        for J, d in zip(jacobians[1:], directions[1:], strict=True):
            right = right + np.einsum("...ij,...j->...i", J if count is None else np.expand_dims(J, -3), d)
        value, ours = sl.jvp(sl.rnea, TREE, inputs, tuple(directions), mode)
        assert_close(value, sl.rnea(TREE, *inputs), 1e-13)
        assert_close(ours, right, tolerance)


@pytest.mark.parametrize("model", [floating_tree(5, 6), sl.random_model(seed=1, bodies=4, kinds=["revolute"])])
@pytest.mark.parametrize("count", [None, 1, 2, 5])
def test_short_and_long_way_give_the_same_numbers(model: sl.Model, count: int | None) -> None:
    """Contiguous arrays of one sample go a way of their own, once it is made; lists go the long way."""
    rng = np.random.default_rng(2)
    inputs = (sl.random_configuration(model, rng), *rng.normal(size=(2, model.nv)))
    directions = (*rng.normal(size=(2, model.nv) if count is None else (2, count, model.nv)), None)
    long = sl.jvp(sl.aba, model, list(inputs), list(directions))
    for _ in range(2):
        short = sl.jvp(sl.aba, model, inputs, directions)
        assert np.array_equal(short[0], long[0]) and np.array_equal(short[1], long[1])
        assert short[1].shape == ((model.nv,) if count is None else (count, model.nv))


def test_nothing_is_left_behind() -> None:
    """Of the short way's results, which compiled code makes and hands over."""
    import gc
    import tracemalloc

    inputs, directions = (Q[0], V[0], A[0]), tuple(np.ones((3, 2, TREE.nv)))
    sl.jvp(sl.rnea, TREE, inputs, directions)

    def growth() -> int:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(500):
            sl.jvp(sl.rnea, TREE, inputs, directions)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        assert min(growth() for _ in range(4)) < 10_000  # other threads may allocate once, but not each time
    finally:
        tracemalloc.stop()


CALLS = """
import sys
import numpy as np, saltus as sl
model = sl.random_model(seed=0, bodies=3)
q, v = model.neutral(), np.ones(model.nv)
sl.jvp(sl.rnea, model, (q, v, v), (v, v, v)), sl.jacobian(sl.rnea, model, (q, v, v))
print("saltus.kernel.walk" in sys.modules)
"""


def test_a_second_process_does_not_compile() -> None:
    in_new_process(CALLS)
    assert in_new_process(CALLS).split() == ["False"]


def test_rates_of_coordinates() -> None:
    """Against central differences of a step along the manifold."""
    h = 1e-6
    central = (sl.integrate(TREE, Q, h * V) - sl.integrate(TREE, Q, -h * V)) / (2 * h)
    assert_close(coordinate_rates(TREE, Q, V), central, 1e-9)


def test_mimic_joints_have_finite_differences() -> None:
    model = mimic_tree(1, 6)
    q, v = sl.random_configuration(model, 0), np.random.default_rng(1).normal(size=model.nv)
    ahead = sl.nonlinear_effects(model, sl.integrate(model, q, 1e-6 * v), v)
    behind = sl.nonlinear_effects(model, sl.integrate(model, q, -1e-6 * v), v)
    _, slope = sl.jvp(sl.nonlinear_effects, model, (q, v), (v, None), "fdc")
    assert_close(slope, (ahead - behind) / 2e-6, 1e-7)
    with pytest.raises(TypeError, match="mimic joints"):
        sl.jvp(sl.nonlinear_effects, model, (q, v), (v, None), "ad")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((sl.rnea, TREE, (Q, V, A), (V, None)), "rnea: 2 directions for 3 inputs"),
        ((sl.rnea, TREE, (Q, V, A), (None, None, None)), "rnea: no input has a direction"),
        ((sl.rnea, TREE, (Q, V, A), (Q, None, None)), r"rnea: the direction of q has shape \(3, \d+\), expected"),
        ((sl.rnea, TREE, (Q, V, A), (V[:2], None, None)), "rnea: the directions' leading axes, q"),
        ((sl.rnea, TREE, (Q[0], V[0], A[0]), (V[:2], V, None)), "rnea: the directions' leading axes, q"),
        ((sl.rnea, TREE, (Q, V[:2], A), (V, None, None)), "rnea: the leading axes do not broadcast together"),
        ((sl.rnea, TREE, (Q, V, A), (V, None, None), "exact"), "rnea: mode is 'exact', expected one of"),
        (
            (sl.frame_velocity, TREE, (Q, V, FRAME), (V, None, V)),
            "frame_velocity: frame has a direction, expected None",
        ),
        ((sl.minverse, TREE, (Q,), (V,), "analytical"), "minverse: has no analytical derivative"),
        ((sl.rnea, TREE, (Q, V, A), (V * np.nan, None, None)), "nan, expected finite numbers"),
        ((sl.rnea, TREE, (2 * Q, V, A), (V, None, None)), "has norm 2, expected 1"),
    ],
)
def test_what_is_wrong_is_named(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sl.jvp(*arguments)


def test_what_has_no_derivative_is_named() -> None:
    with pytest.raises(TypeError, match="the model is a str"):
        sl.jvp(sl.rnea, "robot", (Q, V, A), (V, None, None))
    with pytest.raises(TypeError, match="ltl: returns a LTL"):
        sl.jvp(sl.ltl, TREE, (sl.crba(TREE, Q),), (sl.crba(TREE, Q),), "fd")
    with pytest.raises(TypeError, match="rnea: q is not an array of numbers"):
        sl.jacobian(sl.rnea, TREE, ("q", V, A))
    with pytest.raises(TypeError, match="rnea: expected the inputs q, v, a, forces, got 5"):
        sl.jacobian(sl.rnea, TREE, (Q, V, A, FORCES, V))


@pytest.mark.parametrize("mode", ["fdc", "ad", "analytical"])
@pytest.mark.parametrize("shape", [(0,), (3, 0)], ids=str)
def test_empty_batches(mode: str, shape: tuple[int, ...]) -> None:
    model = sl.random_model(seed=1, bodies=4, kinds=["revolute"])
    x = np.zeros((*shape, 4))
    for directions in (x, np.zeros((*shape, 2, 4)), np.zeros(4)):
        a, slope = sl.jvp(sl.aba, model, (x, x, x), (directions, None, None), mode=mode)
        assert a.shape == x.shape
        assert slope.shape == (*shape, 2, 4) if directions.ndim > x.ndim else slope.shape == x.shape
    assert [J.shape for J in sl.jacobian(sl.aba, model, (x, x, x), mode=mode)] == [(*shape, 4, 4)] * 3


@pytest.mark.parametrize("mode", ["fdc", "ad", "analytical"])
@pytest.mark.parametrize("shape", [(), (5,)], ids=str)
def test_no_directions_at_all(mode: str, shape: tuple[int, ...]) -> None:
    """The outputs are there all the same, by the long way and by the short one."""
    model = sl.random_model(seed=1, bodies=4, kinds=["revolute"])
    x = np.ones((*shape, 4))
    right = sl.aba(model, x, x, x)
    for _ in range(2):
        a, slope = sl.jvp(sl.aba, model, (x, x, x), (np.zeros((*shape, 0, 4)), None, None), mode=mode)
        assert_close(a, right, 1e-13)
        assert slope.shape == (*shape, 0, 4)
