"""Joints without inertia: found whatever makes them so, refused by all that divides by inertias, and by nothing else."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.constraints.dynamics import METHODS, SOFT
from saltus.constraints.operational_space import OSIM_METHODS
from tests.generators import random_state, reconnected

LINK = {"mass": 1.0, "com": (0.1, 0.2, -0.3), "inertia": np.diag([0.02, 0.03, 0.04])}


def shifted(*xyz: float) -> np.ndarray:
    placement = np.eye(4)
    placement[:3, 3] = xyz
    return placement


def chain(*joints: tuple[str, tuple[float, ...], dict[str, Any] | None], **options: Any) -> sl.Model:
    """Joints j1, j2 ... one after the other: kind, axis, and what they carry."""
    builder = sl.ModelBuilder("chain", physical=False)
    parent: str | int = 0
    for n, (kind, axis, body) in enumerate(joints, start=1):
        parent = builder.add_joint(
            f"j{n}", kind, parent, shifted(0.1, 0.2, 0.3) if n > 1 else np.eye(4), axis or (0, 0, 1)
        )
        if body is not None:
            builder.add_body(parent, **body)
    return builder.build().replace(**options)


X, Y, Z, TILTED = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.3, -0.5, 0.7)
ALONG = {"mass": 0.7, "com": tuple(0.37 * np.array(TILTED))}  # a point on the tilted axis
HAND = chain(("revolute", Y, LINK), ("revolute", X, None), ("revolute", Y, None))
"""A link that carries two joints without mass, one on the other."""
BASE = chain(("free_flyer", (), None), ("revolute", TILTED, LINK), ("revolute", X, LINK))
"""A base without mass may turn about its only hinge, and nothing else moves."""

SINGULAR: dict[str, tuple[sl.Model, tuple[int, ...]]] = {
    "no mass at the tip": (HAND, (1, 2)),
    "a point on the axis": (chain(("revolute", TILTED, ALONG)), (0,)),
    "a point at a ball": (chain(("spherical", (), {"mass": 1.0, "com": (0.1, 0.2, 0.3)})), (0,)),
    "a free point": (chain(("free_flyer", (), {"mass": 1.0})), (3, 4, 5)),
    "a free rod": (chain(("free_flyer", (), {"mass": 1.0, "inertia": np.diag([0.0, 1.0, 1.0])})), (3,)),
    "nothing at all": (chain(("free_flyer", (), None)), (0, 1, 2, 3, 4, 5)),
    "a base on one hinge": (BASE, (0,)),
    "slides along one line": (chain(("prismatic", X, None), ("prismatic", X, LINK)), (0,)),
    "three slides in a plane": (chain(("prismatic", X, None), ("prismatic", Y, None), ("planar", (), LINK)), (0, 1)),
    "seven joints, one body": (chain(*[("revolute", a, None) for a in (X, Y, Z, X, Y, Z)], ("revolute", X, LINK)), (0,)),
}  # fmt: skip

REGULAR: dict[str, sl.Model] = {
    "an armature at the tip": HAND.with_armature([0.0, 0.1, 0.1]),
    "a tiny tip": chain(("revolute", Y, LINK), ("revolute", X, {"mass": 1e-9, "inertia": 1e-16 * np.eye(3)})),
    "mass at the end only": chain(("revolute", X, None), ("revolute", Y, None), ("revolute", Z, LINK)),
    "six joints, one body": chain(*[("revolute", axis, None) for axis in (X, Y, Z, X, Y)], ("revolute", Z, LINK)),
    "a base without mass": reconnected(BASE, [0, 1, 1]),
    "nearly on the axis": chain(("revolute", X, {"mass": 1.0, "com": (1.0, 1e-4, 0.0)})),
    "what does not move": sl.ModelBuilder().build(),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_found(name: str) -> None:
    model, expected = SINGULAR[name]
    assert model.weightless == expected
    assert pickle.loads(pickle.dumps(model)).weightless == expected
    q = sl.random_configuration(model, 3)
    M = sl.crba(model, q)
    assert np.linalg.matrix_rank(M, tol=1e-12) == model.nv - len(expected)
    joint = next(x for x in model.joints if x.iv <= expected[0] < x.iv + x.nv)
    with pytest.raises(
        sl.ModelError, match=f"aba: model 'chain' has joints without inertia.*: .*'{joint.name}'.*armature"
    ):
        sl.aba(model, q, np.zeros(model.nv), np.zeros(model.nv))


@pytest.mark.parametrize("name", SINGULAR)
def test_armature_is_a_way_out(name: str) -> None:
    model, expected = SINGULAR[name]
    armature = np.zeros(model.nv)
    armature[list(expected)] = 0.01
    cured, s = model.with_armature(armature), random_state(model, 1)
    assert cured.weightless == ()
    M = sl.crba(cured, s.q)
    a = sl.aba(cured, s.q, s.v, s.tau)
    assert np.allclose(sl.rnea(cured, s.q, s.v, a), s.tau, atol=1e-14 * np.linalg.cond(M) * np.abs(s.tau).max(), rtol=0)


@pytest.mark.parametrize("name", REGULAR)
def test_no_false_alarm(name: str) -> None:
    model = REGULAR[name]
    assert model.weightless == ()
    assert np.isfinite(sl.aba(model, sl.random_configuration(model, 3), np.zeros(model.nv), np.zeros(model.nv))).all()


@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_mimic_joints(ratio: float) -> None:
    """A joint without mass is fine if one that follows it has some, and moves."""
    builder = sl.ModelBuilder("gripper", physical=False)
    builder.add_joint("left", "revolute", axis=X)
    builder.add_body(builder.add_joint("right", "revolute", axis=Y, mimic=sl.Mimic("left", ratio)), **LINK)
    builder.add_shape("right", "sphere", [0.1])
    model = builder.build()
    one = np.ones(1)
    if ratio:
        assert model.weightless == ()
        assert np.allclose(
            sl.crba(model, one)[0] * sl.aba(model, one, one, one), one - sl.nonlinear_effects(model, one, one)
        )
    else:
        assert model.weightless == (0,)
        for function, inputs in (
            (sl.aba, (one, one, one)),
            (sl.minverse, (one,)),
            (sl.aba_derivatives, (one, one, one)),
        ):
            with pytest.raises(sl.ModelError, match="gripper.*'left'"):
                function(model, *inputs)


def contact(method: str = "constrained_aba") -> sl.ConstrainedDynamics:
    return sl.ConstrainedDynamics(HAND, [sl.Contact(HAND, "j3", dim=3)], method=method)


S = random_state(HAND, 5)
B = random_state(HAND, 6, 3)
ONES = np.ones(3)
DIRECTIONS = (ONES, ONES, ONES)


class OnDevice:
    """What looks like an array on a GPU."""

    shape = (3,)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (3,), "typestr": "<f8", "data": (0, False), "version": 3}


REFUSED: dict[str, Callable[[], Any]] = {
    "aba": lambda: sl.aba(HAND, S.q, S.v, S.tau),
    "aba with forces": lambda: sl.aba(HAND, S.q, S.v, S.tau, S.forces),
    "aba, a batch": lambda: sl.aba(HAND, B.q, B.v, B.tau),
    "aba, float32": lambda: sl.aba(HAND, *(x.astype(np.float32) for x in (B.q, B.v, B.tau))),
    "aba on a GPU": lambda: sl.aba(HAND, OnDevice(), OnDevice(), OnDevice()),
    "minverse": lambda: sl.minverse(HAND, S.q),
    "minverse, a batch": lambda: sl.minverse(HAND, B.q),
    "ltl": lambda: sl.ltl(HAND, sl.crba(HAND, S.q)),
    "ltl, a batch": lambda: sl.ltl(HAND, sl.crba(HAND, B.q)),
    "rollout": lambda: sl.rollout(HAND, S.q, S.v, duration=0.01),
    "step_derivatives": lambda: sl.step_derivatives(HAND, S.q, S.v, S.tau, dt=0.01),
    "vjp": lambda: sl.vjp(sl.aba, HAND, (S.q, S.v, S.tau), ONES),
    "vjp of minverse": lambda: sl.vjp(sl.minverse, HAND, (S.q,), np.ones((3, 3))),
    "factor": lambda: contact().factor(S.q),
    "impact": lambda: contact().impact(S.q, S.v),
    "impact_derivatives": lambda: contact().impact_derivatives(S.q, S.v),
    "vjp of impact": lambda: sl.vjp(sl.ConstrainedDynamics.impact, contact(), (S.q, S.v), (ONES, ONES)),
    "osim_times": lambda: contact().osim_times(S.q, ONES),
    "delassus_times": lambda: contact().delassus_times(S.q, ONES),
    "osim_factors": lambda: contact().osim_factors(S.q),
    "constrained rollout": lambda: sl.rollout(contact(), S.q, S.v, duration=0.01),
    "constrained vjp": lambda: sl.vjp(sl.ConstrainedDynamics.solve, contact(), (S.q, S.v, S.tau), (ONES, ONES)),
    "constrained step_derivatives": lambda: sl.step_derivatives(contact(), S.q, S.v, S.tau, dt=0.01),
}
for mode in ("analytical", "ad", "fd", "fdc"):
    REFUSED |= {
        f"aba_derivatives, {mode}": lambda mode=mode: sl.aba_derivatives(HAND, S.q, S.v, S.tau, mode=mode),
        f"jvp, {mode}": lambda mode=mode: sl.jvp(sl.aba, HAND, (S.q, S.v, S.tau), DIRECTIONS, mode),
        f"jvp, {mode}, a batch": lambda mode=mode: sl.jvp(sl.aba, HAND, (B.q, B.v, B.tau), (B.v, B.v, B.v), mode),
        f"constrained derivatives, {mode}": lambda mode=mode: contact().derivatives(S.q, S.v, S.tau, mode=mode),
        f"constrained jvp, {mode}": lambda mode=mode: sl.jvp(
            sl.ConstrainedDynamics.solve, contact(), (S.q, S.v, S.tau), DIRECTIONS, mode
        ),
    }  # fmt: skip
for method in (*METHODS, *SOFT):
    REFUSED[f"solve, {method}"] = lambda method=method: contact(method).solve(S.q, S.v, S.tau)
for method, each in OSIM_METHODS.items():
    REFUSED[f"osim, {method}"] = lambda method=method: contact().osim(S.q, method=method)
    if each.delassus is not None:
        REFUSED[f"delassus, {method}"] = lambda method=method: contact().delassus(S.q, method=method)


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    with pytest.raises(sl.ModelError, match="model 'chain' has joints without inertia.*: 'j2', 'j3'; expected a mass"):
        REFUSED[what]()


def test_refused_after_calls_that_were_fine() -> None:
    """The short ways, which a first call makes, look as well."""
    fine = REGULAR["an armature at the tip"]
    for _ in range(3):
        sl.aba(fine, S.q, S.v, S.tau)
        sl.aba(fine, B.q, B.v, B.tau)
        for mode in ("ad", "analytical"):
            sl.jvp(sl.aba, fine, (S.q, S.v, S.tau), DIRECTIONS, mode)
        held = sl.ConstrainedDynamics(fine, [sl.Contact(fine, "j3", dim=3)])
        for mode in ("ad", "analytical"):
            sl.jvp(sl.ConstrainedDynamics.solve, held, (S.q, S.v, S.tau), DIRECTIONS, mode)
    for what in (
        "aba",
        "aba, a batch",
        "jvp, ad",
        "jvp, analytical",
        "constrained jvp, ad",
        "constrained jvp, analytical",
    ):
        test_refused(what)


def test_what_divides_by_nothing_goes_on() -> None:
    dynamics = contact()
    answers = {
        "rnea": sl.rnea(HAND, S.q, S.v, S.a),
        "gravity": sl.gravity(HAND, S.q),
        "crba": sl.crba(HAND, S.q),
        "kinetic_energy": sl.kinetic_energy(HAND, S.q, S.v),
        "placements": sl.frame_placements(HAND, S.q),
        "center_of_mass": sl.center_of_mass(HAND, S.q),
        "momentum": sl.centroidal_momentum(HAND, S.q, S.v),
        "rnea_derivatives": np.stack(sl.rnea_derivatives(HAND, S.q, S.v, S.a)),
        "jvp of rnea": sl.jvp(sl.rnea, HAND, (S.q, S.v, S.a), DIRECTIONS)[1],
        "jvp of rnea, analytical": sl.jvp(sl.rnea, HAND, (S.q, S.v, S.a), DIRECTIONS, "analytical")[1],
        "constraint_accelerations": dynamics.constraint_accelerations(S.q, S.v, S.a),
        "inverse_dynamics": dynamics.inverse_dynamics(S.q, S.v, S.a).tau,
        "ltl of another matrix": sl.ltl(HAND, sl.crba(HAND, S.q) + 1e-3 * np.eye(3)).solve(ONES),
        "factors of another matrix": dynamics.factor(S.q, M=np.eye(3)).solve(np.ones(6)),
    }
    for what, answer in answers.items():
        assert np.isfinite(answer).all(), what
