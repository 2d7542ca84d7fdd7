"""Who drives a robot: transmissions, gearboxes and motors of files, and what follows for its degrees of freedom."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import saltus as sl
from tests.closeness import assert_close
from tests.model.robots import LIMIT, joint, link, robot, write


def transmission(joints: str, inside: str = "", interface: str = "hardware_interface/EffortJointInterface") -> str:
    told = f"<hardwareInterface>{interface}</hardwareInterface>" if interface else ""
    ends = "".join(f'<joint name="{name}">{told}</joint>' for name in joints.split())
    motors = "".join(f'<actuator name="{name}_motor">{inside}</actuator>' for name in joints.split())
    return f'<transmission name="t"><type>transmission_interface/SimpleTransmission</type>{ends}{motors}</transmission>'


def reduction(text: str) -> str:
    return f"<mechanicalReduction>{text}</mechanicalReduction>"


def arm(*transmissions: str, limit: str = LIMIT) -> str:
    links = [link(name) for name in "abcd"]
    joints = [joint("j1", "a", "b", inside=limit), joint("j2", "b", "c", "continuous", inside=""),
              joint("j3", "c", "d", "fixed", inside="")]  # fmt: skip
    return robot(*links, *joints, *transmissions)


def load(folder: Path, text: str, **options: bool) -> sl.Model:
    return sl.load_urdf(write(folder, text), **options)


def names_of(model: sl.Model, dofs: list[int]) -> list[str]:
    return [next(joint.name for joint in model.joints if joint.iv == k) for k in dofs]


def test_transmissions_are_actuators(tmp_path: Path) -> None:
    model = load(tmp_path, arm(transmission("j1", reduction("-50")), transmission("j2", interface="")))
    assert model.actuators == (
        sl.Actuator("j1_motor", "j1", -50.0, -3.0 / 50.0, 3.0 / 50.0),
        sl.Actuator("j2_motor", "j2", 1.0),
    )
    assert_close(model.actuators[0].most, 3.0, 1e-15)
    assert model.effort_limit.tolist() == [3.0, np.inf]
    assert sl.motors_of(model) == [0, 1]


def test_commands(tmp_path: Path) -> None:
    told = {"PositionJointInterface": "position", "hardware_interface/VelocityJointInterface": "velocity",
            "EffortJointInterface": "effort", "x/PosVelJointInterface": "other"}  # fmt: skip
    for interface, command in told.items():
        [actuator] = load(tmp_path, arm(transmission("j1", interface=interface))).actuators
        assert actuator.command == command
    assert load(tmp_path, arm(transmission("j1", interface="hardware_interface/JointStateInterface"))).actuators == ()


def test_differentials_and_joints_that_cannot_be_driven(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="saltus.model.urdf"):  # which benchmarks turn down
        model = load(tmp_path, arm(transmission("j1 j2", reduction("9")), transmission("j3"), transmission("nobody")))
    assert [(x.name, x.joint, x.gear) for x in model.actuators] == [("t_j1", "j1", 1.0), ("t_j2", "j2", 1.0)]
    assert caplog.text.count("transmissions of joints that do not exist: nobody") == 1


def test_old_transmissions_have_their_reduction_outside(tmp_path: Path) -> None:
    parts = f'<actuator name="m"/><joint name="j1"/>{reduction("63.5")}'
    old = f'<transmission name="t" type="SimpleTransmission">{parts}</transmission>'
    assert load(tmp_path, arm(old)).actuators[0].gear == 63.5


def test_followers_have_no_motor(tmp_path: Path) -> None:
    text = arm(transmission("j1")).replace(
        '<joint name="j2" type="continuous">', '<joint name="j2" type="continuous"><mimic joint="j4"/>'
    )
    text = text.replace(
        "</robot>", link("e") + joint("j4", "a", "e", "continuous", inside="") + transmission("j2") + "</robot>"
    )
    assert [x.joint for x in load(tmp_path, text, mimic=True).actuators] == ["j1"]
    assert [x.joint for x in load(tmp_path, text).actuators] == ["j1", "j2"]


@pytest.mark.parametrize("text", ["", "0", "fast", "1 2", "inf", "nan"])
def test_bad_reductions(tmp_path: Path, text: str) -> None:
    with pytest.raises(
        sl.ModelError, match=r"line 1: <mechanicalReduction> is '.*', expected a finite number other than 0"
    ):
        load(tmp_path, arm(transmission("j1", reduction(text))))


def test_a_joint_without_a_name(tmp_path: Path) -> None:
    with pytest.raises(sl.ModelError, match="<joint> of a <transmission> has no attribute 'name'"):
        load(tmp_path, arm("<transmission><joint/></transmission>"))


def test_written_and_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    given = load(
        tmp_path,
        arm(transmission("j1", reduction("0.07391769")), transmission("j2", interface="PositionJointInterface")),
    )
    with caplog.at_level(logging.WARNING):
        sl.save_urdf(given, tmp_path / "again.urdf")
    assert not caplog.text
    assert sl.load_urdf(tmp_path / "again.urdf").actuators == given.actuators
    other = given.replace(
        actuators=[sl.Actuator("weak", "j1", 2.0, -1.0, 1.0), sl.Actuator("loose", "j2", 0.0)],
        stiffness=[1.0, 0.0],
    )  # fmt: skip
    with caplog.at_level(logging.WARNING):
        sl.save_urdf(other, tmp_path / "other.urdf")
    for what in ("springs", "actuators of gear 0", "limits of actuators other than their joints'"):
        assert caplog.text.count(f"URDF has no place for {what}\n") == 1


# -------------------------------------------------------------------------------------------------------------- motors_of


def test_motors_where_limits_say(tmp_path: Path) -> None:
    """A finite limit counts, none or zero does not; beside transmissions too, as files have these for a part of a robot."""
    assert sl.motors_of(load(tmp_path, arm())) == [0]
    assert sl.motors_of(load(tmp_path, arm(transmission("j2")))) == [0, 1]
    zero = '<limit lower="-1" upper="2" effort="0" velocity="4"/>'
    assert sl.motors_of(load(tmp_path, arm(transmission("j1"), limit=zero))) == []
    assert sl.motors_of(load(tmp_path, arm(transmission("j1"), limit=zero), floating_base=True)) == []


def test_motors_where_nothing_is_said() -> None:
    """All joints with an axis; no base, ball, or spring; and none that may have no effort."""
    builder = sl.ModelBuilder("test")
    above = builder.add_body(builder.add_joint("base", "free_flyer"), 1.0, inertia=np.eye(3)) and "base"
    for name, kind, settings in (
        ("hinge", "revolute", {}), ("ball", "spherical", {}), ("wheel", "continuous", {}), ("slide", "prismatic", {}),
        ("spring", "revolute", {"stiffness": 3.0}), ("passive", "prismatic", {"effort_limit": 0.0}),
    ):  # fmt: skip
        builder.add_body(builder.add_joint(name, kind, above, **settings), 1.0, inertia=np.eye(3))  # type: ignore[arg-type]
        above = name
    assert names_of(builder.build(), sl.motors_of(builder.build())) == ["hinge", "wheel", "slide"]
    builder.add_actuator("pull", "spring", lower=-2.0, upper=5.0, gear=3.0)
    model = builder.build()
    assert names_of(model, sl.motors_of(model)) == ["spring"]
    assert model.effort_limit[sl.motors_of(model)].tolist() == [15.0]


def test_one_motor_on_a_four_bar() -> None:
    model = sl.load_mjcf(Path(__file__).parent / "mjcf" / "four_bar.xml")
    one = model.replace(actuators=[sl.Actuator("crank", model.joints[1].name)])
    assert np.isinf(one.effort_limit).all() and sl.motors_of(one) == [0]
    assert sl.motors_of(model.replace(actuators=())) == [0, 1, 2]
    assert sl.motors_of(model.replace(actuators=[sl.Actuator("crank", model.joints[1].name, gear=0.0)])) == []


def test_actuators_limit_the_effort_of_their_joint() -> None:
    def limit(*motors: dict[str, float], joint: float = 40.0) -> float:
        builder = sl.ModelBuilder("test")
        builder.add_body(builder.add_joint("j", "revolute", effort_limit=joint), 1.0, inertia=np.eye(3))
        for k, motor in enumerate(motors):
            builder.add_actuator(f"m{k}", "j", **motor)  # type: ignore[arg-type]
        return float(builder.build().effort_limit[0])

    assert limit() == limit({}) == 40.0
    assert limit({"gear": -5.0, "lower": -2.0, "upper": 1.0}) == 10.0
    assert limit({"gear": 5.0, "lower": -2.0, "upper": 2.0}, {"lower": 0.0, "upper": 7.0}) == 17.0
    assert limit({"gear": 5.0}, {"lower": -1.0, "upper": 1.0}) == 40.0
    assert limit({"gear": 0.0}) == 0.0
    assert limit({"gear": 3.0, "lower": -40.0 / 3.0, "upper": 40.0 / 3.0}) == 40.0


def test_bad_commands() -> None:
    with pytest.raises(
        sl.ModelError, match="actuator 'm': its command is 'jump', expected one of 'effort', 'position'"
    ):
        sl.Actuator("m", "j", command="jump")  # type: ignore[arg-type]


SHIPPED = {"quadruped": 12, "humanoid": 33, "biped": 10, "arm": 7, "cartpole": 1, "planar_human": 5, "four_bar": 1}
EXAMPLES = {"cassie": 10, "anymal": 12, "anymal_kinova": 18, "talos": 32, "baxter": 19, "kinova": 6, "iris": 0}


@pytest.mark.parametrize("name", [*SHIPPED, *EXAMPLES])
def test_motors_of_robots(name: str) -> None:
    assert len(sl.motors_of(sl.load_robot(name))) == (SHIPPED | EXAMPLES)[name]
