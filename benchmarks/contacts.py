"""Named sets of constraints of the robots, in the papers' notation.

`F6^2 H3` is two feet held as surfaces and one hand held as a point, each robot's first ones; a part that is named again is
held twice. `L` are the loops that the robot's file declares.

| letter | limbs |
|---|---|
| F, H | feet, hands |
| K, E | knees, elbows |
| T | finger tips |
| B | base |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np

import saltus as sl
from benchmarks.robots import saltus_model, title
from saltus.arrays import Array
from saltus.constraints.dynamics import METHODS, TREES_ONLY
from saltus.constraints.scale import typical_delassus
from saltus.constraints.system import _constrained_system
from saltus.constraints.tables import ConstrainedModel

_TALOS = {
    "F": ("left_sole_link", "right_sole_link"),
    "H": ("gripper_left_base_link", "gripper_right_base_link"),
    "E": ("arm_left_4_link", "arm_right_4_link"),
    "B": ("base_link",),
}
_FINGERS = ("thumb", "index", "middle", "ring", "little")

LIMBS: dict[str, dict[str, tuple[str, ...]]] = {
    "ur5": {"H": ("tool0",), "E": ("forearm_link",)},
    "arm": {"H": ("tool",), "E": ("forearm",)},
    "solo12": {
        "F": ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
        "K": ("FL_LOWER_LEG", "FR_LOWER_LEG", "HL_LOWER_LEG", "HR_LOWER_LEG"),
        "B": ("base_link",),
    },
    "anymal": {
        "F": ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"),
        "K": ("LF_SHANK", "RF_SHANK", "LH_SHANK", "RH_SHANK"),
        "B": ("base",),
    },
    "icub": {
        "F": ("l_sole", "r_sole"),
        "H": ("l_gripper", "r_gripper"),
        "E": ("l_elbow_1", "r_elbow_1"),
        "B": ("root_link",),
    },
    "talos38": _TALOS,
    "talos50": _TALOS,
    "humanoid_hands": {
        "F": ("left_sole", "right_sole"),
        "H": ("left_hand", "right_hand"),
        "E": ("left_forearm", "right_forearm"),
        "T": tuple(f"{side}_{finger}_tip" for side in ("left", "right") for finger in _FINGERS),
    },
    "biped": {"F": ("left_sole", "right_sole")},
    "four_bar": {},
}


def constraints(model: sl.Model, limbs: dict[str, tuple[str, ...]], held: str) -> list[sl.Constraint]:
    """The constraints of a model that a notation such as "F6^2 H3 L" stands for."""
    found: list[sl.Constraint] = []
    for part in held.split():
        if part == "L":
            found += sl.model_loops(model)
            continue
        match = re.fullmatch(r"([A-Z])([36])(?:\^(\d+))?", part)
        if match is None or match[1] not in limbs:
            raise ValueError(f"{part!r} in {held!r}, expected a limb ({', '.join(limbs)}), 3 or 6, and a number: F6^2")
        found += [sl.Contact(model, frame, int(match[2])) for frame in limbs[match[1]][: int(match[3] or 1)]]
    return found


@dataclass(frozen=True)
class Case:
    """A robot, and what of it is held."""

    robot: str
    held: str
    wanted: tuple[float, float] | None = None
    """How many times faster than Pinocchio the issue asks `constrained_aba` to be: one call, packets."""

    @property
    def name(self) -> str:
        return f"{self.robot}:{self.held.replace(' ', '')}"

    @property
    def title(self) -> str:
        return f"{title(self.robot)} {self.held}"

    @property
    def model(self) -> sl.Model:
        return _model(self.robot)

    @property
    def constraints(self) -> list[sl.Constraint]:
        return constraints(self.model, LIMBS[self.robot], self.held)

    @property
    def has_loops(self) -> bool:
        return any(constraint.joint_b > 0 for constraint in self.constraints)


_model = cache(saltus_model)


def states(model: sl.Model, count: int, seed: int = 0) -> dict[str, Array]:
    """Random q, v and tau, seeded."""
    rng = np.random.default_rng([seed, model.nv])
    v, tau = rng.normal(size=(2, count, model.nv))
    return {"q": sl.random_configuration(model, seed, count), "v": v, "tau": 10.0 * tau}


SEQUENCES = [
    *(Case("ur5", held) for held in ("H3", "H6")),
    *(Case("solo12", held) for held in ("F3", "F3^2", "F3^3")),
    Case("solo12", "F3^4", (2.0, 15.0)),
    *(Case("anymal", held) for held in ("F3", "F3^2", "F3^3", "F3^4")),
    *(Case("icub", held) for held in ("F6", "F6^2", "F6^2 H6", "F6^2 H6^2")),
    Case("talos38", "F6"),
    Case("talos38", "F6^2", (2.5, 15.0)),
    Case("talos38", "F6^2 H6"),
    Case("talos38", "F6^2 H6^2", (3.0, 15.0)),
    *(Case("talos50", held) for held in ("F6", "F6^2", "F6^2 H6")),
    Case("talos50", "F6^2 H6^2", (3.0, 15.0)),
]
"""Contacts added one after the other: PS Figs. 4 to 8."""

FAMILIES = [
    *(Case("arm", held) for held in ("H3", "H6")),
    *(Case("humanoid_hands", held) for held in ("F6^2", "F6^2 H6^2", "F6^2 T3^10")),
]
"""Further cases of CA Tables II and III, Fig. 2; Solo's and Talos' are among the sequences."""

LOOPS = [Case("four_bar", "L"), Case("biped", "L"), Case("biped", "L F3^2"), Case("biped", "L F6^2")]

ONE_ITERATION = {"soft", "pv_soft"}
"""Methods that stop where the others begin to iterate."""


def for_contacts() -> list[str]:
    """The methods that iterate; `loop_aba` is `constrained_aba` where there are no loops."""
    return [method for method in METHODS if method not in {"kkt", "loop_aba"} | ONE_ITERATION]


def iterating(case: Case) -> list[str]:
    """Those that can solve a case."""
    if not case.has_loops:
        return for_contacts()
    return [method for method in METHODS if method not in {"kkt"} | ONE_ITERATION | TREES_ONLY]


CASES = {case.name: case for case in (*SEQUENCES, *FAMILIES, *LOOPS)}


ZERO, SINGULAR = 1e-12, 1e-3
"""Eigenvalues of the Delassus matrix: below the first, by the largest and in all states, rows are redundant; another one
below the second, by a typical entry and thus 1e4 times the default mu, makes a state nearly singular."""


class Problem:
    """A case at random states: its Jacobian and goal, and which states are nearly singular."""

    def __init__(self, case: Case, count: int) -> None:
        self.case, self.model, self.held = case, case.model, case.constraints
        self.states = states(self.model, count)
        J = self._system()[2]
        eigenvalues = np.linalg.eigvalsh(
            J @ np.linalg.solve(sl.crba(self.model, self.states["q"]), np.swapaxes(J, -1, -2))
        )
        redundant = (eigenvalues < ZERO * eigenvalues[:, -1:]).all(0)
        self.least = eigenvalues[:, ~redundant].min(-1) / typical_delassus(self.model, self.held)
        self.regular = self.least >= SINGULAR
        if redundant.any():  # only some velocities are met by accelerations
            move = np.einsum("bij,bj->bi", J, self.states["v"])
            self.states["v"] = self.states["v"] - np.einsum("bij,bj->bi", np.linalg.pinv(J, rtol=1e-9), move)
        _, _, self.J, self.goal, _ = self._system()

    def _system(self) -> tuple[Array, ...]:
        problem = ConstrainedModel(self.model, self.held, 1.0, 0.0, 1)
        inputs = (*self.states.values(), np.ones(problem.nc), np.zeros(problem.nm), np.zeros((0, self.model.nv)))
        found: tuple[Array, ...] = _constrained_system.call(problem, inputs)
        return found

    def left(self, a: Array) -> Array:
        """(B,), the largest entry of |J a - goal|: from J and goal, and not from what a method says of itself."""
        return np.asarray(np.abs(np.einsum("bij,bj->bi", self.J, a) - self.goal).max(-1))


def relative_errors(ours: Array, right: Array) -> Array:
    """(B,), the largest of a sample's accelerations (B, nv), by the largest of them or that of gravity."""
    return np.asarray(np.abs(ours - right).max(-1) / np.maximum(np.abs(right).max(-1), 9.81))
