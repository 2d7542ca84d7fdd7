"""What strangers do to problems and solvers: an error, or a status, that names node and term; and never an endless loop."""

from __future__ import annotations

import math
import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.kernel import kernel, ld, sqrt, st
from saltus.ocp.activations import Barrier, Huber, Quadratic
from saltus.ocp.terms import (
    Capsule,
    CenterOfPressure,
    Control,
    FramePlacement,
    FrameTranslation,
    FrameVelocity,
    FrictionCone,
    Own,
    OwnFunction,
    State,
    Term,
    WrenchCone,
)

ARM = sl.load_robot("arm")
QUADRUPED = sl.load_robot("quadruped")
FEET = sl.robot_frames("quadruped").feet
NAN = math.nan


def arm(more: Any = (), **given: Any) -> sl.ShootingProblem:
    """Five nodes; `more` terms beside those of state and control."""
    named = {
        "robot": ARM,
        "x0": np.zeros(14),
        "phases": [sl.Phase(nodes=5)],
        "terms": [State(weight=0.1), Control(weight=1e-2), *more],
        "final": [FrameTranslation("tool", reference=[0.3, 0.2, 0.6])],
    }
    return sl.ShootingProblem(**(named | given))


def standing(**given: Any) -> sl.ShootingProblem:
    x0 = np.concatenate([QUADRUPED.reference_configurations["standing"], np.zeros(QUADRUPED.nv)])
    named = {
        "robot": QUADRUPED,
        "x0": x0,
        "phases": [sl.Phase(FEET, nodes=3)],
        "terms": [State(reference=x0), Control(weight=1e-3)],
        "final": [State(reference=x0)],
        "constraints": [sl.Contact(QUADRUPED, foot) for foot in FEET],
    }
    return sl.ShootingProblem(**(named | given))


def reach(where: Any, **more: Any) -> FrameTranslation:
    return FrameTranslation("tool", reference=where, **more)


def written(place: str, index: Any, value: Any) -> Callable[[], Any]:
    """A problem whose arrays are written to, given to a solver."""

    def change() -> Any:
        problem = arm()
        getattr(problem, place)[index] = value
        return sl.FDDP(problem).solve()

    return change


def replaced(name: str, value: Any, solver: Any = sl.FDDP) -> Callable[[], Any]:
    """A problem with another attribute, given to a solver."""

    def change() -> Any:
        problem = arm()
        setattr(problem, name, value)
        return solver(problem).solve()

    return change


def cone(**given: Any) -> Callable[[], Any]:
    return lambda: FrictionCone("LF_FOOT", **given)


def solved(*arguments: Any, **given: Any) -> Callable[[], Any]:
    return lambda: sl.FDDP(arm()).solve(*arguments, **given)


TILTED = np.concatenate([[0, 0, 0.5, 0, 0, 0, 2.0], QUADRUPED.neutral()[7:], np.zeros(18)])
"""A state whose quaternion is of length 2."""

DECLARED = {
    "no phases": (lambda: arm(phases=[]), "there is no node, expected a phase at least"),
    "phases that are none": (lambda: arm(phases=None), "phases are None, expected a list"),
    "one phase": (lambda: arm(phases=sl.Phase(nodes=2)), "phases are Phase(.*), expected a list"),
    "not a phase": (lambda: arm(phases=[3]), "phase 0 is 3, expected a Phase or an ImpactPhase"),
    "no nodes": (lambda: arm(phases=[sl.Phase(nodes=0)]), "phase 0, from node 0 on: it has 0 nodes"),
    "half a node": (lambda: arm(phases=[sl.Phase(nodes=2.5)]), "phase 0, .*: its number of nodes is 2.5"),
    "a short phase": (lambda: arm(phases=[sl.Phase(duration=1e-4)]), "phase 0, .*: it has 0 nodes"),
    "NaN seconds": (lambda: arm(phases=[sl.Phase(duration=NAN)]), "phase 0, .*: its duration is nan"),
    "for ever": (lambda: arm(phases=[sl.Phase(duration=math.inf)]), "phase 0, .*: its duration is inf"),
    "zero time step": (lambda: arm(dt=0.0), "phase 0, .*: dt is 0.0, expected a positive time; an impact is an ImpactPhase"),
    "backwards": (lambda: arm(phases=[sl.Phase(nodes=2, dt=-1.0)]), "phase 0, .*: dt is -1.0"),
    "a text of a time step": (lambda: arm(dt="0.1"), "phase 0, .*: dt is '0.1', expected a positive time"),
    "dt by nodes": (lambda: arm(dt=np.ones(5)), "phase 0, .*: dt is array.*, expected a positive time"),
    "terms that are none": (lambda: arm(terms=None), "terms are None, expected a list"),
    "one term": (lambda: arm(terms=State()), "terms are State.*, expected a list"),
    "a node without a term": (lambda: arm(terms=()), "node 0: no term counts there"),
    "an end without a term": (lambda: arm(final=()), r"node 5 \(the last\): no term counts there"),
    "weights of zero": (lambda: arm(final=[State(weight=0.0)]), r"node 5 \(the last\): no term counts there"),
    "two names": (lambda: arm([State()]), "terms: two have the name 'State', expected names of their own"),
    "two names in a phase": (
        lambda: arm(phases=[sl.Phase(nodes=1), sl.Phase(nodes=1, terms=[reach([0] * 3), reach([1] * 3)])]),
        "phase 1: terms: two have the name 'tool FrameTranslation'",
    ),
    "two at the end": (lambda: arm(final=[State(), State()]), "terms of the last node: two have the name 'State'"),
    "one name, two terms": (
        lambda: arm(final=[State(activation=Huber())]), "term 'State': two have this name and differ in 'activation'",
    ),
    "unknown frame": (lambda: arm([FrameTranslation("nose", reference=[0] * 3)]), "term 'nose FrameTranslation': .*'nose'"),
    "unknown contact": (lambda: standing(phases=[sl.Phase(["nose"], nodes=1)]), "phase 0: unknown contact 'nose'"),
    "contacts as a text": (lambda: standing(phases=[sl.Phase("nose", nodes=1)]), "phase 0: contacts are 'nose', expected"),
    "a cone without contact": (lambda: arm([FrictionCone("nose")]), "term 'nose FrictionCone': unknown contact 'nose'"),
    "a motor too many": (lambda: arm(motors=[0, 7]), r"motors are \[0, 7\], with 7, expected degrees of freedom"),
    "a motor below": (lambda: arm(motors=[-1]), r"motors are \[-1\], with -1"),
    "a motor twice": (lambda: arm(motors=[1, 1]), r"motors are \[1, 1\], with 1"),
    "motors by names": (lambda: arm(motors=["elbow"]), r"motors are \['elbow'\], expected degrees of freedom"),
    "no robot": (lambda: arm(robot="arm"), "the robot is 'arm', expected a Model"),
    "no method": (lambda: arm(method="magic"), "magic"),
    "no integrator": (lambda: arm(integrator="magic"), "unknown integrator 'magic', expected one of euler, rk4"),
    "a short x0": (lambda: arm(x0=np.zeros(13)), r"x0 has shape \(13,\), expected \(..., 14\)"),
    "x0 NaN": (lambda: arm(x0=[NAN] * 14), r"x0\[0\] is nan, expected finite numbers"),
    "complex x0": (lambda: arm(x0=np.zeros(14, complex)), "x0 is not an array of numbers, but of complex128"),
    "x0 none": (lambda: arm(x0=None), "x0 is not an array of numbers"),
    "x0 not of unit length": (lambda: standing(x0=TILTED), "x0: joint '.*' has coordinates of norm 2, expected 1"),
    "a reference not of unit length": (
        lambda: standing(final=[State(reference=TILTED)]), "reference of term 'State' at nodes 3 to 3: joint .* norm 2",
    ),
    "NaN reference": (lambda: arm([reach([0, NAN, 0], name="a")]), r"reference of term 'a' at nodes 0 to 4 is nan at \[1\]"),
    "a short reference": (lambda: arm([reach([0, 0], name="a")]), r"reference of term 'a' at nodes 0 to 4 has shape \(2,\)"),
    "references too few": (
        lambda: arm([reach(np.zeros((4, 3)), name="a")]), "reference of term 'a' at nodes 0 to 4 is of 4 nodes",
    ),
    "no reference": (lambda: arm([reach(None, name="a")]), "reference of term 'a' at nodes 0 to 4 is not given"),
    "a text": (lambda: arm([reach("there", name="a")]), "reference of term 'a' at nodes 0 to 4 is not an array of numbers"),
    "no rotation": (
        lambda: arm([FramePlacement("tool", reference=2 * np.eye(4))]), "reference of term 'tool FramePlacement' .* rota",
    ),
    "weights of another length": (
        lambda: arm(final=[State(activation=Quadratic([1.0]), name="b")]), r"term 'b': weights of its .* has shape \(1,\)",
    ),
    "bounds crossed": (lambda: arm(final=[State(activation=Barrier(1, -1), name="b")]), "term 'b': bounds are"),
    "no activation": (lambda: arm(final=[State(activation=Quadratic, name="b")]), "term 'b': its activation is"),
}  # fmt: skip

TERMS = {
    "weight -1": (lambda: State(weight=-1), "term 'State': weight is -1, expected a number, not negative"),
    "weight NaN": (lambda: State(weight=NAN), "term 'State': weight is nan"),
    "weight a text": (lambda: State(weight="1"), "term 'State': weight is '1'"),
    "friction 0": (cone(friction=0.0), "term 'LF_FOOT FrictionCone': friction is 0.0, expected a positive number"),
    "friction a text": (cone(friction="ice"), "friction is 'ice'"),
    "friction infinite": (cone(friction=math.inf), "friction is inf"),
    "three facets": (cone(facets=3), "it has 3 facets, expected an even number from 4 on, or 0"),
    "facets no number": (cone(facets=4.0), "its number of facets is 4.0, expected a whole number"),
    "least above most": (cone(least=2.0, most=1.0), "most is 1.0, expected a number not below least, 2.0"),
    "least NaN": (cone(least=NAN), "least is nan"),
    "no surface": (cone(surface=np.zeros((3, 3))), "term 'LF_FOOT FrictionCone': surface is not orthonormal"),
    "no axes": (lambda: FrameVelocity("tool", axes="mine"), "axes are 'mine', expected one of local, world"),
    "no box": (lambda: CenterOfPressure("sole", box=(NAN, 0.1)), r"box is \(nan, 0.1\), expected two positive sizes"),
    "a full wrench cone": (lambda: WrenchCone("sole", facets=0), "facets are 0, expected a pyramid"),
    "a capsule": (lambda: Capsule("tool", -1.0, 0.1), "capsule of 'tool': length is -1.0"),
    "no rows": (lambda: OwnFunction(print, 0), "expected a function, and how many rows it has"),
    "half a row": (lambda: OwnFunction(print, 1.5), "its number of rows is 1.5, expected a whole number"),
    "no name": (lambda: State(name=3), "the name of a State is 3"),
}  # fmt: skip

CHANGED = {
    "a reference, NaN": (written("references", (2, 5), NAN), "node 2: the reference of term 'State' is nan"),
    "a weight, NaN": (written("weights", (1, 1), NAN), "node 1: the weight of term 'Control' is nan"),
    "a weight, negative": (written("weights", (1, 1), -2.0), "node 1: the weight of term 'Control' is -2.0"),
    "dt 0": (written("dt", 3, 0.0), "node 3: dt is 0.0, expected a positive time"),
    "dt negative": (written("dt", 3, -0.1), "node 3: dt is -0.1, expected a positive time"),
    "data cut": (replaced("data", np.zeros((3, 30))), r"data has shape \(3, 30\), expected"),
    "x0 cut": (replaced("x0", np.zeros(3)), r"x0 has shape \(3,\)"),
    "u_lower cut": (replaced("u_lower", np.zeros(3), sl.BoxFDDP), r"u_lower has the shape \(3,\), expected \(7,\)"),
    "u_lower NaN": (replaced("u_lower", np.full(7, NAN), sl.BoxDDP), "u_lower lies above u_upper, first at control 0"),
    "bounds crossed": (replaced("u_lower", np.full(7, 1e9), sl.BoxKKT), "u_lower lies above u_upper"),
    "no such node": (lambda: arm().set_weight("State", 1.0, 6), "there is no node 6, expected 0 to 5"),
    "no such node of a reference": (
        lambda: arm().set_reference("State", np.zeros(14), -7), "there is no node -7, expected 0 to 5",
    ),
    "a weight's shape": (lambda: arm().set_weight("State", [1.0, 2.0]), r"weight of term 'State' .* has shape \(2,\)"),
    "no such term": (lambda: arm().set_weight("nothing", 1.0), "there is none named 'nothing', expected one of State"),
}  # fmt: skip

STARTS = {
    "xs NaN": (solved(np.full((6, 14), NAN)), r"FDDP: xs\[0, 0\] is nan"),
    "us infinite": (solved(us=np.full((5, 7), np.inf)), r"FDDP: us\[0, 0\] is inf"),
    "xs short": (solved(np.zeros((5, 14))), r"FDDP: xs has the shape \(5, 14\), expected \(..., 6, 14\)"),
    "us ragged": (solved(us=[[1.0], [2.0, 3.0]]), "FDDP: us is not an array of numbers"),
    "batches": (
        solved(np.zeros((3, 6, 14)), np.zeros((2, 5, 7))), r"leading axes do not go together: .* xs \(3,\), us \(2,\)",
    ),
    "not of unit length": (
        lambda: sl.FDDP(standing()).solve(np.tile(TILTED, (4, 1))), "the quaternion of joint 'root_joint', .* has norm 2",
    ),
    "iterations -1": (solved(max_iterations=-1), "max_iterations is -1, expected none or more"),
    "iterations 2.5": (solved(max_iterations=2.5), "max_iterations is 2.5, expected a whole number"),
    "regularisation": (solved(regularisation=-1.0), "regularisation is -1.0, expected a number, not negative"),
    "no problem": (lambda: sl.FDDP("arm"), "FDDP: the problem is 'arm', expected a ShootingProblem"),
    "a callback": (lambda: sl.FDDP(arm(), print), "callbacks are <built-in function print>, expected a list"),
    "step lengths": (lambda: sl.FDDP(arm(), lengths=()), r"lengths are \(\), expected a list of numbers up to 1"),
    "regularisation that falls": (lambda: sl.FDDP(arm(), reg_incfactor=0.5), "reg_incfactor is 0.5, expected .* above 1"),
    "regularisation upside down": (lambda: sl.FDDP(arm(), reg_min=1.0, reg_max=0.1), "reg_max is 0.1, .* not below reg_min"),
    "quasi_static": (lambda: arm().quasi_static(np.zeros(14)), r"quasi_static: xs has shape \(14,\)"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [pytest.param(*row, id=name) for table in (DECLARED, TERMS, CHANGED, STARTS) for name, row in table.items()],
)
def test_it_is_named(change: Callable[[], Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        change()


def test_batches_of_data_and_starts() -> None:
    problem = arm(x0=np.zeros((3, 14)))
    problem.data = np.tile(problem.data, (2, 1, 1))
    with pytest.raises(sl.ModelError, match=r"leading axes do not go together: x0 \(3,\), data \(2,\)"):
        sl.FDDP(problem).solve()


def test_out_of_reach() -> None:
    """It comes as near as it can, and says what is missed."""
    problem = arm(final=[reach([50.0, 0.0, 0.0], weight=1e3), State(weight=1e-3)])
    result = sl.FDDP(problem).solve(max_iterations=20)
    assert result.status != sl.OCPStatus.SOLVED and result.culprit == 5
    assert "node 5 costs most; term 'tool FrameTranslation' costs most there" in result.reason
    few = sl.FDDP(problem).solve(max_iterations=2)
    assert few.culprit == -1 and few.reason == "not converged after 2 iterations"


def test_strokes_before_there_is_a_candidate() -> None:
    solver = sl.FDDP(arm())
    for stroke in (solver.compute_direction, solver.try_step, lambda: solver.xs, lambda: solver.cost):
        with pytest.raises(
            AttributeError, match="FDDP: there is no candidate yet, expected set_candidate or solve before"
        ):
            stroke()
    with pytest.raises(AttributeError, match="'FDDP' object has no attribute 'speed'"):
        _ = solver.speed


@pytest.mark.parametrize("where", [[1e8, 0.0, 0.0], [0.3, 0.2, 0.6]])
def test_dense_steps_too_far(where: list[float]) -> None:
    """Candidates whose angles are beyond all bounds are none."""
    problem = arm(phases=[sl.Phase(nodes=2)], final=[reach(where, weight=1e120)])
    result = sl.KKT(problem).solve(max_iterations=12)
    assert result.status != sl.OCPStatus.SOLVED and result.culprit == 2 and np.isfinite(result.xs).all()


@pytest.mark.parametrize("weight", [1e150, 1e300])
@pytest.mark.parametrize("solver", [sl.DDP, sl.FDDP, sl.BoxFDDP])
def test_weights_beyond_all_bounds(solver: Any, weight: float) -> None:
    result = solver(arm(final=[reach([0.3, 0.2, 0.6], weight=weight)])).solve()
    assert result.status in (sl.OCPStatus.REGULARISATION, sl.OCPStatus.NOT_FINITE, sl.OCPStatus.MAX_ITERATIONS)
    assert result.culprit >= 0 and "node" in result.reason and np.isfinite(result.xs).all()


def test_a_start_that_overflows() -> None:
    with pytest.raises(ValueError, match="lost at node 5: .* term 'tool FrameTranslation' costs inf there"):
        sl.FDDP(arm(final=[reach([1e200, 0.0, 0.0])])).solve()


# --- terms of users
@kernel
def root(tree, q, v, u, reference, rows):  # type: ignore[no-untyped-def]
    st(rows, 0, sqrt(ld(q, 0) - ld(reference, 0)))


def test_kernels_that_give_nan() -> None:
    """At the start; and on the way, where it is a step too far."""
    with pytest.raises(ValueError, match="lost at node 0: .* term 'root' costs nan there"):
        sl.FDDP(arm([Own(root, 1, name="root", reference=[1.0])])).solve()
    result = sl.FDDP(arm([Own(root, 1, name="root", reference=[-1e-3], weight=1e4)])).solve(max_iterations=20)
    assert np.isfinite(result.cost) and (result.xs[:5, 0] > -1e-3).all()


def own(function: Callable[..., Any], **more: Any) -> list[Term]:
    return [OwnFunction(function, 1, name="mine", **more)]


def raises(xs: Any, us: Any, references: Any) -> Any:
    raise KeyError("oops")


def scribbles(xs: Any, us: Any, references: Any) -> Any:
    us[...] = 0.0
    return us[..., :1]


def flat(xs: Any, us: Any, references: Any) -> Any:
    return xs[..., :1]


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (own(raises), "term 'mine': its function raises KeyError: 'oops'"),
        (own(scribbles), "term 'mine': its function raises ValueError: .*read-only"),
        (own(lambda *_: None), "term 'mine': its function raises TypeError: what it returns is not an array"),
        (own(lambda xs, *_: xs), r"term 'mine': its function returns the shape \(6, 14\), expected \(6, 1\)"),
        (own(lambda xs, *_: xs[..., :1] * NAN), "lost at node 0: .* term 'mine' costs nan there"),
        (own(flat, derivative=raises), "term 'mine': its derivative raises KeyError"),
        (own(flat, derivative=flat), r"its derivative returns the shape \(6, 1\), expected \(6, 1, 21\)"),
    ],
    ids=["raises", "writes", "nothing", "shape", "nan", "derivative raises", "derivative's shape"],
)
def test_functions_of_users(terms: list[Term], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sl.FDDP(arm(terms)).solve()


def test_derivatives_of_users_that_are_nan() -> None:
    def slopes(xs: Any, us: Any, references: Any) -> Any:
        found = np.zeros((*xs.shape[:-1], 1, 21))
        found[..., 2, 0, 3] = NAN
        return found

    result = sl.FDDP(arm(own(flat, derivative=slopes))).solve()
    assert result.status == sl.OCPStatus.NOT_FINITE and result.culprit == 2
    assert result.reason == "node 2: its derivatives are not finite; the slopes of term 'mine' are not finite there"


def test_what_does_not_count_may_be_anything() -> None:
    """A function that is NaN where its weight is 0."""

    def late(xs: Any, us: Any, references: Any) -> Any:
        rows = xs[..., :1].copy()
        rows[..., :3, :] = NAN
        return rows

    problem = arm(own(late))
    problem.set_weight("mine", 0.0, slice(0, 3))
    assert sl.FDDP(problem).solve(max_iterations=60).solved


def test_functions_see_no_lost_rollouts() -> None:
    def stern(xs: Any, us: Any, references: Any) -> Any:
        assert np.isfinite(xs).all()
        return xs[..., :1]

    problem = arm(own(stern), final=[reach([1e8, 0.0, 0.0], weight=1e8)])
    assert sl.FDDP(problem).solve(max_iterations=30).reason


# --- what is odd, and all right
SHAPES = {
    "lists": lambda array: array.tolist(),
    "float32": lambda array: array.astype(np.float32),
    "integers": lambda array: array.astype(int),
    "Fortran": np.asfortranarray,
    "strided": lambda array: np.repeat(np.repeat(array, 2, 0), 2, 1)[::2, ::2],
    "read-only": lambda array: np.broadcast_to(array, array.shape),
}


@pytest.mark.parametrize("form", SHAPES)
def test_arrays_of_all_kinds(form: str) -> None:
    xs, us, make = np.zeros((6, 14)), np.ones((5, 7)), SHAPES[form]
    problem = arm(x0=make(np.zeros((1, 14)))[0])
    problem.set_reference("tool FrameTranslation", make(np.array([[1.0, 2.0, 3.0]]))[0])
    plain = arm(final=[reach([1.0, 2.0, 3.0])])
    assert np.array_equal(problem.calc(make(xs), make(us)).costs, plain.calc(xs, us).costs)
    one, two = (
        sl.FDDP(p).solve(x, u, max_iterations=3) for p, x, u in ((problem, make(xs), make(us)), (plain, xs, us))
    )
    assert np.array_equal(one.us, two.us) and one.xs.dtype == np.float64
    assert np.array_equal(problem.rollout(make(us)), plain.rollout(us))


@pytest.mark.parametrize("solver", [sl.DDP, sl.FDDP, sl.BoxDDP, sl.BoxFDDP, sl.KKT, sl.BoxKKT])
def test_short_horizons(solver: Any) -> None:
    """One node, an impact alone, and no controls at all."""
    one = solver(arm(phases=[sl.Phase(nodes=1)])).solve(max_iterations=60)
    assert one.solved and one.xs.shape == (2, 14)
    still = solver(arm(terms=[State()], motors=[])).solve()
    assert still.solved and still.us.shape == (5, 0)
    impact = solver(arm(phases=[sl.ImpactPhase()])).solve()
    assert impact.solved and not impact.us.any()


def test_no_problems_at_all() -> None:
    result = sl.FDDP(arm()).solve(np.zeros((0, 6, 14)))
    assert result.xs.shape == (0, 6, 14) and result.status.shape == (0,) and result.solved


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_robots_of_other_sizes(scale: float) -> None:
    """Masses a million times as large need forces as large, and the same motion."""
    robot = sl.load_robot("double_pendulum")

    def swing(robot: sl.Model, share: float) -> Any:
        terms = [State(weight=1.0), Control(weight=1e-2 / share**2)]
        final = [State(weight=10.0, reference=[0.5, 0.3, 0.0, 0.0])]
        problem = sl.ShootingProblem(robot, np.zeros(4), [sl.Phase(nodes=10)], terms, final, motors=[0, 1], dt=0.02)
        return sl.FDDP(problem, reg_min=1e-30).solve(max_iterations=100)

    joints = [replace(joint, mass=scale * joint.mass, inertia=scale * joint.inertia) for joint in robot.joints]
    passive = ("damping", "armature", "friction", "effort_limit")
    heavy = robot.replace(joints=tuple(joints), **{name: scale * getattr(robot, name) for name in passive})
    plain, other = swing(robot, 1.0), swing(heavy, scale)
    assert plain.solved and other.solved
    assert np.allclose(other.us / scale, plain.us, rtol=1e-4, atol=1e-4)
    assert other.cost == pytest.approx(plain.cost, rel=1e-8)


def test_problems_and_solvers_travel() -> None:
    solver = sl.FDDP(arm())
    solver.solve(max_iterations=2)
    again = pickle.loads(pickle.dumps(solver))
    assert np.array_equal(again.solve(max_iterations=4).us, solver.solve(max_iterations=4).us)


@pytest.mark.parametrize("shared", [True, False])
def test_threads(shared: bool) -> None:
    """A problem for both, or one for each; solvers of their own."""
    one = arm()
    truth = sl.FDDP(one).solve(max_iterations=20).us
    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(lambda: sl.FDDP(one if shared else arm()).solve(max_iterations=20).us) for _ in range(8)]
        assert all(np.array_equal(task.result(timeout=60), truth) for task in tasks)


def test_a_solver_is_of_one_thread() -> None:
    entered, leave = threading.Event(), threading.Event()

    def wait(solver: Any) -> None:
        entered.set()
        assert leave.wait(60)

    solver = sl.FDDP(arm(), [wait])
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(solver.solve, max_iterations=1)
        assert entered.wait(60)
        with pytest.raises(RuntimeError, match="FDDP: it is solving already, expected a solver for each thread"):
            solver.solve()
        leave.set()
        assert task.result(timeout=60).iterations == 1
    assert solver.solve(max_iterations=1).iterations == 1


def test_callbacks_that_raise() -> None:
    """The error comes through, and the solver is as good as before."""

    def stumble(solver: Any) -> None:
        raise RuntimeError("stop")

    solver = sl.FDDP(arm(), [stumble])
    with pytest.raises(RuntimeError, match="stop"):
        solver.solve()
    solver.callbacks = ()
    assert solver.solve(max_iterations=2).iterations == 2


def test_interrupts_anywhere() -> None:
    """Whenever Ctrl-C comes, states, controls, cost and gaps are those of one iterate."""
    problem = arm(phases=[sl.Phase(nodes=100)])
    solver = sl.FDDP(problem, th_stop=1e-300)
    solver.solve(max_iterations=2)  # all is there
    old = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    try:
        for seconds in (0.02, 0.05, 0.1):
            signal.setitimer(signal.ITIMER_REAL, seconds)
            try:
                result = solver.solve(max_iterations=100_000)
            except KeyboardInterrupt:  # before there was an iterate
                continue
            assert result.status in (sl.OCPStatus.INTERRUPTED, sl.OCPStatus.REGULARISATION)
            values = problem.calc(result.xs, result.us)
            assert values.costs.sum() == pytest.approx(result.cost, rel=1e-10)
            ends = np.concatenate([problem.x0[None], values.next])
            assert np.allclose(problem.difference(result.xs, ends), result.gaps, atol=1e-9)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)
