"""Which robots there are: those that come with saltus, and those of the package example-robot-data."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Robot:
    """A robot's files, below the folder that it comes in, and its frames."""

    file: str  # URDF, SDF or MJCF (.xml)
    floating_base: bool = False
    feet: tuple[str, ...] = ()
    hands: tuple[str, ...] = ()
    srdf: str = ""  # has its poses, where the file itself has none
    standing: str = "standing"  # which of its poses that is; empty: none is known, neutral must do


_LEGS = ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")
_SOLES, _HANDS = ("left_sole", "right_sole"), ("left_hand", "right_hand")

SHIPPED = {
    "quadruped": Robot("quadruped.urdf", True, _LEGS, srdf="quadruped.srdf"),
    "humanoid": Robot("humanoid.urdf", True, _SOLES, _HANDS, "humanoid.srdf"),
    "humanoid_hands": Robot("humanoid_hands.urdf", True, _SOLES, _HANDS, "humanoid_hands.srdf"),
    "biped": Robot("biped.xml", True, _SOLES),
    "arm": Robot("arm.urdf", hands=("tool",), srdf="arm.srdf"),
    "double_pendulum": Robot("double_pendulum.urdf", srdf="double_pendulum.srdf"),
    "cartpole": Robot("cartpole.urdf", srdf="cartpole.srdf"),
    "planar_human": Robot("planar_human.urdf", feet=("heel", "toe"), hands=("hand",), srdf="planar_human.srdf"),
    "four_bar": Robot("four_bar.xml"),
}
"""Made by `tools/make_robots`; all floating bases but the planar human's, which has three joints, are free flyers."""

_FRONT_REAR = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
_FRONT_HIND = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
_TALOS = Robot(
    "talos_data/robots/talos_reduced.urdf",
    True,
    ("left_sole_link", "right_sole_link"),
    ("gripper_left_base_link", "gripper_right_base_link"),
    "talos_data/srdf/talos.srdf",
    "half_sitting",
)
_ICUB = Robot(
    "icub_description/robots/icub.urdf",
    True,
    ("l_sole", "r_sole"),
    ("l_gripper", "r_gripper"),
    "icub_description/srdf/icub.srdf",
    "half_sitting",
)
_SIMPLE_HUMANOID = Robot(
    "simple_humanoid_description/urdf/simple_humanoid.urdf",
    True,
    ("l_ankle", "r_ankle"),
    ("l_wrist", "r_wrist"),
    "simple_humanoid_description/srdf/simple_humanoid.srdf",
    "half_sitting",
)


def _with_poses(folder: str, file: str, poses: str, standing: str = "standing", **frames: tuple[str, ...]) -> Robot:
    """One on a fixed base or, if it has feet, on a floating one."""
    return Robot(f"{folder}/{file}", "feet" in frames, srdf=f"{folder}/srdf/{poses}", standing=standing, **frames)


def _without_poses(file: str, floating_base: bool = False, **frames: tuple[str, ...]) -> Robot:
    return Robot(file, floating_base, standing="", **frames)


EXAMPLES = {
    # On four legs.
    "a1": _with_poses("a1_description", "urdf/a1.urdf", "a1.srdf", feet=_FRONT_REAR),
    "anymal": _with_poses("anymal_b_simple_description", "robots/anymal.urdf", "anymal.srdf", feet=_LEGS),
    "anymal_c": _with_poses("anymal_c_simple_description", "urdf/anymal.urdf", "anymal.srdf", feet=_LEGS),
    "anymal_kinova": _with_poses(
        "anymal_b_simple_description",
        "robots/anymal-kinova.urdf",
        "anymal-kinova.srdf",
        "standing_with_arm_up",
        feet=_LEGS,
        hands=("j2s6s200_end_effector",),
    ),
    "b1": _with_poses("b1_description", "urdf/b1.urdf", "b1.srdf", feet=_FRONT_REAR),
    "b1_z1": _with_poses(
        "b1_description",
        "urdf/b1-z1.urdf",
        "b1-z1.srdf",
        "standing_with_arm_home",
        feet=_FRONT_REAR,
        hands=("gripperMover",),
    ),
    "go1": _with_poses("go1_description", "urdf/go1.urdf", "go1.srdf", feet=_FRONT_REAR),
    "go2": _with_poses("go2_description", "urdf/go2.urdf", "go2.srdf", feet=_FRONT_REAR),
    "hyq": _with_poses(
        "hyq_description", "robots/hyq_no_sensors.urdf", "hyq.srdf", feet=("lf_foot", "rf_foot", "lh_foot", "rh_foot")
    ),
    "laikago": _without_poses("laikago_description/urdf/laikago.urdf", True, feet=_FRONT_REAR),
    "solo8": _with_poses("solo_description", "robots/solo.urdf", "solo.srdf", feet=_FRONT_HIND),
    "solo12": _with_poses("solo_description", "robots/solo12.urdf", "solo.srdf", feet=_FRONT_HIND),
    # On two.
    "bolt": _with_poses("bolt_description", "robots/bolt.urdf", "bolt.srdf", feet=("FL_FOOT", "FR_FOOT")),
    "cassie": _with_poses(
        "cassie_description", "robots/cassie_v2.sdf", "cassie_v2.srdf", feet=("left-foot", "right-foot")
    ),
    "g1": _without_poses(
        "g1_description/urdf/g1_29dof_rev_1_0.urdf",
        True,
        feet=("left_ankle_roll_link", "right_ankle_roll_link"),
        hands=("left_rubber_hand", "right_rubber_hand"),
    ),
    "human": _without_poses(
        "human_description/robots/human.urdf",
        True,
        feet=("left_foot", "right_foot"),
        hands=("left_hand", "right_hand"),
    ),
    "icub": _ICUB,
    "icub_reduced": replace(_ICUB, file="icub_description/robots/icub_reduced.urdf"),
    "romeo": _with_poses(
        "romeo_description",
        "urdf/romeo.urdf",
        "romeo.srdf",
        "half_sitting",
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
    "allegro_left_hand": _without_poses("allegro_hand_description/urdf/allegro_left_hand.urdf", hands=("palm_link",)),
    "allegro_right_hand": _without_poses("allegro_hand_description/urdf/allegro_right_hand.urdf", hands=("palm_link",)),
    "asr_twodof": _without_poses("asr_twodof_description/urdf/TwoDofs.urdf", hands=("Tip",)),
    "baxter": _with_poses(
        "baxter_description",
        "urdf/baxter.urdf",
        "baxter_manipulation.srdf",
        "neutral",
        hands=("left_gripper", "right_gripper"),
    ),
    "double_pendulum_continuous": _without_poses("double_pendulum_description/urdf/double_pendulum_continuous.urdf"),
    "double_pendulum_simple": _without_poses("double_pendulum_description/urdf/double_pendulum_simple.urdf"),
    "finger_edu": _with_poses(
        "finger_edu_description", "robots/finger_edu.urdf", "finger_edu.srdf", "hanging", hands=("finger_tip_link",)
    ),
    "kinova": _with_poses(
        "kinova_description", "robots/kinova.urdf", "kinova.srdf", "arm_up", hands=("j2s6s200_end_effector",)
    ),
    "panda": _with_poses("panda_description", "urdf/panda.urdf", "panda.srdf", "default", hands=("panda_hand_tcp",)),
    "tiago": _without_poses("tiago_description/robots/tiago.urdf", hands=("hand_grasping_frame",)),
    "tiago_dual": _without_poses(
        "tiago_description/robots/tiago_dual.urdf", hands=("hand_left_grasping_frame", "hand_right_grasping_frame")
    ),
    "tiago_no_hand": _without_poses("tiago_description/robots/tiago_no_hand.urdf", hands=("wrist_ft_tool_link",)),
    "xarm7": _without_poses("xarm_description/urdf/xarm7.urdf", hands=("link_eef",)),
    "z1": _with_poses("z1_description", "urdf/z1.urdf", "z1.srdf", "arm_up", hands=("gripperMover",)),
    **{
        f"ur{size}{variant}": _without_poses(f"ur_description/urdf/ur{size}_{file}.urdf", hands=("tool0",))
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
    "hector": _without_poses("hector_description/robots/quadrotor_base.urdf", True),
    "iris": _without_poses("iris_description/robots/iris_simple.urdf", True),
}
"""By the names that their own Python package gives them; its `double_pendulum` gives way to the one shipped here."""
