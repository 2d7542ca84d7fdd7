"""Robots that hold on to the world or close loops, simulated under task-space inverse dynamics on the centre of mass.

    python examples/constrained.py                   the shipped robots, ten seconds each
    python examples/constrained.py cassie talos      some scenes by name
    python examples/constrained.py --help            what there is

For each scene: how far its constraints have drifted, a replay that opens in any browser, and a picture. Files go to the
folder `demo`. Cassie, Talos and ANYmal are those of example-robot-data, which must be installed for them; beside each is a
shipped robot of its kind.

The scenes are those of J. Carpentier, R. Budhiraja, N. Mansard, Proximal and sparse resolution of constrained dynamic
equations (2021), section V-E. Contacts hold both ways, as there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saltus as sl

Array = NDArray[np.float64]
Function = Callable[[float, Array, Array], Array]

STEP = 1e-3  # s
CONTROL = 2e-3  # s between two ticks of a controller
FRAME = 0.04  # s between the pictures of a replay
PUSH = 10.0, 3.0  # N, on the trunk of a biped, from 1 s to 1.2 s
BAUMGARTE: dict[str, Any] = {"kp": 400.0, "kd": 40.0}  # pulls constraints together again in some 50 ms
FOLLOW = 100.0, 20.0  # gains on the centre of mass [1/s^2, 1/s]
KEEP = 50.0, 15.0  # gains on the posture


@dataclass(frozen=True, eq=False)
class Scene:
    """A robot under constraints, where it starts, and what moves it."""

    dynamics: sl.ConstrainedDynamics
    q: Array
    reference: Callable[[float], Array] | None = None  # displacement of the centre of mass (3,) [m]; None: no motors
    axes: Sequence[int] = (0, 1, 2)  # along which it is followed
    contacts: Sequence[str] = ()  # frames that are shown as contacts
    disturbance: Function | None = None  # torques that the controller knows nothing of
    hold: Function | None = None  # what motors do, where they only hold their joints

    @property
    def robot(self) -> sl.Model:
        return self.dynamics.model


# ------------------------------------------------------------------------------------------------------------- control


def still(t: float) -> Array:
    return np.zeros(3)


def sway(t: float, size: Sequence[float], period: float = 2.5) -> Array:
    """From zero to `size` (3,) [m] and back, each axis at a pace of its own."""
    return np.asarray(size) * (0.5 - 0.5 * np.cos(2 * np.pi * t / period * np.array([1.0, 0.5, 2.0])))


def controller(scene: Scene) -> Function:
    """The centre of mass follows its reference; where that leaves room, the base stays upright and the joints in place."""
    robot, start, reference = scene.robot, scene.q, scene.reference
    assert reference is not None
    home, axes = sl.center_of_mass(robot, start), list(scene.axes)
    (kp, kd), (stiff, damped) = FOLLOW, KEEP
    moved = {k: joint.name for joint in robot.joints for k in range(joint.iv, joint.iv + joint.nv)}
    tasks: list[Any] = [
        sl.CenterOfMassTask(axes="".join("xyz"[k] for k in axes), kp=kp, kd=kd, weight=100),
        sl.PostureTask(joints=[moved[k] for k in sl.motors_of(robot)], kp=stiff, kd=damped, weight=1e-2),
    ]
    if robot.joints[1].kind == sl.JointKind.FREE_FLYER:
        upright = sl.FrameTask(robot.joints[1].name, position="", kp=stiff, kd=damped, weight=1e-2)
        tasks.append(upright)
    control = sl.OperationalSpaceControl(robot, tasks, constraints=scene.dynamics.constraints, limited=())
    places = control.tasks.places["com"]
    given = control.tasks.references(start)

    def torques(t: float, q: Array, v: Array) -> Array:
        h = 1e-3
        before, here, after = (reference(t + shift) for shift in (-h, 0.0, h))
        given[places.value] = home + here
        given[places.rate], given[places.acceleration] = (after - before) / (2 * h), (after - 2 * here + before) / h**2
        return control(q, v, given).tau

    return torques


# -------------------------------------------------------------------------------------------------------------- scenes


def standing(
    robot: sl.Model, q: Array, frames: Sequence[str], dim: int, method: str, reference: Any, locked: Sequence[str] = ()
) -> Scene:
    """On contacts that are anchored where their frames are, with the robot's own loops, and with some joints locked."""
    anchors = [sl.frame_placement(robot, q, frame) for frame in frames]
    contacts = [sl.Contact(robot, f, dim, anchor=X, **BAUMGARTE) for f, X in zip(frames, anchors, strict=True)]
    locks = [sl.JointLock(robot, joint, kd=BAUMGARTE["kd"]) for joint in locked]
    dynamics = sl.ConstrainedDynamics(robot, [*sl.model_loops(robot, **BAUMGARTE), *contacts, *locks], method)
    return Scene(dynamics, q, reference, contacts=frames)


def four_bar(reference: Any = None) -> Scene:
    """The linkage (m = 3): swinging by itself from where it is let go, or moved to and fro by its crank."""
    robot = sl.load_robot("four_bar")
    dynamics = sl.ConstrainedDynamics(robot, sl.model_loops(robot, **BAUMGARTE), method="prox_ltl")
    return Scene(dynamics, robot.reference_configurations["standing"], reference, axes=[0])


def on_four_points(name: str, reference: Any) -> Scene:
    """A quadruped on its feet (m = 12)."""
    robot = sl.load_robot(name)
    feet = sl.robot_frames(name).feet
    return standing(robot, robot.reference_configurations["standing"], feet, 3, "constrained_aba", reference)


def on_four_surfaces(name: str, reference: Any) -> Scene:
    """A humanoid that stands on its soles and holds on with its hands (m = 24)."""
    robot = sl.load_robot(name)
    frames = [*sl.robot_frames(name).feet, *sl.robot_frames(name).hands]
    return standing(robot, robot.reference_configurations["standing"], frames, 6, "constrained_aba", reference)


def on_two_lines(name: str, reference: Any) -> Scene:
    """A biped with loops in its legs (m = 24), two points of each foot on the ground; pushed while it stands still.

    Cassie stands on its springs, and its motors hold their joints. Where it sways, springs are locked (m = 48): what a
    controller wants from one tick to the next, they would pass on much later.
    """
    robot, q = cassie() if name == "cassie" else biped()
    frames = [f"{side}_{end}" for side in ("left", "right") for end in ("heel", "toe")]
    sprung = [joint.name for joint in robot.joints[1:] if robot.stiffness[joint.iv]]
    if reference is not still:
        return standing(robot, q, frames, 3, "prox_ltl", reference, sprung)

    def push(t: float, q: Array, v: Array) -> Array:
        force = np.zeros(robot.nv)
        if 1.0 <= t < 1.2:
            force[:2] = PUSH
        return force

    scene = standing(robot, q, frames, 3, "prox_ltl", reference)
    return replace(scene, disturbance=push, hold=holding(scene) if sprung else None)


def holding(scene: Scene) -> Function:
    """Motors that keep Cassie's joints where they are: what gravity asks for, and springs and dampers of their own."""
    robot, start = scene.robot, scene.q
    kp, kd = np.zeros((2, robot.nv))
    for motor in robot.actuators:
        k = robot.joints[robot.joint_index(motor.joint)].iv
        kp[k], kd[k] = CASSIE_GAINS[motor.joint.split("-", 1)[1]]
    weight = weight_of(scene)
    return lambda t, q, v: weight + kp * sl.difference(robot, q, start) - kd * v


def weight_of(scene: Scene) -> Array:
    """Torques (nv,) of motors that hold the robot still where it starts."""
    robot = scene.robot
    control = sl.OperationalSpaceControl(
        robot, [sl.PostureTask()], constraints=scene.dynamics.constraints, limited=(), torque_weight=1e-9
    )
    return control(scene.q, np.zeros(robot.nv)).tau


def biped() -> tuple[sl.Model, Array]:
    """The shipped biped with the ends of its soles as frames, and its pose."""
    robot = sl.load_robot("biped")
    ends = {"heel": (-0.09, 0.0, 0.0), "toe": (0.09, 0.0, 0.0)}
    robot = with_points(robot, {f"{side}_{end}": (f"{side}_sole", p) for side in SIDES for end, p in ends.items()})
    return robot, robot.reference_configurations["standing"]


SIDES = "left", "right"
CASSIE_GAINS = {  # [N m/rad, N m s/rad]; knees are stiffer than the springs behind them
    "roll-op": (2000.0, 400.0), "yaw-op": (2000.0, 20.0), "pitch-op": (1000.0, 50.0), "knee-op": (10000.0, 100.0),
    "foot-op": (3000.0, 200.0),
}  # fmt: skip
CASSIE_FOOT = {"heel": (0.090, 0.0, 0.0), "toe": (-0.048, 0.115, 0.0)}  # ends of the file's cylinder, its lowest line


def cassie() -> tuple[sl.Model, Array]:
    """Cassie with the ends of its feet as frames, and its pose; its springs act."""
    robot = sl.load_robot("cassie")
    robot = with_points(robot, {f"{s}_{end}": (f"{s}-foot", p) for s in SIDES for end, p in CASSIE_FOOT.items()})
    return robot, robot.reference_configurations["standing"]


def with_points(robot: sl.Model, points: dict[str, tuple[str, tuple[float, ...]]]) -> sl.Model:
    """The robot with further frames: name, and the frame and the point (3,) [m] in it where it is."""
    frames = list(robot.frames)
    for name, (frame, point) in points.items():
        index = robot.frame_index(frame)
        shift = np.eye(4)
        shift[:3, 3] = point
        frames.append(sl.Frame(name, frames[index].joint, frames[index].placement @ shift, sl.FrameKind.OP, index))
    return robot.replace(frames=tuple(frames))


SCENES: dict[str, Callable[[], Scene]] = {
    "four_bar": four_bar,
    "four_bar_driven": partial(four_bar, partial(sway, size=(0.08, 0.0, 0.0))),
    "quadruped": partial(on_four_points, "quadruped", partial(sway, size=(0.06, 0.06, -0.08))),
    "humanoid": partial(on_four_surfaces, "humanoid", partial(sway, size=(0.04, 0.06, -0.04))),
    "biped": partial(on_two_lines, "biped", still),
    "biped_sway": partial(on_two_lines, "biped", partial(sway, size=(0.03, 0.06, -0.06))),
    "anymal": partial(on_four_points, "anymal", partial(sway, size=(0.06, 0.06, -0.08))),
    "talos": partial(on_four_surfaces, "talos", partial(sway, size=(0.04, 0.06, -0.04))),
    "cassie": partial(on_two_lines, "cassie", still),
    "cassie_sway": partial(on_two_lines, "cassie", partial(sway, size=(0.03, 0.06, -0.06))),
}
NEEDED = {"anymal": "anymal", "talos": "talos", "cassie": "cassie", "cassie_sway": "cassie"}


# ------------------------------------------------------------------------------------------------------------- results


def simulate(scene: Scene, seconds: float) -> sl.Trajectory:
    torques = scene.hold or (None if scene.reference is None else controller(scene))
    return sl.rollout(
        scene.dynamics, scene.q, np.zeros(scene.robot.nv), torques, duration=seconds, dt=STEP, method="rk4",
        control_period=None if torques is None or scene.hold else CONTROL, disturbance=scene.disturbance,
        damping=torques is not None,
    )  # fmt: skip


def largest_drift(drifts: list[sl.Drift], unit: str) -> float:
    return max((float(drift.absolute.max()) for drift in drifts if drift.unit == unit), default=0.0)


def tracking(scene: Scene, motion: sl.Trajectory) -> tuple[Array, Array]:
    """Displacement of the centre of mass (T, 3) [m], and what it should be."""
    com = sl.center_of_mass(scene.robot, motion.q)
    wanted = scene.reference if scene.reference is not None else still
    return com - com[0], np.array([wanted(t) for t in motion.t])


def contact_forces(scene: Scene, motion: sl.Trajectory) -> Array:
    """(T, K, 3) in the world [N]."""
    rows, start = {}, 0
    for constraint in scene.dynamics.constraints:
        rows[constraint.name], start = slice(start, start + 3), start + constraint.dim
    turns = [sl.frame_placement(scene.robot, motion.q, frame)[:, :3, :3] for frame in scene.contacts]
    local = [motion.forces[:, rows[frame], None] for frame in scene.contacts]
    return np.stack([(R @ f)[..., 0] for R, f in zip(turns, local, strict=True)], axis=1)


def draw(scene: Scene, motion: sl.Trajectory, drifts: list[sl.Drift], title: str, file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for drift in drifts:
        left.semilogy(
            motion.t[1:], np.maximum(drift.absolute[1:], 1e-17), linewidth=0.8, label=f"{drift.name} [{drift.unit}]"
        )
    left.axhline(1e-4, color="0.5", linestyle="--")
    left.set(xlabel="time [s]", ylabel="drift", title=f"{title}: constraints")
    left.legend(fontsize="xx-small", ncols=2)
    if scene.reference is None:
        energy = sl.conservation_drift(scene.robot, motion)[0]
        right.semilogy(motion.t[1:], np.maximum(energy.relative[1:], 1e-17), linewidth=0.8)
        right.set(xlabel="time [s]", ylabel="relative drift", title="energy")
    else:
        moved, wanted = tracking(scene, motion)
        for axis, colour in zip(scene.axes, ("tab:red", "tab:green", "tab:blue"), strict=False):
            right.plot(motion.t, 1e3 * wanted[:, axis], color=colour, linestyle="--", linewidth=0.8)
            right.plot(motion.t, 1e3 * moved[:, axis], color=colour, linewidth=1.0, label="xyz"[axis])
        right.set(xlabel="time [s]", ylabel="displacement [mm]", title="centre of mass, and its reference (dashed)")
        right.legend()
    for axis in (left, right):
        axis.grid(alpha=0.3)
    figure.savefig(file, dpi=130)
    plt.close(figure)


def report(name: str, scene: Scene, motion: sl.Trajectory, drifts: list[sl.Drift], spent: float) -> str:
    rows = motion.forces.shape[-1]
    text = f"{name:<16}{rows:>4}{motion.t[-1]:>9.1f} s{spent:>8.1f} s{largest_drift(drifts, 'm'):>11.1e} m"
    angle = largest_drift(drifts, "rad")
    text += f"{angle:>11.1e} rad" if angle else " " * 15
    if scene.reference is None:
        energy = sl.conservation_drift(scene.robot, motion)[0]
        return f"{text}  energy drifts by {energy.relative.max():.1e} of itself"
    moved, wanted = tracking(scene, motion)
    axes = list(scene.axes)
    error = np.abs(moved - wanted)[:, axes].max()
    return f"{text}  moves by {1e3 * np.ptp(moved[:, axes], axis=0).max():.1f} mm, {1e3 * error:.2f} mm off at most"


def main(names: Sequence[str], seconds: float, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    print(f"{'scene':<16}{'m':>4}{'simulated':>11}{'took':>10}{'drift':>13}{'':>15}  centre of mass")
    for name in names:
        scene = SCENES[name]()
        simulate(scene, CONTROL)  # compiles what is not in the cache
        start = time.perf_counter()
        motion = simulate(scene, seconds)
        spent = time.perf_counter() - start
        drifts = sl.constraint_drift(scene.dynamics, motion)
        print(report(name, scene, motion, drifts, spent), flush=True)
        every = slice(None, None, round(FRAME / STEP))
        shown: dict[str, Any] = {}
        if scene.contacts:
            shown = {"contacts": scene.contacts, "forces": contact_forces(scene, motion)[every]}
        sl.view.save_replay(folder / f"{name}.html", scene.robot, motion.q[every], FRAME, title=name, **shown)
        draw(scene, motion, drifts, name, folder / f"{name}.png")
    print(f"\nin {folder}: a replay (html) and a picture (png) of each")


if __name__ == "__main__":
    available = [name for name in SCENES if name not in NEEDED or NEEDED[name] in sl.robot_names()]
    shipped = [name for name in SCENES if name not in NEEDED]
    parser = argparse.ArgumentParser(description="Constrained robots, simulated.")
    parser.add_argument(
        "scenes", nargs="*", metavar="SCENE", help=f"of {', '.join(available)}; by default {', '.join(shipped)}"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="how long")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where files go")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.scenes if name not in available]:
        parser.error(f"there is no scene {unknown[0]!r} here, expected some of {', '.join(available)}")
    main(arguments.scenes or shipped, arguments.seconds, arguments.folder)
