"""Crocoddyl's gaits as numbers, read from what `ocp_peer_numbers.py` wrote to `tests/ocp`: no Crocoddyl needed.

    minimise  sum_t s_t sum_i w_ti a_i(r_i(x_t, u_t, f_t; c_ti))    with s_t = dt_t, or 1 at impacts and at the end

| symbol | field | what | shape |
|---|---|---|---|
| w_ti | `Term.weight` | 0 where a node does not have the term | (T + 1,) |
| c_ti | `Term.reference` | of the residual | (T + 1, n) |
| a_i | `.activation` | "quadratic", "weighted", "barrier": 1/2 r'r, 1/2 r'Wr, 1/2 p'p, p beyond the bounds | |
| r_i | `.residual` | see below | (size,) |
| f_t | | forces of the contacts, or the impulses of an impact | |
| dt_t | `GaitProblem.dt` | of semi-implicit Euler: v' = v + dt a, q' = q (+) dt v' | (T + 1,) |
| s_t | `.scale` | | (T + 1,) |
| | `.active` | which feet touch; at an impact, which strike | (T + 1, feet) |
| | `.impact` | x' = (q, v+); controls do nothing; costs are those of the state before | (T + 1,) |

| residual | r | reference | size |
|---|---|---|---|
| state | c (-) x: the tangent from c to x, base first | x | 2 nv |
| control | u - c | u | nu |
| com_position | centre of mass - c, in the world | position | 3 |
| frame_translation | position - c, in the world | position | 3 |
| frame_placement | log6(c^-1 X), linear first | position and rotation by rows | 6 |
| friction_cone, wrench_cone | `matrix` f, f of the frame's contact at its origin along the world's axes | none | rows |

The last node has no controls, and no forces: cones are given r = 0 there, and the term on controls is 0. An impact has
no terms on forces or controls. Contacts ask for -kd times the frame's velocity as the acceleration, with no feedback of
placement; those of soles (size 6) of the spatial acceleration, those of points of the classical one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from saltus.arrays import Array

FOLDER = Path(__file__).parents[1] / "tests" / "ocp"
NAMES = ("walk", "trot", "pace", "bound", "jump", "biped_walk")
AXES = {"RX": (1, 0, 0), "RY": (0, 1, 0), "RZ": (0, 0, 1)}


@dataclass(frozen=True, eq=False)
class Term:
    """A term of the cost at all nodes."""

    name: str
    residual: str
    activation: str
    weight: Array  # (T + 1,)
    reference: Array  # (T + 1, n), any where the weight is zero
    frame: str = ""
    matrix: Array | None = None  # (rows, 3 or 6) of a cone
    weights: Array | None = None  # (size,) of a weighted activation
    lower: Array | None = None  # (size,) of a barrier, infinite where there is none
    upper: Array | None = None

    def value(self, r: Array) -> Array:
        """The activation of residuals (..., size)."""
        if self.activation == "barrier":
            r = np.minimum(r - self.lower, 0.0) + np.maximum(r - self.upper, 0.0)
        result: Array = 0.5 * np.sum(r**2 if self.weights is None else self.weights * r**2, axis=-1)
        return result


@dataclass(frozen=True, eq=False)
class GaitProblem:
    """A gait as numbers, the first guess, and what Crocoddyl found."""

    name: str
    robot: str
    model: sl.Model
    x0: Array  # (nx,)
    dt: Array  # (T + 1,)
    impact: Array  # (T + 1,) of bools
    active: Array  # (T + 1, feet) of 0 and 1
    feet: tuple[str, ...]
    contact_size: int  # 3 or 6
    kd: float  # of the contacts [1/s]
    nu: int  # the joints but for the base, in their order
    terms: tuple[Term, ...]
    us0: Array  # (T, nu), zero at impacts
    stop: float  # threshold of the solver
    found: dict[str, Any]  # converged, cost, iterations, log, last

    @property
    def T(self) -> int:
        return len(self.dt) - 1

    @property
    def scale(self) -> Array:
        """(T + 1,) what a node's terms are multiplied by."""
        result = np.where(self.impact, 1.0, self.dt)
        result[-1] = 1.0
        return result

    @property
    def xs0(self) -> Array:
        """(T + 1, nx): standing still."""
        return np.tile(self.x0, (self.T + 1, 1))

    def dynamics(self, **options: Any) -> sl.ConstrainedDynamics:
        """All feet as contacts, which `active` switches. An impact has no gains: `dynamics().impact` knows none."""
        contacts = [sl.Contact(self.model, foot, dim=self.contact_size, kd=self.kd) for foot in self.feet]
        return sl.ConstrainedDynamics(self.model, contacts, **options)


def robot_model(name: str, folder: Path = FOLDER) -> sl.Model:
    """The robot as Pinocchio gave it to Crocoddyl, joint by joint, with the frames of its feet."""
    data = json.loads((folder / f"crocoddyl_{name}.json").read_text())
    builder = sl.ModelBuilder(name, data["gravity"], physical=False)
    for joint in data["joints"]:
        free, limits = joint["kind"] == "FreeFlyer", {}
        if not free:
            limits = {key: joint[key] for key in ("lower", "upper", "velocity_limit", "effort_limit")}
        index = builder.add_joint(
            joint["name"], "free_flyer" if free else "revolute", joint["parent"], pose(joint["placement"]),
            AXES.get(joint["kind"], (0, 0, 1)), armature=joint["armature"], **limits,
        )  # fmt: skip
        builder.add_body(index, joint["mass"], joint["com"], np.reshape(joint["inertia"], (3, 3)))
    for frame in data["frames"]:
        builder.add_frame(frame["name"], frame["joint"], pose(frame["placement"]))
    builder.add_reference("standing", data["standing"])
    return builder.build()


def pose(given: Any) -> Array:
    """(4, 4) of a position and a rotation by rows."""
    result = np.eye(4)
    result[:3, 3], result[:3, :3] = given[:3], np.reshape(given[3:], (3, 3))
    return result


def bounds(given: list[float | None] | None, none: float) -> Array | None:
    return None if given is None else np.array([none if bound is None else bound for bound in given], float)


def optional(given: Any) -> Array | None:
    return None if given is None else np.array(given, float)


def load_problem(name: str, folder: Path = FOLDER) -> GaitProblem:
    """The problem of one of `NAMES`."""
    file = folder / f"crocoddyl_{name}.json"
    if name not in NAMES or not file.exists():
        raise FileNotFoundError(f"no problem {name!r} in {folder}, expected one of {', '.join(NAMES)}")
    data = json.loads(file.read_text())
    model = robot_model(data["robot"], folder)
    dt, impact, touching, listed = zip(*data["nodes"], strict=True)
    feet = tuple(
        frame["name"] for frame in json.loads((folder / f"crocoddyl_{data['robot']}.json").read_text())["frames"]
    )
    us0 = np.zeros((len(dt) - 1, data["controls"]))
    for u, row in zip(us0, data["us0"]["of_node"], strict=True):
        known = data["us0"]["rows"][row]
        u[: len(known)] = known
    kp, kd = data["contact_gains"]
    if kp:
        raise ValueError(f"problem {name!r}: contacts keep a placement with kp = {kp}, expected 0")
    return GaitProblem(
        name, data["robot"], model, np.array(data["x0"], float), np.array(dt, float), np.array(impact, bool),
        np.array([[float(foot in there) for foot in feet] for there in touching]), feet, data["contact_size"], kd,
        data["controls"], tuple(term_of(k, term, listed) for k, term in enumerate(data["terms"])), us0, data["stop"],
        data["found"],
    )  # fmt: skip


def term_of(index: int, given: dict[str, Any], nodes: Any) -> Term:
    """The term of this index, gathered from what nodes list of theirs: [index, weight, reference]."""
    weight = np.zeros(len(nodes))
    found = {}
    for t, terms in enumerate(nodes):
        for term, factor, reference in terms:
            if term == index:
                weight[t], found[t] = factor, reference or given.get("reference", [])
    reference = np.tile(np.array(next(iter(found.values())), float), (len(nodes), 1))
    reference[list(found)] = list(found.values())
    return Term(
        given["name"], given["residual"], given["activation"], weight, reference, given.get("frame", ""),
        optional(given.get("matrix")), optional(given.get("weights")),
        bounds(given.get("lower"), -np.inf), bounds(given.get("upper"), np.inf),
    )  # fmt: skip
