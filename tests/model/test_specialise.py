"""Robots compiled by themselves: the same numbers as by the code for all robots, in every form; what they keep."""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.dynamics.aba import _aba
from saltus.dynamics.rnea import _rnea
from saltus.kernel import is_zero, largest, ld, maximum, minimum, st, zero
from saltus.kernel.compile import assembly, emit
from saltus.kernel.forward import push_forward
from saltus.kernel.interpret import interpret
from saltus.kernel.number import F32, F64
from saltus.model.joints import JointKind
from saltus.model.tree import DENSE, LIGHT, algorithm
from tests import oracles
from tests.closeness import with_rounding
from tests.constraints import truth
from tests.generators import floating_tree

SOME = ("quadruped", "arm", "planar_human")
OTHERS = ("humanoid", "biped", "cartpole", "panda", "solo12", "cassie")

FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "aba": (sl.aba, "q v x"),
    "rnea": (sl.rnea, "q v x"),
    "nonlinear_effects": (sl.nonlinear_effects, "q v"),
    "gravity": (sl.gravity, "q"),
    "crba": (sl.crba, "q"),
    "joint_placements": (sl.joint_placements, "q"),
    "frame_placements": (sl.frame_placements, "q"),
    "joint_velocities": (sl.joint_velocities, "q v"),
    "joint_accelerations": (sl.joint_accelerations, "q v x"),
    "forward_kinematics": (sl.forward_kinematics, "q v x"),
    "center_of_mass": (sl.center_of_mass, "q v x"),
    "centroidal_momentum": (sl.centroidal_momentum, "q v"),
    "centroidal_momentum_matrix": (sl.centroidal_momentum_matrix, "q"),
    "kinetic_energy": (sl.kinetic_energy, "q v"),
    "potential_energy": (sl.potential_energy, "q"),
    "integrate": (sl.integrate, "q v"),
    "difference": (sl.difference, "q p"),
    "interpolate": (sl.interpolate, "q p u"),
    "distance": (sl.distance, "q p"),
    "minverse": (sl.minverse, "q"),
    "frame_velocity": (lambda model, q, v, **given: sl.frame_velocity(model, q, v, 1, **given), "q v"),
}


def inputs(model: sl.Model, names: str, shape: tuple[int, ...], dtype: Any) -> list[Any]:
    rng = np.random.default_rng(7)
    made = {
        "q": sl.random_configuration(model, seed=1, shape=shape), "p": sl.random_configuration(model, seed=2, shape=shape),
        "v": rng.normal(size=(*shape, model.nv)), "x": rng.normal(size=(*shape, model.nv)), "u": rng.uniform(size=shape),
    }  # fmt: skip
    return [np.asarray(made[name], dtype) for name in names.split()]


def assert_close(found: Any, right: Any, tolerance: float) -> None:
    pairs = zip(found, right, strict=True) if isinstance(right, tuple) else [(found, right)]
    for ours, theirs in pairs:
        if isinstance(theirs, tuple):
            assert_close(ours, theirs, tolerance)
            continue
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(np.abs(theirs).max(initial=0.0), 1e-300))


def condition(model: sl.Model, q: Any) -> float:
    """What the inverse of M may lose; coordinates that follow others have none."""
    M = sl.crba(model, q.astype(np.float64))
    unit = 1.0 / np.sqrt(np.diagonal(M, axis1=-2, axis2=-1))
    return float(np.linalg.cond(unit[..., :, None] * M * unit[..., None, :]).max())


def compare(model: sl.Model, name: str, shape: tuple[int, ...], dtype: Any) -> None:
    function, names = FUNCTIONS[name]
    given = inputs(model, names, shape, dtype)
    tolerance = 1e-13 if np.dtype(dtype) == np.float64 else 1e-5
    if name in ("aba", "minverse"):
        if model.weightless:
            pytest.skip("joints without inertia, which it refuses")
        tolerance *= max(1.0, condition(model, given[0]) / 100)
    assert_close(function(sl.specialise(model), *given), function(model, *given), tolerance)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("robot", SOME)
def test_one_sample(robot: str, name: str) -> None:
    compare(sl.load_robot(robot), name, (), np.float64)


@pytest.mark.parametrize("name", ["aba", "rnea", "crba", "centroidal_momentum", "forward_kinematics"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_packets(dtype: Any, name: str) -> None:
    compare(sl.load_robot("quadruped"), name, (3, 7), dtype)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("robot", OTHERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_other_robots_in_packets(robot: str, name: str, dtype: Any) -> None:
    compare(sl.load_robot(robot), name, (11,), dtype)


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_of_all_kinds_of_joints(seed: int) -> None:
    model = sl.random_model(seed=seed, bodies=5 + seed, kinds=[kind.name.lower() for kind in JointKind][1:])
    for name in ("aba", "rnea", "integrate"):
        compare(model, name, (), np.float64)


def starfish(seed: int, limbs: int, length: int) -> sl.Model:
    """A free body with equal limbs, but for their numbers: among these are 0, 1 and -1, which code makes use of."""
    rng = np.random.default_rng(seed)
    builder = sl.ModelBuilder("starfish")
    base = builder.add_joint("base", "free_flyer")
    builder.add_body(base, mass=5.0, inertia=np.eye(3))
    kinds = rng.choice(["revolute", "revolute", "prismatic", "spherical", "continuous"], size=length)
    for limb in range(limbs):
        parent = base
        for depth, kind in enumerate(kinds):
            axis = rng.permutation(np.eye(3))[0] * rng.choice([-1.0, 1.0]) if rng.random() < 0.7 else rng.normal(size=3)
            position = rng.choice([0.0, 0.1, -0.1, rng.normal()], size=3)
            turn = np.eye(4)
            if rng.random() < 0.5:
                turn[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
            turn[:3, 3] = position
            given = {} if kind == "spherical" else {"axis": axis}
            parent = builder.add_joint(f"{limb}.{depth}", str(kind), parent=parent, placement=turn, **given)
            builder.add_body(
                parent, mass=rng.uniform(0.5, 2), com=rng.choice([0.0, 0.05], size=3), inertia=0.1 * np.eye(3)
            )
    return builder.build()


@pytest.mark.parametrize(("limbs", "length"), [(2, 2), (3, 3), (4, 3), (5, 1), (6, 2), (8, 2), (9, 1)])
def test_equal_limbs(limbs: int, length: int) -> None:
    for seed in range(2):
        model = starfish(seed, limbs, length)
        for name in ("aba", "rnea", "forward_kinematics"):
            compare(model, name, (), np.float64)


def test_four_legs_are_computed_side_by_side() -> None:
    own = _aba.special(_aba.filled(sl.specialise(sl.load_robot("quadruped"))))
    text = assembly(own, F64, own.present(3), "one", "k")
    arithmetic = re.findall(r"= f(?:add|sub|mul|div|neg)[a-z ]* (<4 x double>|double)", text)
    assert arithmetic.count("<4 x double>") > arithmetic.count("double")


def test_external_forces_and_memory_of_the_caller() -> None:
    robot = sl.load_robot("quadruped")
    own, (q, v, tau) = sl.specialise(robot), inputs(robot, "q v x", (), np.float64)
    forces = np.random.default_rng(0).normal(size=(robot.njoints, 6))
    out = np.empty(robot.nv)
    assert sl.aba(own, q, v, tau, forces, out=out) is out
    assert_close(out, sl.aba(robot, q, v, tau, forces), 1e-12)


CONSTRAINED = {
    "quadruped": lambda robot: [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet],
    "humanoid": lambda robot: [sl.Contact(robot, foot, dim=6, kd=5.0) for foot in sl.robot_frames("humanoid").feet],
    "four_bar": sl.model_loops,
}  # fmt: skip


@pytest.mark.parametrize("shape", [(), (9,)], ids=["one", "packets"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("robot", CONSTRAINED)
def test_constrained_dynamics(robot: str, dtype: Any, shape: tuple[int, ...]) -> None:
    model = sl.load_robot(robot)
    own, held = sl.specialise(model), CONSTRAINED[robot](model)
    q, v, tau = inputs(model, "q v x", shape, dtype)
    if robot == "four_bar":
        q = np.broadcast_to(model.neutral().astype(dtype), q.shape)
    right, found = (sl.ConstrainedDynamics(each, held).solve(q, v, tau) for each in (model, own))
    np.testing.assert_array_equal(found.status, right.status)
    np.testing.assert_array_equal(found.iterations, right.iterations)
    for ours, theirs in ((found.a, right.a), (found.forces, right.forces)):
        assert_close(ours, theirs, 1e-9 if np.dtype(dtype) == np.float64 else 1e-4)


def test_some_constraints_active_and_an_impact() -> None:
    model = sl.load_robot("quadruped")
    held = CONSTRAINED["quadruped"](model)
    plain, own = (sl.ConstrainedDynamics(each, held) for each in (model, sl.specialise(model)))
    q, v, tau = inputs(model, "q v x", (), np.float64)
    active = np.array([1.0, 0.0, 1.0, 0.0])
    assert_close(own.solve(q, v, tau, active).a, plain.solve(q, v, tau, active).a, 1e-9)
    assert_close(own.impact(q, v, active).v, plain.impact(q, v, active).v, 1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("method", ["constrained_aba", "loop_aba", "prox_pv"])
def test_what_is_left_out_is_known(method: str, dtype: Any) -> None:
    """Code for one robot that is given no masks, targets and forces has them as constants; with slopes, or lists, not."""
    model = sl.load_robot("quadruped")
    own = sl.specialise(sl.ConstrainedDynamics(model, CONSTRAINED["quadruped"](model), method))
    q, v, tau = inputs(model, "q v x", (9,), dtype)
    given = [np.ones(own.problem.nc, dtype), *np.zeros((2, own.problem.nm), dtype)]
    for at in (slice(None), 3, slice(0, 1)):
        known, right = own.solve(q[at], v[at], tau[at]), own.solve(q[at], v[at], tau[at], *given)
        assert_close(known[:2], right[:2], 1e-10 if np.dtype(dtype) == np.float64 else 1e-5)
        np.testing.assert_array_equal(known.status, right.status)
    lists = own.solve(q[0].tolist(), v[0].tolist(), tau[0].tolist())
    assert_close(lists.a, own.solve(*(x[0].astype(np.float64) for x in (q, v, tau))).a, 1e-9)
    rates = [own.derivatives(q[0], v[0], tau[0], mode=mode).da_dtau for mode in ("ad", "analytical")]
    assert_close(rates[0], rates[1], 1e-6)


def test_what_is_known_of_contradictions_stays() -> None:
    """NaN and statuses come out as they do without: nothing is simplified away that shows them."""
    model = sl.load_robot("arm")
    held = [sl.Contact(model, "tool", dim=6), sl.Contact(model, "tool", dim=6)]
    q, v, tau = inputs(model, "q v x", (), np.float64)
    target = np.repeat([0.0, 5.0], 6)
    plain, own = (
        sl.ConstrainedDynamics(each, held).solve(q, v, tau, target=target) for each in (model, sl.specialise(model))
    )
    assert own.status == plain.status == sl.Status.LEAST_SQUARES
    with pytest.raises(ValueError, match=r"q\[0\] is nan"):
        sl.aba(sl.specialise(model), np.full(model.nq, np.nan), v, tau)


def test_it_behaves_like_the_other() -> None:
    robot = sl.load_robot("quadruped")
    own = sl.specialise(robot)
    assert own.specialised and not robot.specialised and "specialised" in repr(own)
    assert own.joints == robot.joints and sl.specialise(own) is own
    again = pickle.loads(pickle.dumps(own))
    moon = own.replace(gravity=(0, 0, -1.62))
    assert again.specialised and moon.specialised
    q, v, tau = inputs(robot, "q v x", (), np.float64)
    np.testing.assert_array_equal(sl.aba(again, q, v, tau), sl.aba(own, q, v, tau))
    assert_close(sl.aba(moon, q, v, tau), sl.aba(robot.replace(gravity=(0, 0, -1.62)), q, v, tau), 1e-12)
    with pytest.raises(ValueError, match="shape"):
        sl.aba(own, q[:-1], v, tau)
    held = sl.ConstrainedDynamics(robot, CONSTRAINED["quadruped"](robot))
    assert sl.specialise(held).model.specialised and sl.specialise(held).method == held.method
    with pytest.raises(TypeError, match="expected a Model or ConstrainedDynamics"):
        sl.specialise("quadruped")  # type: ignore[call-overload]


def test_joints_that_follow_others() -> None:
    builder = sl.ModelBuilder("fingers")
    parent = 0
    for name, mimic in (("a", None), ("b", sl.Mimic("a", 2.0, 0.1)), ("c", None)):
        parent = builder.add_joint(name, "revolute", parent=parent, axis=(0, 1, 0), mimic=mimic)
        builder.add_body(parent, mass=1.0, com=(0.1, 0.0, 0.2), inertia=0.1 * np.eye(3))
    for name in ("aba", "rnea", "crba", "integrate"):
        compare(builder.build(), name, (), np.float64)
        compare(builder.build(), name, (3,), np.float64)


def test_derivatives_and_rollouts_of_it() -> None:
    robot = sl.load_robot("quadruped")
    own, (q, v, tau) = sl.specialise(robot), inputs(robot, "q v x", (), np.float64)
    assert_close(tuple(sl.aba_derivatives(own, q, v, tau)), tuple(sl.aba_derivatives(robot, q, v, tau)), 1e-12)
    assert_close(sl.rollout(own, q, v, duration=0.01).q, sl.rollout(robot, q, v, duration=0.01).q, 1e-12)


def test_large_robots_run_the_code_for_all() -> None:
    chain = sl.random_model(seed=0, bodies=LIGHT // DENSE + 1, kinds=["revolute"])
    for model, known in ((sl.specialise(chain), False), (sl.specialise(sl.load_robot("arm")), True)):
        own = _rnea.special(_rnea.filled(model))
        assert (own.known is not None) == known and (own is _rnea) != known
    compare(chain, "rnea", (), np.float64)


@algorithm(inputs={"v": "nv"}, outputs={"armature": "nv", "others": "12"}, own_code=LIGHT)
def _zeros(tree, v, w, armature, others):
    for k in range(tree.nv):
        st(armature, k, 1.0 if is_zero(tree.armature[k]) else 0.0)
    for k in range(12):
        st(others, k, 0.0)
    if is_zero(ld(v, 0)):
        st(others, 0, 1.0)
    if is_zero(zero(v)) or is_zero(ld(v, 0) * 0.0):
        st(others, 1, 1.0)
    if is_zero(0.0) and is_zero(0) and is_zero(-0.0):
        st(others, 2, 1.0)
    if is_zero(1e-300) or is_zero(math.nan) or is_zero(1):
        st(others, 3, 1.0)
    if is_zero(tree.armature[0] * ld(v, 0)):
        st(others, 4, 1.0)


def test_what_is_known_to_be_zero() -> None:
    """Entries of tables, in code for one robot; nothing in code for all, whatever the numbers are."""
    armature = np.array([0.0, 0.5, -0.0, 1e-300, 0.0])
    model = sl.random_model(seed=0, bodies=5, kinds=["revolute"]).replace(armature=armature)
    own, v = sl.specialise(model), np.zeros((3, 5))
    for given in (v, v[0], v.astype(np.float32)):
        armatures, others = _zeros.call(model, (given,))
        assert not armatures.any() and not others.any()
        armatures, others = _zeros.call(own, (given,))
        assert np.array_equal(armatures, np.broadcast_to(armature == 0.0, armatures.shape))
        assert (others[..., [0, 3]] == 0.0).all() and (others[..., [2, 4]] == 1.0).all()
    (armatures, others), _ = push_forward(_zeros, model, (v[0],), (np.ones((1, 5)),))  # 0, and its slope is not
    assert not armatures.any() and not others.any()
    armatures, others = interpret(_zeros, model, [[2.0] * 5])  # as it would be in code for this robot
    assert armatures.tolist() == (armature == 0.0).tolist() and others[:5].tolist() == [0.0, 1.0, 1.0, 0.0, 1.0]


@algorithm(inputs={"v": "nv"}, outputs={"y": "8"}, own_code=LIGHT)
def _known_sizes(tree, v, w, y):
    x, known = ld(v, 0), tree.armature
    st(y, 0, largest(known[0], known[1] - known[0]))
    st(y, 1, largest(known[1], known[0]))
    st(y, 2, largest(known[0], -3.0))
    st(y, 3, largest(known[0], x))
    st(y, 4, largest(x * x, known[1]))
    st(y, 5, largest(math.nan, known[0]))
    st(y, 6, largest(known[0], math.nan))
    st(y, 7, maximum(known[0], math.nan) + minimum(known[0], math.nan))


@pytest.mark.parametrize("shape", [(), (3,)], ids=["one", "packets"])
def test_sizes_that_are_known(shape: tuple[int, ...]) -> None:
    model = sl.random_model(seed=0, bodies=2, kinds=["revolute"]).replace(armature=[2.0, 0.5])
    v = np.full((*shape, 2), -2.5)
    for robot in (model, sl.specialise(model)):
        found = _known_sizes.call(robot, (v,))
        np.testing.assert_array_equal(found[..., :6], np.broadcast_to([2.0, 2.0, 3.0, 2.5, 6.25, np.nan], (*shape, 6)))


def test_what_is_known_to_be_nan_stays_so() -> None:
    model = sl.specialise(sl.random_model(seed=0, bodies=2, kinds=["revolute"]).replace(armature=[2.0, 0.5]))
    assert np.isnan(_known_sizes.call(model, (np.zeros(2),))[6:]).all()


# ---------------------------------------------------------------------------------------------------- armature


def partly_armed(model: sl.Model, seed: int) -> sl.Model:
    """Armature on about half of the degrees of freedom, also within joints."""
    rng = np.random.default_rng(seed)
    return model.with_armature(rng.uniform(0.1, 0.5, model.nv) * (rng.random(model.nv) < 0.5))


ARMATURES: dict[str, Callable[[sl.Model, int], sl.Model]] = {
    "none": lambda model, seed: model.with_armature(np.zeros(model.nv)),
    "some": partly_armed,
    "all": lambda model, seed: model.with_armature(np.full(model.nv, 0.3)),
}
each_armature = pytest.mark.parametrize("armature", ARMATURES)


@each_armature
@pytest.mark.parametrize("seed", range(4))
def test_armature(seed: int, armature: str) -> None:
    """Axes without it move freely, with nothing left along them: all kinds of joints, with and without forces."""
    kinds = [kind.name.lower() for kind in JointKind][1:]
    model = ARMATURES[armature](sl.random_model(seed + 40, 8, kinds), seed)
    if armature == "some":
        assert 0 < np.count_nonzero(model.armature) < model.nv
    q, v, tau = inputs(model, "q v x", (5,), np.float64)
    forces = np.random.default_rng(seed).normal(size=(5, model.njoints, 6))
    tolerance = with_rounding(1e-11, condition(model, q), 4.0)
    for given in ((q, v, tau), (q, v, tau, forces)):
        right = np.array([oracles.forward_dynamics(model, *sample) for sample in zip(*given, strict=True)])
        for robot in (model, sl.specialise(model)):
            assert_close(sl.aba(robot, *given), right, tolerance)
            assert_close(sl.aba(robot, *(x[0] for x in given)), right[0], tolerance)
    assert_close(sl.crba(sl.specialise(model), q), np.array([oracles.mass_matrix(model, x) for x in q]), 1e-12)


@each_armature
@pytest.mark.parametrize("method", ["constrained_aba", "prox_pv", "loop_aba"])
def test_armature_under_constraints(method: str, armature: str) -> None:
    """A free base with branches, held at the ends of two of them and within one."""
    model = ARMATURES[armature](floating_tree(2, 9), 2)
    parents = [joint.parent for joint in model.joints]
    assert {joint.kind for joint in model.joints} == set(JointKind) and {7, 9}.isdisjoint(parents) and 3 in parents
    held = [
        sl.Contact(model, "tool_6", kd=2.0), sl.Contact(model, "tool_8", weight=2.0), sl.Contact(model, "tool_2", rows=[0])
    ]  # fmt: skip
    q, v, tau = inputs(model, "q v x", (5,), np.float64)
    a, forces, _ = truth.solve(model, held, q, v, tau)
    for each in (model, sl.specialise(model)):
        dynamics = sl.ConstrainedDynamics(each, held, method)
        found = dynamics.solve(q, v, tau)
        assert (found.status == sl.Status.CONVERGED).all()
        assert_close(found.a, a, 1e-7)
        assert_close(found.forces, forces, 1e-7)
        assert_close(dynamics.solve(q[0], v[0], tau[0]).a, a[0], 1e-7)


def test_it_compiles_for_gpus() -> None:
    own = _aba.special(_aba.filled(sl.specialise(sl.load_robot("arm"))))
    for number in (F64, F32):
        text = emit(own, number, own.present(3), "gpu", "k").decode()
        assert ".entry kernel" in text and "fma.rn" in text
        assert ".local" not in text  # all of the workspace is in registers
