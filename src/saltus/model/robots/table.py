"""Which robots there are: those that come with saltus, and those of the package example-robot-data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from saltus.model.model import Model
from saltus.model.robots.cassie import load_cassie

Names = tuple[str, ...]


@dataclass(frozen=True)
class Robot:
    """A robot's files, below the folder that it comes in, how it stands, and its frames."""

    file: str  # URDF or SDF
    srdf: str = ""  # has its poses
    standing: str = ""  # which of these that is; empty: none is known, neutral must do
    floating_base: bool = False
    base: tuple[float, ...] = ()  # (7,) position and quaternion of the base when it stands, where the SRDF has none
    feet: Names = ()
    hands: Names = ()
    completed: Callable[[Path], Model] | None = None
    """Loads it, where its file leaves out or gets wrong what the robot needs to stand."""


_LEGS = ("LF_FOOT", "LH_FOOT", "RF_FOOT", "RH_FOOT")
_SOLES, _HANDS = ("left_sole", "right_sole"), ("left_hand", "right_hand")


def _shipped(file: str, floating_base: bool = False, feet: Names = (), hands: Names = ()) -> Robot:
    name, _, _ = file.partition(".")
    return Robot(file, f"{name}.srdf", "standing", floating_base, feet=feet, hands=hands)


SHIPPED = {
    "quadruped": _shipped("quadruped.urdf", True, _LEGS),
    "humanoid": _shipped("humanoid.urdf", True, _SOLES, _HANDS),
    "humanoid_hands": _shipped("humanoid_hands.urdf", True, _SOLES, _HANDS),
    "biped": _shipped("biped.sdf", True, _SOLES),
    "arm": _shipped("arm.urdf", hands=("tool",)),
    "double_pendulum": _shipped("double_pendulum.urdf"),
    "cartpole": _shipped("cartpole.urdf"),
    "planar_human": _shipped("planar_human.urdf", feet=("heel", "toe"), hands=("hand",)),
    "four_bar": _shipped("four_bar.sdf"),
}
"""Made by `tools/make_robots`; all floating bases but the planar human's, which has three joints, are free flyers."""

_FRONT_REAR = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
_FRONT_HIND = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")


def _example(
    file: str,
    poses: str = "",
    standing: str = "",
    *,
    base: tuple[float, ...] = (),
    feet: Names = (),
    hands: Names = (),
) -> Robot:
    """One whose poses are in the usual folder; on a fixed base or, if it has feet, on a floating one."""
    folder, _, _ = file.partition("/")
    return Robot(file, f"{folder}/srdf/{poses}" if poses else "", standing, bool(feet), base, feet, hands)


def _high(z: float) -> tuple[float, ...]:
    """An upright base at this height [m]."""
    return 0.0, 0.0, z, 0.0, 0.0, 0.0, 1.0


_TALOS = _example(
    "talos_data/robots/talos_reduced.urdf",
    "talos.srdf",
    "half_sitting",
    feet=("left_sole_link", "right_sole_link"),
    hands=("gripper_left_base_link", "gripper_right_base_link"),
)
_ICUB = _example(
    "icub_description/robots/icub.urdf",
    "icub.srdf",
    "half_sitting",
    feet=("l_sole", "r_sole"),
    hands=("l_gripper", "r_gripper"),
)
_SIMPLE_HUMANOID = _example(
    "simple_humanoid_description/urdf/simple_humanoid.urdf",
    "simple_humanoid.srdf",
    "half_sitting",
    base=_high(0.697),
    feet=("l_ankle", "r_ankle"),
    hands=("l_wrist", "r_wrist"),
)
EXAMPLES = {
    # On four legs.
    "a1": _example("a1_description/urdf/a1.urdf", "a1.srdf", "standing", feet=_FRONT_REAR),
    "anymal": _example("anymal_b_simple_description/robots/anymal.urdf", "anymal.srdf", "standing", feet=_LEGS),
    "anymal_c": _example("anymal_c_simple_description/urdf/anymal.urdf", "anymal.srdf", "standing", feet=_LEGS),
    "anymal_kinova": _example(
        "anymal_b_simple_description/robots/anymal-kinova.urdf",
        "anymal-kinova.srdf",
        "standing_with_arm_up",
        feet=_LEGS,
        hands=("j2s6s200_end_effector",),
    ),
    "b1": _example("b1_description/urdf/b1.urdf", "b1.srdf", "standing", feet=_FRONT_REAR),
    "b1_z1": _example(
        "b1_description/urdf/b1-z1.urdf",
        "b1-z1.srdf",
        "standing_with_arm_home",
        feet=_FRONT_REAR,
        hands=("gripperMover",),
    ),
    "go1": _example("go1_description/urdf/go1.urdf", "go1.srdf", "standing", feet=_FRONT_REAR),
    "go2": _example("go2_description/urdf/go2.urdf", "go2.srdf", "standing", feet=_FRONT_REAR),
    "hyq": _example(
        "hyq_description/robots/hyq_no_sensors.urdf",
        "hyq.srdf",
        "standing",
        feet=("lf_foot", "lh_foot", "rf_foot", "rh_foot"),
    ),
    "laikago": _example("laikago_description/urdf/laikago.urdf", base=_high(0.527), feet=_FRONT_REAR),
    "solo8": _example("solo_description/robots/solo.urdf", "solo.srdf", "standing", feet=_FRONT_HIND),
    "solo12": _example("solo_description/robots/solo12.urdf", "solo.srdf", "standing", feet=_FRONT_HIND),
    # On two.
    "bolt": _example("bolt_description/robots/bolt.urdf", "bolt.srdf", "standing", feet=("FL_FOOT", "FR_FOOT")),
    "cassie": replace(
        _example("cassie_description/robots/cassie_v2.sdf", feet=("left-foot", "right-foot")),
        standing="standing",
        completed=load_cassie,
    ),
    "g1": _example(
        "g1_description/urdf/g1_29dof_rev_1_0.urdf",
        base=_high(0.792),
        feet=("left_ankle_roll_link", "right_ankle_roll_link"),
        hands=("left_rubber_hand", "right_rubber_hand"),
    ),
    "human": _example(
        "human_description/robots/human.urdf",
        base=(0.0, 0.0, 1.056, 0.5**0.5, 0.0, 0.0, 0.5**0.5),  # y is up in its file
        feet=("left_foot", "right_foot"),
        hands=("left_hand", "right_hand"),
    ),
    "icub": _ICUB,
    "icub_reduced": replace(_ICUB, file="icub_description/robots/icub_reduced.urdf"),
    "romeo": _example(
        "romeo_description/urdf/romeo.urdf",
        "romeo.srdf",
        "half_sitting",
        base=_high(0.842),
        feet=("l_sole", "r_sole"),
        hands=("l_gripper", "r_gripper"),
    ),
    "simple_humanoid": _SIMPLE_HUMANOID,
    "simple_humanoid_classical": replace(
        _SIMPLE_HUMANOID,
        file="simple_humanoid_description/urdf/simple_humanoid_classical.urdf",
        srdf="simple_humanoid_description/srdf/simple_humanoid_classical.srdf",
    ),
    "talos": _TALOS,
    "talos_arm": replace(
        _TALOS,
        file="talos_data/robots/talos_left_arm.urdf",
        floating_base=False,
        feet=(),
        hands=("gripper_left_base_link",),
    ),
    "talos_box": replace(_TALOS, file="talos_data/robots/talos_reduced_box.urdf"),
    "talos_full": replace(_TALOS, file="talos_data/robots/talos_full_v2.urdf"),
    "talos_full_box": replace(_TALOS, file="talos_data/robots/talos_full_v2_box.urdf"),
    # On wheels, or on a table.
    "allegro_left_hand": _example("allegro_hand_description/urdf/allegro_left_hand.urdf", hands=("palm_link",)),
    "allegro_right_hand": _example("allegro_hand_description/urdf/allegro_right_hand.urdf", hands=("palm_link",)),
    "asr_twodof": _example("asr_twodof_description/urdf/TwoDofs.urdf", hands=("Tip",)),
    "baxter": _example(
        "baxter_description/urdf/baxter.urdf",
        "baxter_manipulation.srdf",
        "neutral",
        hands=("left_gripper", "right_gripper"),
    ),
    "double_pendulum_continuous": _example("double_pendulum_description/urdf/double_pendulum_continuous.urdf"),
    "double_pendulum_simple": _example("double_pendulum_description/urdf/double_pendulum_simple.urdf"),
    "finger_edu": _example(
        "finger_edu_description/robots/finger_edu.urdf", "finger_edu.srdf", "hanging", hands=("finger_tip_link",)
    ),
    "kinova": _example(
        "kinova_description/robots/kinova.urdf", "kinova.srdf", "arm_up", hands=("j2s6s200_end_effector",)
    ),
    "panda": _example("panda_description/urdf/panda.urdf", "panda.srdf", "default", hands=("panda_hand_tcp",)),
    "tiago": _example("tiago_description/robots/tiago.urdf", hands=("hand_grasping_frame",)),
    "tiago_dual": _example(
        "tiago_description/robots/tiago_dual.urdf", hands=("hand_left_grasping_frame", "hand_right_grasping_frame")
    ),
    "tiago_no_hand": _example("tiago_description/robots/tiago_no_hand.urdf", hands=("wrist_ft_tool_link",)),
    "xarm7": _example("xarm_description/urdf/xarm7.urdf", hands=("link_eef",)),
    "z1": _example("z1_description/urdf/z1.urdf", "z1.srdf", "arm_up", hands=("gripperMover",)),
    **{
        f"ur{size}{variant}": _example(f"ur_description/urdf/ur{size}_{file}.urdf", hands=("tool0",))
        for size, variant, file in (
            (3, "", "robot"),
            (3, "_gripper", "gripper"),
            (3, "_limited", "joint_limited_robot"),
            (5, "", "robot"),
            (5, "_gripper", "gripper"),
            (5, "_limited", "joint_limited_robot"),
            (10, "", "robot"),
            (10, "_limited", "joint_limited_robot"),
        )
    },
    # In the air.
    "hector": Robot("hector_description/robots/quadrotor_base.urdf", floating_base=True),
    "iris": Robot("iris_description/robots/iris_simple.urdf", floating_base=True),
}
"""By the names that their own Python package gives them; its `double_pendulum` gives way to the one shipped here."""
