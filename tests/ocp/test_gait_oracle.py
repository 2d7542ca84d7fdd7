"""Crocoddyl's gaits, evaluated from their numbers, are what Crocoddyl has: dynamics, forces, terms and derivatives.

The values are in the files of this folder; with an environment that has Crocoddyl (`SALTUS_OCP_PEER`, a folder made by
`python -m benchmarks.ocp_peer --make FOLDER`) every residual of every node is compared, and the whole solution.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
import pytest

import saltus as sl
from benchmarks import ocp_peer
from benchmarks.ocp_problems import FOLDER, NAMES, GaitProblem, load_problem, robot_model
from saltus.arrays import Array
from tests.closeness import assert_close, error
from tests.model.robots import ROBOTS
from tests.ocp.gait_oracle import Motion, costs, moved, residual, term_costs

PEER = os.environ.get("SALTUS_OCP_PEER")
ALIKE, DYNAMICS = 1e-10, 1e-9
IMPACTS = 1e-9
"""Crocoddyl adds 1e-12 to the Delassus matrix of an impact."""


class Sampled(NamedTuple):
    """Nodes of a problem with states and controls, and what Crocoddyl says of them."""

    problem: GaitProblem
    nodes: Array
    xs: Array
    us: Array
    said: list[dict[str, Any]]


def sampled(name: str, folder: Path) -> Sampled:
    problem = load_problem(name, folder)
    said = json.loads((folder / f"crocoddyl_{name}_values.json").read_text())["nodes"]
    steps = np.array([row["step"] for row in said])
    us = np.array([row["u"] or np.zeros(problem.nu) for row in said], float)
    return Sampled(problem, np.array([row["node"] for row in said]), stepped(problem, steps), us, said)


def stepped(problem: GaitProblem, steps: Array) -> Array:
    """x0 (+) steps."""
    model = problem.model
    q = sl.integrate(model, problem.x0[: model.nq], steps[:, : model.nv])
    return np.concatenate([q, problem.x0[model.nq :] + steps[:, model.nv :]], axis=1)


@pytest.fixture(scope="module")
def peer_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Values of all nodes, and solutions, just computed by Crocoddyl."""
    if not PEER:
        pytest.skip("SALTUS_OCP_PEER is not set: no environment that has Crocoddyl")
    folder = tmp_path_factory.mktemp("crocoddyl")
    python = ocp_peer.environment(Path(PEER))
    ocp_peer.command(python, "ocp_peer_numbers", folder, "--everywhere")
    ocp_peer.command(python, "ocp_peer", "--output", folder / "solved.json", "--repeats", 1)
    return folder


def compare(given: Sampled) -> None:
    problem, nodes, xs, us, said = given
    motion = moved(problem, nodes, xs, us)
    found, values = costs(problem, nodes, xs, us, motion.forces), term_costs(problem, nodes, xs, us, motion.forces)
    for k, row in enumerate(said):
        t, where = nodes[k], f"{problem.name}, node {nodes[k]}"
        if t < problem.T:
            assert_close(motion.next[k], np.array(row["next"]), DYNAMICS, what=f"{where}: next state")
            assert set(row["forces"]) == {f for f, on in zip(problem.feet, problem.active[t], strict=True) if on}
            for foot, force in row["forces"].items():
                ours = motion.forces[k, problem.feet.index(foot)]
                assert_close(ours, np.array(force), IMPACTS if problem.impact[t] else ALIKE, what=f"{where}: {foot}")
        assert_close(found[k], row["cost"], ALIKE, what=f"{where}: cost")
        here = {term.name: (i, term) for i, term in enumerate(problem.terms) if term.weight[t] > 0}
        assert set(here) == set(row["terms"])
        for name, (i, term) in here.items():
            right = row["terms"][name]
            if isinstance(right, dict):
                one = (nodes[k : k + 1], xs[k : k + 1], us[k : k + 1], motion.forces[k : k + 1])
                ours, theirs = residual(problem, term, *one)[0], np.array(right["residual"])
                assert error(ours, theirs, max(1.0, float(np.abs(theirs).max()))) < ALIKE, f"{where}: {name}"
                right = right["cost"]
            assert abs(values[k, i] - right) <= ALIKE * max(1.0, right), f"{where}: {name}"


@pytest.mark.parametrize("name", NAMES)
def test_nodes_are_crocoddyl_s(name: str) -> None:
    given = sampled(name, FOLDER)
    compare(given)
    sorts = {(bool(given.problem.impact[t]), given.problem.active[t].sum()) for t in given.nodes}
    assert len(sorts) > 1  # other contacts, and impacts unless the last node alone is one


@pytest.mark.parametrize("name", NAMES)
def test_all_nodes_are_crocoddyl_s(name: str, peer_files: Path) -> None:
    given = sampled(name, peer_files)
    assert len(given.nodes) == given.problem.T + 1
    compare(given)


@pytest.mark.parametrize("name", NAMES)
def test_solution_has_no_gaps_and_its_cost(name: str, peer_files: Path) -> None:
    problem = load_problem(name, peer_files)
    solved = json.loads((peer_files / "solved.json").read_text())[name]
    xs, nodes = np.array(solved["xs"]), np.arange(problem.T + 1)
    us = np.array([u or np.zeros(problem.nu) for u in [*solved["us"], []]], float)
    motion, nq = moved(problem, nodes, xs, us), problem.model.nq
    gaps = sl.difference(problem.model, xs[1:, :nq], motion.next[:-1, :nq]), motion.next[:-1, nq:] - xs[1:, nq:]
    assert max(np.abs(gap).max() for gap in gaps) < 1e-8
    assert_close(costs(problem, nodes, xs, us, motion.forces).sum(), solved["cost"], 1e-9)
    assert_close(load_problem(name).found["cost"], solved["cost"], 1e-9, what="the stored optimum")


# --- derivatives ---
def along(size: int) -> Array:
    return np.linspace(-1.0, 1.0, size)


def shifted(given: Sampled, dx: Array, du: Array) -> tuple[Array, Array, Motion]:
    """All nodes from x (+) dx and u + du."""
    problem, nodes, xs, us, _ = given
    model = problem.model
    q = sl.integrate(model, xs[:, : model.nq], dx[: model.nv])
    moved_xs, moved_us = np.concatenate([q, xs[:, model.nq :] + dx[model.nv :]], axis=1), us + du
    return moved_xs, moved_us, moved(problem, nodes, moved_xs, moved_us)


def difference(model: sl.Model, a: Array, b: Array) -> Array:
    return np.concatenate([sl.difference(model, a[:, : model.nq], b[:, : model.nq]), (b - a)[:, model.nq :]], axis=1)


@pytest.mark.parametrize("name", ["trot", "biped_walk"])
def test_derivatives_are_crocoddyl_s(name: str) -> None:
    """Central differences; Hessians are Gauss's and Newton's, with 1 for what is beyond a barrier."""
    given, h = sampled(name, FOLDER), 1e-6
    problem, nodes, _, _, said = given
    model, nv = problem.model, problem.model.nv
    ndx, nu, count = 2 * nv, problem.nu, len(nodes)
    J = [np.zeros((count, 0))] * (ndx + nu)
    Lz, Fz = np.zeros((count, ndx + nu)), np.zeros((count, ndx, ndx + nu))
    for k, step in enumerate(h * np.eye(ndx + nu)):
        ends = [shifted(given, sign * step[:ndx], sign * step[ndx:]) for sign in (1.0, -1.0)]
        Fz[:, :, k] = difference(model, ends[1][2].next, ends[0][2].next) / (2 * h)
        J[k], Lz[:, k] = (
            (one - other) / (2 * h)
            for one, other in zip(*(stacked(given, xs, us, motion) for xs, us, motion in ends), strict=True)
        )
    curved = curvature(given)
    jacobian = np.stack(J, axis=2)
    H = np.einsum("nri,nr,nrj->nij", jacobian, curved, jacobian)
    d, e = along(ndx), along(nu)
    for k, row in enumerate(said):
        x, u, F = slice(0, ndx), slice(ndx, None), Fz[k]
        right = {"Lx": Lz[k, x], "Lu": Lz[k, u], "Lxx_d": H[k, x, x] @ d, "Luu_e": H[k, u, u] @ e}
        right |= {"Lxu_e": H[k, x, u] @ e, "Fx_d": F[:, x] @ d, "Fu_e": F[:, u] @ e}
        for key in right.keys() & row.keys():
            theirs = np.array(row[key])
            scale = max(float(np.abs(theirs).max()), 1.0)
            assert error(right[key], theirs, scale) < 1e-5, f"{name}, node {nodes[k]}: {key}"


def stacked(given: Sampled, xs: Array, us: Array, motion: Motion) -> tuple[Array, Array]:
    """All residuals, one after the other, and costs."""
    problem, nodes = given.problem, given.nodes
    parts = [residual(problem, term, nodes, xs, us, motion.forces) for term in problem.terms]
    return np.concatenate(parts, axis=1), costs(problem, nodes, xs, us, motion.forces)


def curvature(given: Sampled) -> Array:
    """s w a'' of all residuals, one after the other."""
    problem, nodes, xs, us, _ = given
    forces = moved(problem, nodes, xs, us).forces
    columns = []
    for term in problem.terms:
        r = residual(problem, term, nodes, xs, us, forces)
        bend = np.ones_like(r) if term.weights is None else np.broadcast_to(term.weights, r.shape)
        if term.lower is not None and term.upper is not None:
            bend = ((r <= term.lower) | (r >= term.upper)).astype(float)
        columns.append((problem.scale * term.weight)[nodes][:, None] * bend)
    return np.concatenate(columns, axis=1)


# --- the rest ---
@pytest.mark.parametrize("name", NAMES)
def test_first_guess_stands_still(name: str) -> None:
    """The least (u, f) with B u + J' f = gravity."""
    problem = load_problem(name)
    model, nodes = problem.model, np.arange(problem.T)
    q = problem.x0[: model.nq]
    B, g = np.eye(model.nv)[:, -problem.nu :], sl.gravity(model, q)
    reference = "local_world_aligned"
    J = [sl.frame_jacobian(model, q, foot, reference)[: problem.contact_size] for foot in problem.feet]
    for t in nodes[~problem.impact[:-1]]:
        touching = [jacobian.T for jacobian, on in zip(J, problem.active[t], strict=True) if on]
        u = np.linalg.pinv(np.concatenate([B, *touching], axis=1)) @ g
        assert_close(u[: problem.nu], problem.us0[t], 1e-9, what=f"{name}, node {t}")
    assert not problem.us0[problem.impact[:-1]].any()


@pytest.mark.parametrize("name", ["walk", "trot", "pace", "bound", "jump"])
def test_barrier_has_the_limits_of_each_joint(name: str) -> None:
    """Its slices of the state's limits leave out one number of the base, which has none: joints have their own."""
    problem = load_problem(name)
    (term,) = [term for term in problem.terms if term.name == "stateBounds"]
    model, free = problem.model, np.full(6, np.inf)
    assert np.array_equal(term.upper, np.r_[free, model.upper_position_limit[7:], free, model.velocity_limit[6:]])
    assert np.array_equal(term.lower, -np.r_[free, -model.lower_position_limit[7:], free, model.velocity_limit[6:]])
    assert np.array_equal(term.reference[0], np.r_[model.neutral(), np.zeros(model.nv)])


def inertia(joint: Any) -> pin.Inertia:
    return pin.Inertia(joint.mass, joint.com, joint.inertia)


def test_robots_are_those_of_the_files() -> None:
    """Talos' legs are the first joints of its file, without the torso; each sole counts twice, once as part of its foot and
    once more as its frame was added."""
    sole = pin.Inertia(0.01, np.zeros(3), 1e-4 * np.eye(3))
    for robot, file, twice, armature in (
        ("anymal", "anymal_b_simple_description/robots/anymal.urdf", (), 0.0),
        ("talos_legs", "talos_data/robots/talos_reduced.urdf", ocp_peer.ROBOTS["talos_legs"]["feet"], 0.1),
    ):
        ours, loaded = robot_model(robot), sl.load_urdf(ROBOTS / file, floating_base=True)
        feet = {loaded.frames[loaded.frame_index(foot)].joint: foot for foot in twice}
        for k, (one, other) in enumerate(zip(ours.joints, loaded.joints, strict=False)):
            assert (one.name, one.kind, one.parent) == (other.name, other.kind, other.parent)
            right = inertia(other)
            if k in feet:
                right += pin.SE3(np.array(loaded.frames[loaded.frame_index(feet[k])].placement)).act(sole)
            assert error(inertia(one).matrix(), right.matrix(), 1.0) < 1e-12, one.name
            assert error(np.c_[one.placement[:3], one.axis], np.c_[other.placement[:3], other.axis], 1.0) < 1e-12
        assert np.array_equal(ours.armature, np.r_[np.zeros(6), np.full(ours.nv - 6, armature)])
        for foot in ocp_peer.ROBOTS[robot]["feet"]:
            one, other = (model.frames[model.frame_index(foot)] for model in (ours, loaded))
            assert error(one.placement, other.placement, 1.0) < 1e-12, foot
