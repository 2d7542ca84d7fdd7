"""`on_invalid="mark"`: bad samples of a batch get NaN in all outputs, all others what they would have got without them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest

import saltus as sl
from tests.bad_inputs.in_algorithms import MIMIC

ROBOT = sl.load_robot("quadruped")
FEET = [sl.Contact(ROBOT, foot) for foot in sl.robot_frames("quadruped").feet]
COUNT, BAD = 21, [3, 7, 20]
GOOD = np.setdiff1d(np.arange(COUNT), BAD)
OTHERS = {"frame": 3, "joint": 3}


def states(model: sl.Model = ROBOT, **more: tuple[int, ...]) -> dict[str, Any]:
    """Inputs by the names of parameters, for `COUNT` samples, all of them valid."""
    rng = np.random.default_rng(0)
    configurations = {name: sl.random_configuration(model, seed, COUNT) for seed, name in enumerate(("q", "q0", "q1"))}
    motions = {name: rng.normal(size=(COUNT, model.nv)) for name in ("v", "a", "tau")}
    return configurations | motions | {name: rng.normal(size=(COUNT, *shape)) for name, shape in more.items()} | OTHERS


def spoiled(inputs: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Each way to be bad in another sample: a NaN, an infinity, and a quaternion that is too long where there is one."""
    changed = {name: inputs[name].copy() for name in names if name not in OTHERS}
    spoilt = list(changed.values())
    first, last = spoilt[0], spoilt[-1]
    last[BAD[0], ..., 0], first[BAD[1], ..., 1], first[BAD[2], ..., 0] = np.nan, np.inf, -np.inf
    for name in ("q", "q0"):
        if name in changed:
            changed[name][BAD[2]] = inputs[name][BAD[2]]
            changed[name][BAD[2], 3:7] *= 1.01
    return inputs | changed


def check(call: Callable[..., Any], inputs: dict[str, Any], names: list[str]) -> Any:
    """Marked where it should be, and else bit for bit what the good samples alone give."""
    bad = spoiled(inputs, names)
    with pytest.raises(ValueError, match="expected"):
        call(*(bad[name] for name in names))
    marked = call(*(bad[name] for name in names), on_invalid="mark")
    alone = call(*(inputs[name] if name in OTHERS else inputs[name][GOOD] for name in names))
    pairs = list(zip(arrays_in(marked), arrays_in(alone), strict=True))
    assert pairs
    for x, y in pairs:
        assert np.isnan(x[BAD]).all()
        np.testing.assert_array_equal(x[GOOD], y)
    return marked


def arrays_in(result: Any) -> list[Any]:
    """All arrays of a result, those of results within it as well."""
    if isinstance(result, np.ndarray):
        return [result]
    parts = result if isinstance(result, tuple) else list(getattr(result, "__dict__", {}).values())
    return [array for part in parts if isinstance(part, np.ndarray | tuple) for array in arrays_in(part)]


def names_of(function: Callable[..., Any]) -> list[str]:
    """The parameters without a default, the model or object left out."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD][1:]


WITHOUT = {
    "jvp": "directions have axes of their own",
    "vjp": "weights likewise",
    "second_directional": "directions likewise",
    "jacobian": "takes a function, and is tested by the modes of derivatives",
    "step_derivatives": "rollouts are marked",
    "rollout": "tests/simulation",
    "find_contacts": "what is there is masked, and a mask is true or false",
    "in_collision": "true or false, neither of which is a mark",
    "interpolate": "by itself below",
    "ltl": "by itself below",
}
FUNCTIONS = [
    name
    for name, value in vars(sl).items()
    if inspect.isfunction(value)
    and name not in WITHOUT
    and list(inspect.signature(value).parameters)[:1] == ["model"]
    and {"q", "q0", "M"} & set(inspect.signature(value).parameters)
]


def test_every_function_on_batches_can_mark() -> None:
    able = [name for name in FUNCTIONS if "on_invalid" in inspect.signature(getattr(sl, name)).parameters]
    assert able == FUNCTIONS and len(able) > 35
    for name in able:
        assert inspect.signature(getattr(sl, name)).parameters["on_invalid"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function = getattr(sl, name)
    check(partial(function, ROBOT), states(), names_of(function))


@pytest.mark.parametrize("mode", ["ad", "fd", "fdc"])
def test_modes_of_derivatives(mode: str) -> None:
    check(partial(sl.rnea_derivatives, ROBOT, mode=mode), states(), ["q", "v", "a"])


def test_factors_and_what_is_solved_with_them() -> None:
    M = sl.crba(ROBOT, states()["q"])
    factors = check(lambda M, **options: sl.ltl(ROBOT, M, **options), {"M": M}, ["M"])
    x = factors.solve(np.ones(ROBOT.nv), on_invalid="mark")
    np.testing.assert_array_equal(np.isnan(x).any(-1), np.isin(np.arange(COUNT), BAD))


def test_a_share_of_the_way() -> None:
    inputs = states() | {"u": np.linspace(0, 1, COUNT)[:, None]}
    check(lambda q0, q1, u, **options: sl.interpolate(ROBOT, q0, q1, u[:, 0], **options), inputs, ["q0", "q1", "u"])


METHODS = ["constrained_aba", "prox_pv", "prox_ltl", "prox_ltls", "kkt"]


@pytest.mark.parametrize("method", METHODS)
def test_constrained_dynamics(method: str) -> None:
    dynamics = sl.ConstrainedDynamics(ROBOT, FEET, method)
    solution = check(dynamics.solve, states(), ["q", "v", "tau"])
    assert (solution.status[BAD] == sl.Status.INVALID).all() and (solution.status[GOOD] == sl.Status.CONVERGED).all()
    assert not solution.iterations[BAD].any() and solution.iterations[GOOD].all()


CONSTRAINED = ["impact", "inverse_dynamics", "constraint_accelerations", "delassus", "osim", "osim_factors", "factor",
               "derivatives", "impact_derivatives", "constraint_acceleration_derivatives", "osim_times"]  # fmt: skip


@pytest.mark.parametrize("name", CONSTRAINED)
def test_what_else_is_computed_under_constraints(name: str) -> None:
    dynamics = sl.ConstrainedDynamics(ROBOT, FEET)
    result = check(getattr(dynamics, name), states(x=(12,)), names_of(getattr(sl.ConstrainedDynamics, name)))
    if name in ("impact", "inverse_dynamics"):
        assert (result.status[BAD] == sl.Status.INVALID).all() and (result.status[GOOD] != sl.Status.INVALID).all()


def test_masks_targets_starts_and_external_forces() -> None:
    inputs = states(active=(4,), target=(12,), start=(12,), external=(ROBOT.njoints, 6))
    inputs["active"] = (inputs["active"] > 0).astype(float)
    check(sl.ConstrainedDynamics(ROBOT, FEET).solve, inputs, ["q", "v", "tau", "active", "target", "start", "external"])


def test_what_was_not_computed_has_a_status_of_its_own() -> None:
    solution = sl.Solution(np.zeros(1), np.zeros(1), np.array([[5, 0, 0, 0, sl.Status.STOPPED], [np.nan] * 5]))
    assert solution.status.tolist() == [sl.Status.STOPPED, sl.Status.INVALID]
    assert solution.iterations.tolist() == [5, 0]


def test_mimic_joints() -> None:
    inputs = states(MIMIC)
    q, v, tau = inputs["q"].copy(), inputs["v"], inputs["tau"].copy()
    q[BAD[0], 0], q[BAD[1]], tau[BAD[2], 0] = np.nan, 2 * q[BAD[1]], np.inf
    for function in (partial(sl.aba, MIMIC), partial(sl.rnea, MIMIC), partial(sl.integrate, MIMIC)):
        names = [tau] if function.func is not sl.integrate else []
        with pytest.raises(ValueError, match="expected"):
            function(q, v, *names)
        marked = function(q, v, *names, on_invalid="mark")
        bad = BAD if names else BAD[:2]
        good = np.setdiff1d(np.arange(COUNT), bad)
        assert np.isnan(marked[bad]).all() and np.isfinite(marked[good]).all()
        np.testing.assert_allclose(marked[good], function(q[good], v[good], *(x[good] for x in names)), rtol=1e-12)


def test_one_sample_and_one_for_all() -> None:
    q, v, tau = ROBOT.neutral(), np.zeros(ROBOT.nv), np.full(ROBOT.nv, np.nan)
    assert np.isnan(sl.aba(ROBOT, q, v, tau, on_invalid="mark")).all()
    assert np.isnan(sl.aba(ROBOT, q, np.zeros((2, 3, ROBOT.nv)), tau, on_invalid="mark")).all()
    many = np.zeros((2, 3, ROBOT.nv))
    many[1, 2, 4] = np.inf
    marked = sl.aba(ROBOT, q, v, many, on_invalid="mark")
    assert np.isnan(marked[1, 2]).all() and np.isfinite(marked).all(-1).sum() == 5
    solution = sl.ConstrainedDynamics(ROBOT, FEET).solve(q, v, tau, on_invalid="mark")
    assert solution.status == sl.Status.INVALID and np.isnan(solution.forces).all()
    assert sl.aba(ROBOT, np.zeros((0, ROBOT.nq)), v, v, on_invalid="mark").shape == (0, ROBOT.nv)


def test_inputs_stay_as_they_are_and_results_may_take_their_place() -> None:
    inputs = spoiled(states(), ["q", "v"])
    q, v = inputs["q"].copy(), inputs["v"].copy()
    expected = sl.integrate(ROBOT, q, v, on_invalid="mark")
    np.testing.assert_array_equal(q, inputs["q"])
    assert sl.integrate(ROBOT, q, v, out=q, on_invalid="mark") is q
    np.testing.assert_array_equal(q, expected)


def test_single_precision() -> None:
    inputs = {name: np.asarray(x, np.float32) for name, x in states().items()}
    marked = check(partial(sl.crba, ROBOT), inputs, ["q"])
    assert marked.dtype == np.float32


def test_other_mistakes_still_raise() -> None:
    state = states()
    with pytest.raises(ValueError, match=r"^aba: v has shape \(3,\), expected"):
        sl.aba(ROBOT, state["q"], np.zeros(3), state["tau"], on_invalid="mark")
    with pytest.raises(TypeError, match="^crba: q is not an array of numbers"):
        sl.crba(ROBOT, "here", on_invalid="mark")


class OnGPU:
    """What says that it is there."""

    __cuda_array_interface__: ClassVar = {"shape": (19,), "typestr": "<f8", "data": (0, False), "version": 3}


@pytest.mark.parametrize("call", [sl.aba, sl.ConstrainedDynamics.solve, sl.jacobian], ids=lambda call: call.__name__)
@pytest.mark.parametrize("choice", ["ignore", None, "Mark", True])
def test_the_two_choices(call: Callable[..., Any], choice: Any) -> None:
    q, still = ROBOT.neutral(), np.zeros(ROBOT.nv)
    given = {
        sl.aba: (ROBOT, q, still, still),
        sl.ConstrainedDynamics.solve: (sl.ConstrainedDynamics(ROBOT, FEET), q, still, still),
        sl.jacobian: (sl.aba, ROBOT, (q, still, still)),
    }[call]
    with pytest.raises(ValueError, match=rf"on_invalid is {choice!r}, expected 'raise' or 'mark'"):
        call(*given, on_invalid=choice)


def test_arrays_on_a_gpu_are_refused_in_words() -> None:
    with pytest.raises(
        TypeError, match=r"^crba: on_invalid='mark' is for NumPy arrays; on a GPU inputs are not checked"
    ):
        sl.crba(ROBOT, OnGPU(), on_invalid="mark")
