"""Steps of robots on the ground, collisions included, beside MuJoCo's `mj_step`: one call each, and packets on one core.

    python -m benchmarks.contact_steps [--robots quadruped,humanoid] [--quick] [--output FILE]

Both have the shipped robot's file, a plane, the same time step and the torques that hold it standing; both begin each step
from the forces of the last. MuJoCo's contacts are soft, and its solver stops at its default tolerance; ours are rigid,
and end at residuals of 1e-6.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import saltus as sl
import saltus.model.robots as shipped
from benchmarks.measure import Timed, best_times, circumstances, write

STEPS, PACKET_STEPS = 20, 200
GAINS = {"quadruped": (200.0, 5.0), "humanoid": (1000.0, 30.0)}
"""By which robots come to stand."""
TOLERANCE = 1e-6
PACKET = 64


def peer(name: str, friction: float) -> Any:
    """MuJoCo's model of a shipped robot on a plane."""
    spec = mujoco.MjSpec.from_file(str(Path(shipped.__file__).parent / f"{name}.urdf"))
    spec.worldbody.first_body().add_freejoint()
    plane = spec.worldbody.add_geom()
    plane.type, plane.size, plane.friction = mujoco.mjtGeom.mjGEOM_PLANE, [0, 0, 0.01], [friction, 0.005, 0.0001]
    model = spec.compile()
    model.opt.timestep = 1e-3
    return model


def placed(model: Any, robot: sl.Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Any:
    """The state of MuJoCo's model, whose joints come in another order."""
    data = mujoco.MjData(model)
    data.qpos[:3], data.qpos[3:7], data.qvel[:6], data.qfrc_applied[:6] = q[:3], np.roll(q[3:7], 1), v[:6], tau[:6]
    for joint in robot.joints[2:]:
        [place], [dof] = model.joint(joint.name).qposadr, model.joint(joint.name).dofadr
        data.qpos[place], data.qvel[dof], data.qfrc_applied[dof] = q[joint.iq], v[joint.iv], tau[joint.iv]
    return data


def standing(sim: sl.Simulator, gains: tuple[float, float]) -> sl.Motion:
    robot = sim.model
    q = robot.reference_configurations["standing"]
    return sim.rollout(q, np.zeros(robot.nv), sl.PDTargets(q, *gains), duration=1.0)


def compare(name: str, repeats: int, seconds: float) -> dict[str, Any]:
    robot = sl.load_robot(name)
    sims = {
        which: sl.Simulator(model, sl.Ground(friction=0.7), tolerance=TOLERANCE)
        for which, model in (("all", robot), ("own", sl.specialise(robot)))
    }
    motion = standing(sims["all"], GAINS[name])
    q, v, tau = motion.q[-1].copy(), motion.v[-1].copy(), motion.tau[-1].copy()
    model = peer(name, 0.7)
    data = placed(model, robot, q, v, tau)
    for _ in range(STEPS):  # its contacts are soft: it sinks in
        mujoco.mj_step(model, data)
    state = data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy()

    def theirs() -> None:
        data.qpos[:], data.qvel[:], data.qacc_warmstart[:] = state
        for _ in range(STEPS):
            mujoco.mj_step(model, data)

    def ours(sim: sl.Simulator) -> None:
        now = first[sim]
        for _ in range(STEPS):
            now = sim.step(now.q, now.v, tau, start=now)

    def many(sim: sl.Simulator) -> None:
        sim.rollout(
            *together, sl.OverTime(np.tile(tau, (PACKET_STEPS, 1))), duration=PACKET_STEPS * 1e-3, every=PACKET_STEPS
        )

    rng = np.random.default_rng(0)
    together = np.tile(q, (PACKET, 1)), v + 1e-3 * rng.normal(size=(PACKET, robot.nv))
    first = {sim: sim.step(q, v, tau) for sim in sims.values()}
    timed = {"mj_step": Timed(theirs)}
    for which, sim in sims.items():
        timed |= {f"one {which}": Timed(partial(ours, sim)), f"packets {which}": Timed(partial(many, sim))}
    steps = {name: PACKET * PACKET_STEPS if name.startswith("packets") else STEPS for name in timed}
    times = {name: time / steps[name] for name, time in best_times(timed, repeats, seconds).items()}
    mujoco.mj_step(model, data)
    touching = int(first[sims["all"]].touching.sum())
    return {"robot": name, "contacts": touching, "peer contacts": int(data.ncon)} | times


def main() -> None:
    parser = argparse.ArgumentParser(description="Steps of robots on the ground.")
    parser.add_argument("--robots", default="quadruped,humanoid")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    result = circumstances("benchmarks.contact_steps") | {"mujoco": mujoco.__version__, "rows": []}
    sl.set_threads(1)
    for name in options.robots.split(","):
        row = compare(name, *((2, 0.01) if options.quick else (options.repeats, 0.05)))
        result["rows"].append(row)
        print(f"{name}: {row['contacts']} contacts, mj_step {1e6 * row['mj_step']:.2f} us ({row['peer contacts']})")
        for which in ("all", "own"):
            for form in ("one", "packets"):
                time = row[f"{form} {which}"]
                print(f"  {form:8} {which:4} {1e6 * time:7.2f} us  {row['mj_step'] / time:6.2f} x")
    write(result, options.output, f"contact-steps-{result['machine']['name']}.json")


if __name__ == "__main__":
    main()
