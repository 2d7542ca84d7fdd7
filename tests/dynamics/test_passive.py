"""Springs and dampers of joints: against MuJoCo, closed forms, and what they conserve."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pytest

import saltus as sl
from tests.closeness import assert_close

MODELS = Path(__file__).parents[1] / "model" / "mjcf"
SINGLE = ["revolute", "prismatic"]


def sprung(seed: int, bodies: int = 6, kinds: list[str] | None = None) -> sl.Model:
    """A random tree with springs on joints that may have one, and dampers on all."""
    model, rng = (
        sl.random_model(seed, bodies, kinds or [*SINGLE, "continuous", "spherical"]),
        np.random.default_rng(seed),
    )
    one = np.zeros(model.nv, bool)
    one[[joint.iv for joint in model.joints[1:] if joint.kind.name.lower() in SINGLE]] = True
    return model.replace(
        stiffness=np.where(one, rng.uniform(0.0, 20.0, model.nv), 0.0),
        spring_reference=np.where(one, rng.normal(size=model.nv), 0.0),
        damping=rng.uniform(0.0, 0.5, model.nv),
    )


def slopes_of(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """By central differences, the directions along the last axis."""
    h = 1e-5
    return np.stack([(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(len(x))], axis=-1)


def by_hand(model: sl.Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    tau = -model.damping * v
    for joint in model.joints[1:]:
        if joint.kind.name.lower() in SINGLE and not joint.mimic:
            k = joint.iv
            tau[..., k] -= model.stiffness[k] * (q[..., joint.iq] - model.spring_reference[k])
    return np.asarray(tau)


@pytest.mark.parametrize("seed", range(4))
def test_torques_and_energy(seed: int) -> None:
    model, rng = sprung(seed), np.random.default_rng(seed)
    q, v = sl.random_configuration(model, rng, shape=(5, 3)), rng.normal(size=(5, 3, model.nv))
    assert_close(sl.passive_torques(model, q, v), by_hand(model, q, v), 1e-14)
    assert_close(sl.passive_torques(model, q), by_hand(model, q, 0 * v), 1e-14)
    single = sl.passive_torques(model, q.astype(np.float32), v.astype(np.float32))
    assert single.dtype == np.float32
    assert_close(single, by_hand(model, q, v), 1e-5)
    energy = 0.5 * (
        (by_hand(model, q, 0 * v) ** 2)[..., model.stiffness > 0] / model.stiffness[model.stiffness > 0]
    ).sum(-1)
    assert_close(sl.elastic_energy(model, q), energy, 1e-13)
    for other in (sl.specialise(model), pickle.loads(pickle.dumps(model)), model.replace(name="other")):
        assert_close(sl.passive_torques(other, q, v), by_hand(model, q, v), 1e-14)
    varied = sl.vary_inertia(model, np.ones((5, 3, 1, 1)) * sl.inertial_parameters(model))
    assert_close(sl.passive_torques(varied, q, v), by_hand(model, q, v), 1e-14)
    assert np.array_equal(varied.nominal.stiffness, model.stiffness)


def test_torques_are_the_slope_of_the_energy() -> None:
    model = sprung(7, kinds=SINGLE)
    q = sl.random_configuration(model, 1)
    assert_close(-sl.passive_torques(model, q), slopes_of(lambda x: sl.elastic_energy(model, x), q), 1e-8)


@pytest.mark.parametrize("name", ["classes.xml", "springs.xml"])
def test_mujoco_has_the_same(name: str) -> None:
    """In degrees or not, by classes, with references other than zero."""
    model, m = sl.load_mjcf(MODELS / name), mujoco.MjModel.from_xml_path(str(MODELS / name))
    data, rng = mujoco.MjData(m), np.random.default_rng(2)
    assert (model.stiffness > 0).sum() >= 2 and model.spring_reference.any()
    for _ in range(3):
        mujoco.mj_resetData(m, data)
        for joint in model.joints[1:]:
            if joint.kind.has_axis:
                data.qpos[joint.iq] = rng.normal()
        data.qvel = rng.normal(size=m.nv)
        mujoco.mj_forward(m, data)
        q = data.qpos.copy()
        for joint in model.joints[1:]:
            if joint.kind == sl.JointKind.FREE_FLYER:
                q[joint.iq + 3 : joint.iq + 7] = np.roll(q[joint.iq + 3 : joint.iq + 7], -1)
        assert_close(sl.passive_torques(model, q, data.qvel), data.qfrc_passive, 1e-12)


def test_springs_that_a_file_switches_off(tmp_path: Path) -> None:
    text = (MODELS / "springs.xml").read_text()
    path = tmp_path / "off.xml"
    path.write_text(text.replace("<worldbody>", '<option><flag spring="disable"/></option><worldbody>'))
    assert not sl.load_mjcf(path).stiffness.any()


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
def test_an_oscillator(method: str) -> None:
    """A mass on a spring, pulled by gravity and damped: x'' = -(k (x - r) + c x') / m - g, in closed form."""
    mass, k, c, rest, g = 2.0, 50.0, 3.0, 0.3, 9.81
    builder = sl.ModelBuilder("oscillator")
    joint = builder.add_joint("slide", "prismatic", stiffness=k, damping=c, spring_reference=rest)
    builder.add_body(joint, mass)
    model = builder.build()
    middle = rest - mass * g / k
    for damping in (False, True):
        run = sl.rollout(model, [0.5], [0.1], duration=1.0, dt=1e-4, method=method, damping=damping)  # type: ignore[arg-type]
        decay = c / (2 * mass) if damping else 0.0
        w = np.sqrt(k / mass - decay**2)
        x, v = 0.5 - middle, 0.1
        right = middle + np.exp(-decay * run.t) * (x * np.cos(w * run.t) + (v + decay * x) / w * np.sin(w * run.t))
        assert_close(run.q[:, 0], right, 1e-9 if method == "rk4" else 1e-3)
    still = sl.rollout(model, [0.5], [0.0], duration=0.1, dt=1e-3, method=method, springs=False)  # type: ignore[arg-type]
    assert_close(still.q[-1], [0.5 - 0.5 * g * 0.01], 1e-2)


@pytest.mark.parametrize("seed", range(3))
def test_energy_is_conserved(seed: int) -> None:
    model = sprung(seed, kinds=[*SINGLE, "continuous"])
    assert model.stiffness.any()
    start = sl.random_configuration(model, seed)
    swing = sl.rollout(model, start, np.ones(model.nv), duration=0.3, dt=5e-4)
    [energy] = sl.conservation_drift(model, swing)
    assert energy.relative.max() < 1e-7
    without = sl.rollout(model, start, np.ones(model.nv), duration=0.3, dt=5e-4, springs=False)
    assert np.abs(without.q[-1] - swing.q[-1]).max() > 1e-2


def test_many_steps_in_one_call_are_single_steps() -> None:
    """Of a batch, under each kind of command, against steps that are asked for one by one."""
    model, rng = sprung(3), np.random.default_rng(3)
    q, v, steps = sl.random_configuration(model, rng, shape=(4,)), rng.normal(size=(4, model.nv)), 40
    target = np.broadcast_to(model.neutral(), (steps, model.nq))
    torque = rng.normal(size=(steps, model.nv))
    for damping in (False, True):
        how = {"duration": steps * 1e-3, "method": "semi_implicit_euler", "damping": damping}
        for tau in (np.ones(model.nv), sl.OverTime(torque), sl.PDTargets(target, kp=3.0, kd=0.2)):
            at_once = sl.rollout(model, q, v, tau, **how)  # type: ignore[arg-type]
            single = sl.rollout(model, q, v, tau, **how, disturbance=lambda t, q, v: 0 * v)  # type: ignore[arg-type]
            assert_close(at_once.q, single.q, 1e-10)
            assert_close(at_once.v, single.v, 1e-10)


def test_springs_under_constraints() -> None:
    """With a loop closed, the energy of motion, height and springs stays."""
    four_bar = sl.load_robot("four_bar").replace(stiffness=[4.0, 1.0, 0.0], spring_reference=[0.3, -0.2, 0.0])
    closed = sl.ConstrainedDynamics(four_bar, sl.model_loops(four_bar), method="prox_ltl")
    swing = sl.rollout(closed, four_bar.reference_configurations["standing"], np.zeros(3), duration=0.5)
    [energy] = sl.conservation_drift(four_bar, swing)
    assert energy.relative.max() < 1e-7
    assert np.ptp(sl.elastic_energy(four_bar, swing.q)) > 0.05


def test_mimic_joints_have_their_primarys() -> None:
    """A follower at twice the angle of a joint with a spring: the torque is that of the one spring."""
    builder = sl.ModelBuilder("hand")
    first = builder.add_joint("first", "revolute", axis=(0, 1, 0), stiffness=2.0, spring_reference=0.1, damping=0.3)
    builder.add_body(first, 1.0, inertia=np.eye(3) * 0.1)
    second = builder.add_joint("second", "revolute", first, axis=(0, 1, 0), mimic=sl.Mimic("first", 2.0))
    builder.add_body(second, 1.0, inertia=np.eye(3) * 0.1)
    model = builder.build()
    assert_close(sl.passive_torques(model, [0.6], [2.0]), [-2.0 * 0.5 - 0.3 * 2.0], 1e-14)
    assert_close(sl.elastic_energy(model, [0.6]), 0.25, 1e-14)
    swing = sl.rollout(model.replace(gravity=np.zeros(3)), [0.6], [0.0], duration=0.2)
    inertia = sl.crba(model, [0.0])[0, 0]
    assert_close(swing.q[-1], [0.1 + 0.5 * np.cos(np.sqrt(2.0 / inertia) * 0.2)], 1e-9)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
def test_step_derivatives(method: str) -> None:
    """The step is that of a rollout, and its derivatives those of differences of it."""
    model, rng = sprung(5, kinds=SINGLE), np.random.default_rng(5)
    q, v, tau = sl.random_configuration(model, rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    for damping in (False, True):
        how = {"method": method, "damping": damping}
        step = sl.step_derivatives(model, q, v, tau, 1e-2, **how)  # type: ignore[arg-type]
        run = sl.rollout(model, q, v, tau, duration=1e-2, dt=1e-2, **how)  # type: ignore[arg-type]
        assert_close(step.q, run.q[-1], 1e-13)
        assert_close(step.v, run.v[-1], 1e-13)

        def after(x: np.ndarray, how: dict[str, object] = how) -> np.ndarray:
            there = sl.step_derivatives(model, *np.split(x, 3), 1e-2, **how)  # type: ignore[arg-type]
            return np.concatenate([there.q, there.v])

        x = np.concatenate([q, v, tau])
        assert_close(np.concatenate([step.A, step.B], axis=-1), slopes_of(after, x), 1e-7)
    off = sl.step_derivatives(model, q, v, tau, 1e-2, springs=False)
    plain = sl.step_derivatives(model.replace(stiffness=0.0), q, v, tau, 1e-2)
    assert_close(off.A, plain.A, 1e-14)


@pytest.mark.parametrize("kind", ["continuous", "planar", "spherical", "free_flyer"])
def test_springs_on_other_joints_are_refused(kind: str) -> None:
    builder = sl.ModelBuilder("test")
    builder.add_body(builder.add_joint("j", kind, stiffness=1.0), 1.0, inertia=np.eye(3))
    with pytest.raises(sl.ModelError, match=f"joint 'j' is {kind.upper()} and has a stiffness, expected .* REVOLUTE"):
        builder.build()


def test_bad_springs() -> None:
    model = sl.random_model(0, 2, ["revolute"])
    with pytest.raises(sl.ModelError, match="stiffness is .* expected nothing negative"):
        model.replace(stiffness=-1.0)
    with pytest.raises(sl.ModelError, match="spring_reference contains an infinity"):
        model.replace(spring_reference=np.inf)
    with pytest.raises(sl.ModelError, match=r"spring_reference has shape \(3,\), expected \(2,\)"):
        model.replace(spring_reference=np.zeros(3))
    builder = sl.ModelBuilder("test")
    with pytest.raises(sl.ModelError, match="stiffness of joint 'j' is .* negative"):
        builder.add_joint("j", "revolute", stiffness=-1.0)
    with pytest.raises(sl.ModelError, match="spring_reference of joint 'j' contains NaN"):
        builder.add_joint("j", "revolute", spring_reference=np.nan)
