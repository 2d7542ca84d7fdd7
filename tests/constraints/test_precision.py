"""What a status promises: CONVERGED is right, in single precision as well, at any scale, with any mu."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.constraints.dynamics import METHODS, TREES_ONLY
from tests.constraints.truth import solve as dense
from tests.generators import chain, floating_tree
from tools.fuzz.dense import Problem, Sample
from tools.fuzz.robots import LINEAR, Units

FORM_M = {"kkt", "prox_ltl", "prox_ltls"}
"""Methods that form the inertia matrix."""

RIGHT = 1e-4  # of the largest acceleration, gravity among them, in single precision


def held(name: str) -> tuple[sl.Model, list[sl.Constraint]]:
    """A shipped robot on its feet, or by its hand, with the loops that its file declares."""
    model, frames = sl.load_robot(name), sl.robot_frames(name)
    limbs = frames.feet or frames.hands or ([] if model.loops else [model.frames[-1].name])
    dim = 6 if len(limbs) <= 2 and model.nv >= 6 else 3
    return model, [*(sl.Contact(model, limb, dim) for limb in limbs), *sl.model_loops(model)]


def states(model: sl.Model, count: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng([seed, model.nv])
    v, tau = rng.normal(size=(2, count, model.nv))
    return [sl.random_configuration(model, seed, count), v, 10.0 * tau]


def able(constraints: list[sl.Constraint]) -> list[str]:
    loops = any(constraint.joint_b > 0 for constraint in constraints)
    return [method for method in METHODS if not (loops and method in TREES_ONLY)]


def errors(found: Any, right: Any) -> Any:
    return np.abs(found - right).max(-1) / np.maximum(np.abs(right).max(-1), 9.81)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadruped", "humanoid", "humanoid_hands", "biped", "arm", "double_pendulum",
                                  "planar_human", "four_bar"])  # fmt: skip
def test_single_precision_is_right_or_says_that_it_is_not(name: str) -> None:
    model, constraints = held(name)
    single = [x.astype(np.float32) for x in states(model, 1000)]
    double = [x.astype(np.float64) for x in single]
    right = sl.ConstrainedDynamics(model, constraints, able(constraints)[1], tolerance=1e-12).solve(*double)
    for method in able(constraints):
        solution = sl.ConstrainedDynamics(model, constraints, method).solve(*single)
        assert solution.a.dtype == solution.forces.dtype == np.float32
        converged = solution.status == sl.Status.CONVERGED
        wrong = errors(solution.a, right.a)[converged & (right.status == sl.Status.CONVERGED)]
        assert wrong.max(initial=0.0) < RIGHT, (method, wrong.max())
        assert converged.mean() > 0.9, (method, converged.mean())


@pytest.mark.parametrize("method", METHODS)
def test_a_small_body_far_from_what_it_turns_about(method: str) -> None:
    """A marble of 3 mm at the end of a metre, at 12 m/s: m v^2 is 1e5 times the moment that turns it, whose digits it must
    not take."""
    builder = sl.ModelBuilder("sling")
    turn = builder.add_joint("turn", "revolute", axis=(0, 0, 1))
    builder.add_body(turn, mass=1e-6, inertia=1e-6 * np.eye(3))
    reach = builder.add_joint("reach", "prismatic", parent=turn, axis=(1, 0, 0))
    builder.add_body(reach, mass=1e-6, inertia=1e-12 * np.eye(3))
    marble = builder.add_joint("marble", "spherical", parent=reach)
    builder.add_body(marble, mass=1e-6, com=(2e-3, 0.0, 0.0), inertia=1e-12 * np.eye(3))
    model = builder.build()
    q = sl.random_configuration(model, 0, 64)
    q[:, 1] = 1.0
    v = np.tile(np.array([12.0, 0.5, 9.0, -7.0, 12.0]), (64, 1))
    tau = 1e-11 * np.random.default_rng(0).normal(size=v.shape)
    contact = sl.Contact(model, "reach", 3)
    right = dense(model, [contact], q, v, tau)[0]
    solution = sl.ConstrainedDynamics(model, [contact], method).solve(*(x.astype(np.float32) for x in (q, v, tau)))
    assert (np.abs(solution.a - right).max(-1) < RIGHT * np.abs(right).max(-1)).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_small_body_far_from_the_first_one(method: str) -> None:
    """About the origin of the first body, an inertia of 1 cm is mostly its distance: what that rounds, forces show.

    All turns are about z, and the last body, held about its own axis, feels nothing of where it is:

        turn = tau_1 / (I_1 + I_2 + (m_2 + m_3) d^2),      turn + spin = target,      force = I_3 target
    """
    builder, inertia = sl.ModelBuilder("crane"), 4e-5
    turn = builder.add_joint("turn", "revolute", axis=(0, 0, 1))
    builder.add_body(turn, mass=1.0, inertia=np.eye(3))
    slide = builder.add_joint("slide", "prismatic", parent=turn, axis=(1, 0, 0))
    builder.add_body(slide, mass=1.0, inertia=np.eye(3))
    spin = builder.add_joint("spin", "revolute", parent=slide, axis=(0, 0, 1))
    builder.add_body(spin, mass=1.0, inertia=inertia * np.eye(3))
    model = builder.build()
    far = 10.0 ** np.repeat(np.arange(7.0), 16)
    angles = np.random.default_rng(0).uniform(-np.pi, np.pi, (2, len(far)))
    q = np.stack([angles[0], far, angles[1]], -1)
    whole = 2.0 + 2.0 * far**2
    tau = np.stack([whole, 0.0 * far, 0.0 * far], -1)
    dynamics = sl.ConstrainedDynamics(model, [sl.Contact(model, "spin", rows=(5,))], method)
    solution = dynamics.solve(q, 0.0 * tau, tau, target=np.full((len(far), 1), 3.0))
    converged = solution.status == sl.Status.CONVERGED
    assert (np.abs(solution.a - [1.0, 0.0, 2.0]).max(-1) < 3e-7 * 2.0)[converged].all()
    # Forces, by the accelerations that they give: ten times what accelerations may be off.
    assert (np.abs(solution.forces[:, 0] / inertia - 3.0) < 3e-6 * 2.0)[converged].all()
    assert converged[far <= 100.0].all()  # eps m_3 d^2 / I_3 is below 1e-7
    assert converged.all() or method in FORM_M


@pytest.mark.parametrize("method", METHODS)
def test_a_light_link_far_out_that_carries_a_heavy_one(method: str) -> None:
    """The link feels little of what it carries, which turns freely; but the latter's inertia takes the digits of its own."""
    for light in (1.0, 1e-2, 1e-4, 1e-6):
        builder = sl.ModelBuilder("crane")
        turn = builder.add_joint("turn", "revolute", axis=(0, 0, 1))
        builder.add_body(turn, mass=1.0, inertia=np.eye(3))
        slide = builder.add_joint("slide", "prismatic", parent=turn, axis=(1, 0, 0))
        builder.add_body(slide, mass=1.0, inertia=np.eye(3))
        link = builder.add_joint("link", "revolute", parent=slide, axis=(0, 0.6, 0.8))
        builder.add_body(link, mass=light, inertia=light * 1e-4 * np.eye(3))
        ball = builder.add_joint("ball", "spherical", parent=link)
        builder.add_body(ball, mass=1.0, com=(1e-3, 5e-3, 0.0), inertia=1e-4 * np.diag([0.4, 0.5, 0.6]))
        model = builder.build()
        q, v, tau = states(model, 4)
        v, tau, rest = v * [0, 0, 3, 3, 3, 3], tau * [1, 1, 1e-7, 1e-5, 1e-5, 1e-5], np.zeros((0, model.nv))
        contact, units = sl.Contact(model, "ball", rows=[3]), Units(model, 1.0, 1.0)
        for far in (1.0, 10.0, 100.0, 1000.0):
            q[:, 1] = far
            solution = sl.ConstrainedDynamics(model, [contact], method).solve(q, v, tau)
            for each, a, status in zip(zip(q, v, tau, strict=True), solution.a, solution.status, strict=True):
                sample = Sample(*each, np.ones(1), np.zeros(1), rest, np.zeros((model.njoints, 6)))
                right = Problem.of(units, [contact], np.ones(1), sample).solution[0]
                assert status != sl.Status.CONVERGED or np.abs(a - right).max() < 3e-7 * np.abs(right).max()
                assert status == sl.Status.CONVERGED or method in FORM_M
                assert status == sl.Status.CONVERGED or far**2 > 1e3 * light


TINY, HUGE = 1e-3, 1e3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("size", "kind", "rows", "acceleration"), [(TINY, "revolute", (0, 1, 2), 5e3), (HUGE, "prismatic", (3, 4, 5), 1e4)]
)
def test_metres_are_not_radians(
    size: float, kind: str, rows: tuple[int, ...], acceleration: float, method: str, dtype: Any
) -> None:
    """What a tiny robot rounds in rad/s^2 is much in m/s^2, and what a huge one rounds in m/s^2 is much in rad/s^2: neither
    hides that a point on an axis stands still, or that a slide does not turn, while rows of the other kind are there."""
    builder = sl.ModelBuilder("one joint")
    joint = builder.add_joint("joint", kind, axis=(0, 0, 1))
    builder.add_body(joint, mass=1.0, inertia=size**2 * np.eye(3))
    model = builder.build()
    contacts = [sl.Contact(model, "joint", rows=rows), sl.Contact(model, "joint", 6, name="not active")]
    turns = kind == "revolute"
    tau = acceleration * (size**2 if turns else 1.0)
    asked = acceleration * (size if turns else 1.0 / size) * 10.0 ** -np.arange(1.0, 5.0)
    target = np.zeros((4, 9))
    target[:, 0] = asked
    inputs = (np.full((4, 1), x, dtype) for x in (0.3, 0.0, tau))
    active = np.array([1.0, 0.0], dtype)
    solution = sl.ConstrainedDynamics(model, contacts, method).solve(*inputs, active, target.astype(dtype))
    assert (solution.status != sl.Status.CONVERGED).all()
    assert (solution.residual > 0.999 * asked).all()


@pytest.mark.slow
def test_a_model_that_single_precision_cannot_hold_is_never_converged() -> None:
    """A link nearly without inertia carries a heavy one: its numbers, rounded, are another robot's."""
    builder = sl.ModelBuilder("light")
    shoulder = builder.add_joint("shoulder", "revolute", axis=(0, 1, 0))
    builder.add_body(shoulder, mass=1.0, inertia=0.01 * np.eye(3))
    wrist = builder.add_joint("wrist", "revolute", parent=shoulder, axis=(0, 1, 0))
    builder.add_body(wrist, mass=1e-9, inertia=1e-14 * np.eye(3))
    twist = builder.add_joint("twist", "revolute", parent=wrist, axis=(0, 1, 0))
    builder.add_body(twist, mass=1.0, inertia=0.01 * np.eye(3))
    model = builder.build()
    single = [x.astype(np.float32) for x in states(model, 8)]
    solution = sl.ConstrainedDynamics(model, [sl.Contact(model, "twist", rows=(0,))]).solve(*single)
    assert (solution.status != sl.Status.CONVERGED).all()


def test_the_dense_method_meets_constraints_to_the_last_digits() -> None:
    """A foot on a leg of three joints is held in all six directions, so that the others must give way: accelerations are
    small sums of large ones."""
    model, feet = sl.load_robot("quadruped"), sl.robot_frames("quadruped").feet
    constraints = [sl.Contact(model, feet[0], 6), *(sl.Contact(model, foot, 3) for foot in feet[1:])]
    solution = sl.ConstrainedDynamics(model, constraints, "kkt", tolerance=1e-12).solve(*states(model, 256))
    assert (solution.status == sl.Status.CONVERGED).all()


def test_the_dense_method_tells_rounding_from_rank() -> None:
    """Bodies float 10 km apart, and one is asked for two accelerations: what the rounding of the Delassus matrix makes of
    rows that are alike is no row that could be met."""
    model = chain(floating_tree(115, 5))
    units, q = Units(model, 1.0, 1.0), sl.random_configuration(model, 115)
    for joint in model.joints:
        q[joint.iq : joint.iq + LINEAR.get(joint.kind, 0)] *= 1e4
    rng = np.random.default_rng(115)
    tau, target = rng.normal(size=model.nv), rng.normal(size=6)
    frame = next(frame.name for frame in model.frames if frame.joint == 2)
    contacts = [sl.Contact(model, frame, name=name) for name in ("one", "other")]
    rest = np.ones(2), target, np.zeros((0, model.nv)), np.zeros((model.njoints, 6))
    a, forces = Problem.of(units, contacts, np.ones(6), Sample(q, 0.0 * tau, tau, *rest)).solution
    solution = sl.ConstrainedDynamics(model, contacts, "kkt").solve(q, 0.0 * tau, tau, target=target)
    assert solution.status in (sl.Status.LEAST_SQUARES, sl.Status.INACCURATE)  # it depends on how a processor rounds
    np.testing.assert_allclose(solution.a, a, atol=1e-6 * np.abs(a).max())
    np.testing.assert_allclose(solution.forces, forces, atol=1e-5 * np.abs(forces).max())


def scaled(model: sl.Model, mass: float, length: float) -> sl.Model:
    """The same robot of other stuff, and larger or smaller."""

    def placed(X: Any) -> Any:
        return np.block([[X[:3, :3], length * X[:3, 3:]], [X[3:]]])

    joints = [
        replace(
            joint, placement=placed(joint.placement), mass=mass * joint.mass, com=length * joint.com,
            inertia=mass * length**2 * joint.inertia,
        )
        for joint in model.joints
    ]  # fmt: skip
    frames = [sl.Frame(f.name, f.joint, placed(f.placement), f.kind, f.parent) for f in model.frames]
    return model.replace(joints=tuple(joints), frames=tuple(frames), armature=mass * length**2 * model.armature)


@pytest.mark.parametrize("length", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("mass", [1e-9, 1.0, 1e9])
def test_masses_and_lengths_do_not_matter(mass: float, length: float) -> None:
    model, feet = scaled(sl.load_robot("quadruped"), mass, length), sl.robot_frames("quadruped").feet
    constraints = [sl.Contact(model, foot) for foot in feet]
    q, v, tau = states(model, 24)
    q[:, :3] *= length
    v[:, :3] *= length
    tau *= mass * length**2
    right, forces, _ = dense(model, constraints, q, v, tau)
    for method in METHODS:
        solution = sl.ConstrainedDynamics(model, constraints, method).solve(q, v, tau)
        assert (solution.status == sl.Status.CONVERGED).all(), method
        assert errors(solution.a, right).max() < 1e-9, method
        assert (np.abs(solution.forces - forces).max(-1) < 1e-8 * np.abs(forces).max(-1)).all(), method


@pytest.mark.parametrize("mu", [1e-16, 1e-12, 1e-3, 1.0, 1e3])
def test_any_mu_is_right_or_says_that_it_is_not(mu: float) -> None:
    model, constraints = held("quadruped")
    inputs = states(model, 24)
    right, _, _ = dense(model, constraints, *inputs)
    for method in METHODS:
        solution = sl.ConstrainedDynamics(model, constraints, method, mu=mu).solve(*inputs)
        converged = solution.status == sl.Status.CONVERGED
        assert errors(solution.a, right)[converged].max(initial=0.0) < 1e-7, method
        assert converged.all() or mu < 1e-10 or mu > 1e-2, method


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mu", [1e-3, 1e-6, 1e-8, 2e-10])
def test_least_squares_are_right_or_say_that_they_are_not(mu: float, method: str) -> None:
    """The tip of a pendulum is asked for two accelerations: forces grow by 1 / mu, and so does what is rounded of them.

    a = J^T (target_1 + target_2) / (2 J^T J),      J = (-y, x, 0) of the tip
    """
    builder, tip = sl.ModelBuilder("pendulum"), np.eye(4)
    turn = builder.add_joint("turn", "revolute", axis=(0, 0, 1))
    builder.add_body(turn, mass=1.0, com=(0.5, 0.0, 0.0), inertia=0.1 * np.eye(3))
    tip[:2, 3] = 0.7, 0.2
    builder.add_frame("tip", turn, tip)
    model = builder.build()
    q, v, tau = states(model, 64)
    target = np.random.default_rng(0).normal(size=(64, 6))
    J = np.array([-0.2, 0.7, 0.0])
    right = (target[:, :3] + target[:, 3:]) @ J / (2.0 * J @ J)
    contacts = [sl.Contact(model, "tip", name=name) for name in ("one", "other")]
    typical = sl.ConstrainedDynamics(model, contacts)._typical
    solution = sl.ConstrainedDynamics(model, contacts, method, mu=mu * typical).solve(q, 0.0 * v, tau, target=target)
    least = solution.status == sl.Status.LEAST_SQUARES
    assert (np.abs(solution.a[:, 0] - right) < 3e-7 * 9.81)[least].all()
    assert (solution.status != sl.Status.CONVERGED).all()
    assert least.all() or mu < 1e-7 or method == "prox_ltls"


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("dim", [3, 6])
def test_a_frame_that_is_fixed_to_the_world_is_held_already(method: str, dim: int) -> None:
    model = sl.load_robot("arm")
    base, hand = sl.Contact(model, "universe", dim), sl.Contact(model, "tool", 3)
    inputs = states(model, 16)
    alone = sl.ConstrainedDynamics(model, [hand], method).solve(*inputs)
    both = sl.ConstrainedDynamics(model, [base, hand], method).solve(*inputs)
    np.testing.assert_allclose(both.a, alone.a, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(both.forces[:, dim:], alone.forces, rtol=1e-8, atol=1e-8)
    assert (both.forces[:, :dim] == 0.0).all() and (both.status == sl.Status.CONVERGED).all()

    asked = np.zeros(both.forces.shape)
    asked[:, 0] = 2.0
    missed = sl.ConstrainedDynamics(model, [base, hand], method).solve(*inputs, target=asked)
    np.testing.assert_allclose(missed.a, alone.a, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(missed.residual, 2.0)
    assert (missed.status == sl.Status.LEAST_SQUARES).all()


def test_derivatives_where_constraints_contradict_each_other_are_nan() -> None:
    model = sl.load_robot("quadruped")
    foot = sl.robot_frames("quadruped").feet[0]
    twice = sl.ConstrainedDynamics(model, [sl.Contact(model, foot, name="one"), sl.Contact(model, foot, name="other")])
    q, v, tau = states(model, 3)
    target = np.zeros((3, 6))
    target[1, 0] = 1.0  # the other holds still
    D = twice.derivatives(q, v, tau, target=target)
    assert list(D.status) == [sl.Status.CONVERGED, sl.Status.LEAST_SQUARES, sl.Status.CONVERGED]
    for name in ("da_dq", "da_dv", "da_dtau", "da_dtarget", "df_dq", "df_dv", "df_dtau", "df_dtarget"):
        slopes = getattr(D, name)
        assert np.isnan(slopes[1]).all() and np.isfinite(slopes[[0, 2]]).all(), name
    one = twice.derivatives(q[1], v[1], tau[1], target=target[1])
    assert one.status is sl.Status.LEAST_SQUARES and np.isnan(one.da_dq).all()
    _, (dq, _, dtau, *_) = sl.vjp(
        sl.ConstrainedDynamics.solve, twice, (q, v, tau, None, target), (np.ones(model.nv), None)
    )
    assert np.isnan(dq[1]).all() and np.isfinite(dq[[0, 2]]).all() and np.isnan(dtau[1]).all()
    inputs, directions = (q[1], v[1], tau[1], None, target[1]), (np.ones(model.nv), None, None, None, None)
    _, (da, _) = sl.jvp(sl.ConstrainedDynamics.solve, twice, inputs, directions, mode="analytical")
    assert np.isnan(da).all()
    iterated = twice.derivatives(q[1], v[1], tau[1], target=target[1], mode="fdc")
    assert np.isfinite(iterated.da_dq).all()


def test_what_is_refused() -> None:
    model, constraints = held("quadruped")
    dynamics, inputs = sl.ConstrainedDynamics(model, constraints), states(model, 2)
    with pytest.raises(ValueError, match=r"active has the entry 0\.5, expected 1 for constraints that hold and 0"):
        dynamics.solve(*inputs, active=[1, 0.5, 1, 1])
    with pytest.raises(sl.ModelError, match=r"most_iterations = 2\.5: expected an integer"):
        sl.ConstrainedDynamics(model, constraints, most_iterations=2.5)  # type: ignore[arg-type]
    other = sl.load_robot("humanoid")
    with pytest.raises(sl.ModelError, match=r"of another model, expected one of 'humanoid', whose joint"):
        sl.ConstrainedDynamics(other, constraints)


def test_a_status_prints_its_name() -> None:
    model, constraints = held("quadruped")
    status = sl.ConstrainedDynamics(model, constraints).solve(*(x[0] for x in states(model, 1))).status
    assert str(status) == f"{status}" == "CONVERGED" and status == 0
