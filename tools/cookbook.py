"""Makes the pictures of the cookbook: `python -m tools.cookbook` runs the pages' scripts and draws to docs/figures what they
have computed; `python -m tools.cookbook loops` those that are named. That of PyTorch needs PyTorch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

import saltus as sl
from tests.test_docs import DOCS, code_of

STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1.6}
SIZE = 7.0, 3.0  # inches


def inverse_kinematics(page: dict[str, Any], left: Axes, right: Axes) -> None:
    shown = np.where(page["reached"], page["ease"], np.nan)
    drawn = left.pcolormesh(page["x"], page["y"], shown, cmap="viridis", vmin=0.0)
    left.figure.colorbar(drawn, ax=left, label="worst direction [m/s per rad/s]")
    left.plot(0, 0, "k^", label="the arm's base")
    left.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="places that it reaches")
    left.legend(loc="upper right", fontsize=7)
    distance, ease = np.hypot(page["x"], page["y"])[page["reached"]], page["ease"][page["reached"]]
    right.plot(distance, ease, ".", markersize=3)
    right.set(xlabel="distance from the base [m]", ylabel="worst direction [m/s per rad/s]", ylim=(0, None))


def impedance_control(page: dict[str, Any], left: Axes, right: Axes) -> None:
    motion, moved = page["motion"], 1e3 * page["moved"]
    for k, name in enumerate("xyz"):
        left.plot(motion.t, moved[:, k], label=name)
        left.axhline(1e3 * page["force"][k] / page["stiffness"][k], color=f"C{k}", linestyle=":", linewidth=0.8)
    left.axvspan(0.2, 2.0, color="0.93", zorder=-1)
    left.set(
        xlabel="t [s]", ylabel="tool, from its place [mm]", title="pushed while it is grey; dotted: force / stiffness"
    )
    left.legend()
    right.plot(moved[:, 0], moved[:, 1])
    right.plot(0, 0, "k+")
    right.set(xlabel="x [mm]", ylabel="y [mm]", aspect="equal", title="seen from above")


def gravity_compensation(page: dict[str, Any], left: Axes, right: Axes) -> None:
    for name, height in page["heights"].items():
        left.plot(page["motions"][name].t, height, label=f"knows {name}")
    left.set(xlabel="t [s]", ylabel="height of the tool [m]")
    left.legend()
    joints = np.arange(1, page["arm"].nv + 1)
    bare, loaded = (np.abs(sl.gravity(robot, page["start"])) for robot in (page["arm"], page["loaded"]))
    right.bar(joints, loaded, color="C2", label="with the weight")
    right.bar(joints, bare, color="C1", label="the arm alone")
    right.set(xlabel="joint", ylabel="torque of gravity [N m]")
    right.legend(loc="upper left")


def identification(page: dict[str, Any], left: Axes, right: Axes) -> None:
    part, joint = slice(0, 400), 1
    t = 0.01 * np.arange(len(page["tau"]))[part]
    left.plot(t, (page["tau"] - page["by_drawing"])[part, joint], color="C1", label="by the drawing")
    left.plot(t, (page["tau"] - page["identified"])[part, joint], color="C0", label="identified")
    left.set(xlabel="t [s]", ylabel="torque that is missed [N m]", title=f"joint {joint + 1}, another motion")
    left.legend()
    joints = np.arange(1, page["arm"].nv + 1)
    right.bar(joints - 0.2, page["miss_before"], 0.4, color="C1", label="by the drawing")
    right.bar(joints + 0.2, page["miss_after"], 0.4, color="C0", label="identified")
    right.axhline(0.05, color="k", linestyle=":", linewidth=0.8, label="noise")
    right.set(xlabel="joint", ylabel="standard deviation [N m]")
    right.legend()


def torch_training(page: dict[str, Any], left: Axes, right: Axes) -> None:
    torch, arm = page["torch"], page["arm"]
    speed = np.linspace(-2, 2, 101)
    for axes, joint in ((left, 1), (right, 6)):
        v = np.zeros((len(speed), arm.nv))
        v[:, joint] = speed
        with torch.no_grad():
            learnt = page["network"](torch.tensor(v)).numpy()
        axes.plot(speed, page["friction"](v)[:, joint], "k:", label="the truth")
        axes.plot(speed, learnt[:, joint], label="the network")
        axes.set(xlabel="velocity [rad/s]", ylabel="torque [N m]", title=f"joint {joint + 1}")
    left.legend()


def loops(page: dict[str, Any], left: Axes, right: Axes) -> None:
    linkage, turn = page["linkage"], page["turn"]
    middle = [0.5 * (sl.frame_placement(linkage, turn.q, each)[:, :3, 3]) for each in ("coupler_hinge", "closure_b")]
    path = sum(middle)
    chain = ["crank_hinge", "coupler_hinge", "closure_b", "rocker_hinge"]
    for k, shade in zip((0, 250, 500, 750), ("0.0", "0.45", "0.65", "0.8"), strict=True):
        places = np.array([sl.frame_placement(linkage, turn.q[k], frame)[:3, 3] for frame in chain])
        left.plot(places[:, 0], places[:, 2], "o-", color=shade, markersize=3)
    left.plot(path[:, 0], path[:, 2], "C1", label="middle of the coupler")
    left.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
    left.legend(fontsize=7)
    right.plot(np.degrees(turn.q[: len(page["torque"]), 0] - turn.q[0, 0]), page["torque"])
    right.set(xlabel="angle of the crank [degrees]", ylabel="torque of the motor [N m]")


def walking_controller(page: dict[str, Any], left: Axes, right: Axes) -> None:
    robot, motion = page["robot"], page["motion"]
    left.plot(motion.t, motion.q[:, 0], label="x")
    left.plot(motion.t, motion.q[:, 2], label="z")
    left.plot(motion.t, 0.3 * motion.t, "k:", label="0.3 m/s")
    left.set(xlabel="t [s]", ylabel="trunk [m]")
    left.legend()
    late = motion.t >= 1.0
    for k, foot in enumerate(page["feet"]):
        height = sl.frame_placement(robot, motion.q[late], foot)[:, 2, 3] - page["stand"][k][2]
        right.plot(motion.t[late], 1e3 * height + 80 * k, label=foot[:2])
    right.set(
        xlabel="t [s]", ylabel="heights of feet [mm], one above the other", title="diagonals in turn", ylim=(-10, 370)
    )
    right.legend(ncol=4, fontsize=7, loc="upper center")


def optimal_jump(page: dict[str, Any], left: Axes, right: Axes) -> None:
    times, center, feet, air = page["times"], page["center"], page["feet"], page["air"]
    left.plot(center[:, 0], center[:, 2], color="k", label="centre of mass")
    spent = np.diff(times) > 0  # impacts take no time
    for k, color in ((0, "C0"), (2, "C1")):  # on the left; those on the right do the same
        name = page["gait"].feet[k].frame[:2]
        left.plot(feet[k, :, 0], feet[k, :, 2], color=color, label=name)
        right.plot(times[:-1][spent], page["forces"][spent, k, 2], color=color, label=name)
    left.set(xlabel="x [m]", ylabel="z [m]", aspect="equal", ylim=(-0.05, 0.85))
    left.legend(fontsize=7, loc="upper right", ncol=3)
    right.axvspan(times[air[0]], times[air[-1] + 1], color="0.93", zorder=-1)
    right.set(xlabel="t [s]", ylabel="normal force of a foot [N]", title="grey: in the air")
    right.legend(fontsize=7)


def gpu_batches(page: dict[str, Any], left: Axes, right: Axes) -> None:
    cost, miss = (np.asarray(getattr(x, "get", lambda x=x: x)()) for x in (page["cost"], page["miss"]))
    drawn = left.pcolormesh(page["stiffness"], page["ratio"], cost, cmap="viridis_r")
    left.figure.colorbar(drawn, ax=left, label="mean error [rad]")
    best = page["best"]
    left.plot(page["stiffness"][best], page["ratio"][best], "r*")
    left.set(
        xscale="log",
        yscale="log",
        xlabel="stiffness [1/s²]",
        ylabel="damping, critical is 1",
        title="white: too much for the motors",
    )
    t, robot = page["dt"] * np.arange(page["steps"] + 1), np.ravel_multi_index(best, cost.shape)
    right.plot(t, miss[:: max(1, len(miss) // 40)].T, color="0.85", linewidth=0.6)
    right.plot(t, miss[robot], "r", label="the best")
    right.set(xlabel="t [s]", ylabel="error [rad]", ylim=(0, 2))
    right.legend()


PAGES: dict[str, Callable[[dict[str, Any], Axes, Axes], None]] = {
    draw.__name__.replace("_", "-"): draw
    for draw in (
        inverse_kinematics, impedance_control, gravity_compensation, identification, torch_training, loops,
        walking_controller, optimal_jump, gpu_batches,
    )
}  # fmt: skip


def main(names: Sequence[str]) -> None:
    mpl.use("Agg")
    mpl.rcParams.update(STYLE)
    from matplotlib import pyplot

    for name in names or PAGES:
        source = DOCS / "cookbook" / f"{name}.md"
        page: dict[str, Any] = {"__name__": name}
        exec(compile(code_of(source), str(source), "exec"), page)
        figure, (left, right) = pyplot.subplots(1, 2, figsize=SIZE, layout="constrained")
        PAGES[name](page, left, right)
        file = DOCS / "figures" / f"cookbook-{name}.png"
        figure.savefig(file, dpi=130)
        pyplot.close(figure)
        print(f"wrote {file}: {file.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
