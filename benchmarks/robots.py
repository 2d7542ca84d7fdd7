"""The robots of the benchmarks, for saltus and for Pinocchio.

URDF files are those of the package example-robot-data; other names are robots that saltus ships. On a machine where the
package cannot be installed, two variables of the environment stand in:

| variable | names a folder with |
|---|---|
| `SALTUS_BENCH_PEER` | `lib/python3.*/site-packages` (Pinocchio, unpacked by hand) and `urdf/*.urdf` |
| `SALTUS_BENCH_MODELS` | pickled models, written elsewhere by `python -m benchmarks.robots --pickle FOLDER` |
"""

from __future__ import annotations

import argparse
import logging
import os
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl

PEER = os.environ.get("SALTUS_BENCH_PEER")
MODELS = os.environ.get("SALTUS_BENCH_MODELS")
SHARE = "cmeel.prefix/share/example-robot-data/robots"


@dataclass(frozen=True)
class Robot:
    """A row of the table of robots."""

    title: str
    file: str
    """URDF file, from the folder `robots` of example-robot-data."""
    floating_base: bool = True

    @property
    def stem(self) -> str:
        return Path(self.file).stem


ROBOTS = {
    "ur5": Robot("UR5", "ur_description/urdf/ur5_robot.urdf", floating_base=False),
    "panda": Robot("Panda", "panda_description/urdf/panda.urdf", floating_base=False),
    "solo12": Robot("Solo12", "solo_description/robots/solo12.urdf"),
    "anymal": Robot("ANYmal", "anymal_b_simple_description/robots/anymal.urdf"),
    "go1": Robot("Go1", "go1_description/urdf/go1.urdf"),
    "icub": Robot("iCub", "icub_description/robots/icub.urdf"),
    "g1": Robot("G1", "g1_description/urdf/g1_29dof_rev_1_0.urdf"),
    "talos38": Robot("Talos (38)", "talos_data/robots/talos_reduced.urdf"),
    "talos50": Robot("Talos (50)", "talos_data/robots/talos_full_v2.urdf"),
}

SHIPPED = {"arm": "arm", "humanoid_hands": "hands", "biped": "biped", "four_bar": "four-bar"}
"""Robots of saltus that stand in where example-robot-data has none, with their titles."""


OWN = (
    "quadruped",
    "humanoid",
    "humanoid_hands",
    "biped",
    "arm",
    "double_pendulum",
    "cartpole",
    "planar_human",
    "four_bar",
)
"""All that saltus ships."""


def title(name: str) -> str:
    return ROBOTS[name].title if name in ROBOTS else SHIPPED.get(name, name)


def urdf(robot: Robot) -> Path:
    """Where the robot's file is on this machine."""
    if PEER:
        return Path(PEER) / "urdf" / f"{robot.stem}.urdf"
    for folder in map(Path, sys.path):
        if (folder / SHARE).is_dir():
            return folder / SHARE / robot.file
    raise FileNotFoundError("example-robot-data is not installed, and SALTUS_BENCH_PEER is not set")


def saltus_model(name: str) -> sl.Model:
    """The robot as saltus loads it."""
    if MODELS:
        stem = ROBOTS[name].stem if name in ROBOTS else name
        model: sl.Model = pickle.loads((Path(MODELS) / f"{stem}.pkl").read_bytes())
        return model
    if name not in ROBOTS:
        return sl.load_robot(name)
    robot = ROBOTS[name]
    logging.getLogger("saltus.model.urdf").setLevel(logging.ERROR)  # some links have inertias that no body can have
    return sl.load_urdf(urdf(robot), floating_base=robot.floating_base)


def import_pinocchio() -> Any:
    """The module `pinocchio`, installed or unpacked by hand."""
    if PEER:
        sys.path += [str(folder) for folder in Path(PEER).glob("lib/python3.*/site-packages")]
    import pinocchio

    return pinocchio


def pinocchio_model(name: str) -> Any:
    """The robot as Pinocchio loads it; one that is not of example-robot-data as saltus has it."""
    if name not in ROBOTS:
        return as_pinocchio(saltus_model(name))
    pin, robot = import_pinocchio(), ROBOTS[name]
    root = (pin.JointModelFreeFlyer(),) if robot.floating_base else ()
    return pin.buildModelFromUrdf(str(urdf(robot)), *root)


def as_pinocchio(model: sl.Model) -> Any:
    """A model of revolute joints, with or without a free flyer, joint by joint in Pinocchio."""
    pin, result = import_pinocchio(), import_pinocchio().Model()
    aligned = {(1, 0, 0): pin.JointModelRX, (0, 1, 0): pin.JointModelRY, (0, 0, 1): pin.JointModelRZ}
    for joint in model.joints[1:]:
        if joint.kind == sl.JointKind.FREE_FLYER:
            kind = pin.JointModelFreeFlyer()
        elif joint.kind == sl.JointKind.REVOLUTE:
            plain = aligned.get(tuple(joint.axis))
            kind = plain() if plain else pin.JointModelRevoluteUnaligned(np.array(joint.axis))
        else:
            raise ValueError(f"joint {joint.name!r} is {joint.kind.name}, expected a free flyer or a revolute joint")
        index = result.addJoint(joint.parent, kind, pin.SE3(np.array(joint.placement)), joint.name)
        body = pin.Inertia(joint.mass, np.array(joint.com), np.array(joint.inertia))
        result.appendBodyToJoint(index, body, pin.SE3.Identity())
    result.armature, result.gravity.linear = np.array(model.armature), np.array(model.gravity)
    return result


def chosen(names: str, known: Any) -> list[str]:
    """The entries of a table that a comma-separated list names; all of them if it is empty."""
    listed = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in listed if name not in known]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return listed or list(known)


def main() -> None:
    parser = argparse.ArgumentParser(description="Pickle the models, for a machine that cannot read URDF.")
    parser.add_argument("--pickle", type=Path, required=True, metavar="FOLDER")
    folder = parser.parse_args().pickle
    folder.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys((*ROBOTS, *SHIPPED, *OWN)):
        model = saltus_model(name)
        stem = ROBOTS[name].stem if name in ROBOTS else name
        (folder / f"{stem}.pkl").write_bytes(pickle.dumps(model))
        print(f"{title(name):12} {model!r}")


if __name__ == "__main__":
    main()
