"""Robots without constraints: every public function of kinematics, dynamics, momentum, energy and the manifold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np

import saltus as sl
from saltus.arrays import Array
from tests import oracles
from tests.dynamics.test_against_oracle import NOT_WITH_MIMICS, TABLE, leaves
from tests.generators import State
from tools.fuzz.arrays import FORMS, narrowed, random_form, random_leading
from tools.fuzz.robots import Units, gravity_size, random_q, random_robot

FACTOR = 300.0
"""How many times machine epsilon times its size a result may be off: sums over thirty bodies, some ten operations each."""

OUT: dict[str, Callable[..., Any]] = {
    "joint_placements": lambda m, s, out: sl.joint_placements(m, s.q, out=out),
    "frame_placements": lambda m, s, out: sl.frame_placements(m, s.q, out=out),
    "joint_velocities": lambda m, s, out: sl.joint_velocities(m, s.q, s.v, out=out),
    "rnea": lambda m, s, out: sl.rnea(m, s.q, s.v, s.a, out=out),
    "nonlinear_effects": lambda m, s, out: sl.nonlinear_effects(m, s.q, s.v, out=out),
    "gravity": lambda m, s, out: sl.gravity(m, s.q, out=out),
    "crba": lambda m, s, out: sl.crba(m, s.q, out=out),
    "minverse": lambda m, s, out: sl.minverse(m, s.q, out=out),
    "aba": lambda m, s, out: sl.aba(m, s.q, s.v, s.tau, out=out),
    "centroidal_momentum_matrix": lambda m, s, out: sl.centroidal_momentum_matrix(m, s.q, out=out),
    "integrate": lambda m, s, out: sl.integrate(m, s.q, s.v, out=out),
    "difference": lambda m, s, out: sl.difference(m, s.q, s.q1, out=out),
    "interpolate": lambda m, s, out: sl.interpolate(m, s.q, s.q1, 0.3, out=out),
}
"""What takes memory for its result."""

DOUBLE_ONLY = {name for name in TABLE if "with forces" in name or name == "interpolate"}
"""In single precision, `make warmup` compiles nothing optional; interpolation's 0.3 is a double."""


@dataclass
class Sizes:
    """How large the numbers are, in the robot's units, that a result is the sum of: what rounding is relative to."""

    M: Array  # (nv, nv)
    inverse: float
    condition: float
    reach: float  # of placements
    turn: float  # of Jacobians
    speed: float
    acceleration: float
    torque: float  # for a = 0 and without external forces
    mass: float
    q: float

    @classmethod
    def of(cls, u: Units, s: State) -> Sizes:
        m = u.model
        X, J, dJ, inertias = oracles._local(m, s.q, s.v)
        J, dJ, inertias = np.abs(J / u.J), np.abs(dJ / u.J), np.abs(inertias / u.inertia)
        v, a = np.abs(s.v / u.v), np.abs(s.a / u.v)
        lengths = [np.abs(j.placement[:3, 3]).max() + np.abs(j.com).max() for j in m.joints] + [
            np.abs(f.placement[:3, 3]).max() for f in m.frames
        ]
        reach = 1.0 + (np.abs(X[:, :3, 3]).max() + max(lengths)) / u.length
        world = np.abs(oracles._jacobians(m, s.q)[1] / u.J)
        turn, speed = reach * max(1.0, J.max(), world.max()), reach * max((J @ v).max(), (world @ v).max())
        acceleration = reach * ((J @ a).max() + (dJ @ v).max()) + speed**2
        torque = float(np.einsum("ika,ikl->a", J, inertias).max()) * (reach * speed**2 + gravity_size(u))
        M = oracles.mass_matrix(m, s.q) / u.M
        inverse = np.abs(np.linalg.inv(M)).max()
        return cls(M, inverse, float(np.linalg.cond(M)), reach, turn, speed, acceleration, torque,
                   float(inertias[1:].sum()), float(max(np.abs(s.q / u.q).max(), np.abs(s.q1 / u.q).max())))  # fmt: skip


def largest(x: Array) -> float:
    return float(np.abs(x).max(initial=0.0))


RULES: dict[str, tuple[Callable[[Units], Any], Callable[[Units, State, Sizes], float]]] = {
    "joint_placements": (lambda u: [u.placement], lambda u, s, z: z.reach),
    "frame_placements": (lambda u: [u.placement], lambda u, s, z: z.reach),
    "frame_placement": (lambda u: [u.placement], lambda u, s, z: z.reach),
    "joint_velocities": (lambda u: [u.motion], lambda u, s, z: z.speed),
    "joint_accelerations": (lambda u: [u.motion], lambda u, s, z: z.acceleration),
    "forward_kinematics": (lambda u: [u.placement, u.motion, u.motion], lambda u, s, z: z.reach + z.acceleration),
    "frame_velocity": (lambda u: [u.motion], lambda u, s, z: z.speed),
    "frame_acceleration": (lambda u: [u.motion], lambda u, s, z: z.acceleration),
    "frame_jacobian": (lambda u: [u.J], lambda u, s, z: z.turn),
    "joint_jacobian": (lambda u: [u.J], lambda u, s, z: z.turn),
    "frame_jacobian_dot": (lambda u: [u.J], lambda u, s, z: z.turn * (1.0 + z.speed)),
    "joint_jacobian_dot": (lambda u: [u.J], lambda u, s, z: z.turn * (1.0 + z.speed)),
    "rnea": (lambda u: [u.tau], lambda u, s, z: z.torque + largest(z.M) * u.model.nv * largest(s.a / u.v)),
    "nonlinear_effects": (lambda u: [u.tau], lambda u, s, z: z.torque),
    "gravity": (lambda u: [u.tau], lambda u, s, z: z.torque),
    "crba": (lambda u: [u.M], lambda u, s, z: largest(z.M) + z.mass * z.reach**2 / FACTOR),  # the oracle sees the world
    "minverse": (lambda u: [1.0 / u.M], lambda u, s, z: z.condition * z.inverse),
    "aba": (lambda u: [u.v], lambda u, s, z: z.condition * z.inverse * (z.torque + largest(s.tau / u.tau))),
    "center_of_mass": (lambda u: [u.length], lambda u, s, z: z.reach + z.acceleration),
    "center_of_mass_jacobian": (lambda u: [u.J[:3]], lambda u, s, z: z.turn),
    "centroidal_momentum_matrix": (lambda u: [np.outer(u.wrench, 1 / u.v)], lambda u, s, z: z.mass * z.turn * z.reach),
    "centroidal_momentum": (lambda u: [u.wrench], lambda u, s, z: z.mass * z.speed * z.reach),
    "centroidal_momentum_drift": (lambda u: [u.wrench], lambda u, s, z: z.mass * z.acceleration * z.reach),
    "centroidal_momentum_rate": (lambda u: [u.wrench], lambda u, s, z: z.mass * z.acceleration * z.reach),
    "kinetic_energy": (lambda u: [u.mass * u.length**2], lambda u, s, z: (z.mass + largest(z.M)) * (1 + z.speed) ** 2),
    "potential_energy": (lambda u: [u.mass * u.length**2], lambda u, s, z: z.mass * gravity_size(u) * z.reach),
    "integrate": (lambda u: [u.q], lambda u, s, z: z.q + (1.0 + largest(s.v / u.v)) ** 2),  # a large turn times a way
    "difference": (lambda u: [u.v], lambda u, s, z: 1.0 + z.q),
    "interpolate": (lambda u: [u.q], lambda u, s, z: 1.0 + z.q),
    "distance": (lambda u: [np.nan], lambda u, s, z: 1.0 + z.q),
    "integrate_jacobians": (lambda u: [np.outer(u.v, 1 / u.v)], lambda u, s, z: (1.0 + largest(s.v / u.v)) ** 2),
    "difference_jacobians": (  # the oracle inverts a matrix of metres and radians
        lambda u: [np.outer(u.v, 1 / u.v)],
        lambda u, s, z: (1.0 + z.q) * max(u.length, 1.0 / u.length),
    ),
    "ltl": (lambda u: [np.outer(u.tau, 1 / u.tau), u.tau / u.v], lambda u, s, z: z.condition * largest(z.M)),
}
"""The units of its results, over and over, and the size of what they are the sum of."""


def rule(algorithm: str, u: Units) -> tuple[list[Any], Callable[[Units, State, Sizes], float]] | None:
    """None: nothing but shapes, types and NaN is looked at, where lengths and angles are added."""
    name, _, what = algorithm.partition(" ")
    if u.length != 1.0 and (name == "distance" or what in ("lower", "solve_lower")):
        return None
    units, size = RULES[name]
    if name == "distance":
        return [1.0], size
    if name == "ltl" and what:
        unit = u.v if what == "solve" else u.tau
        grown = (lambda z: z.inverse) if what == "solve" else (lambda z: z.condition * max(1.0, largest(z.M)))
        return [unit], lambda u, s, z: z.condition * grown(z) * largest(s.tau / u.tau)
    if what == "with forces":
        pushed = lambda u, s, z: z.turn * u.model.nb * largest(s.forces / u.wrench)  # noqa: E731
        scale = (lambda z: z.condition * z.inverse) if name == "aba" else (lambda z: 1.0)
        return units(u), lambda u, s, z: size(u, s, z) + scale(z) * pushed(u, s, z)
    return units(u), size


class Asked:
    """A state that remembers which of its arrays were asked for."""

    def __init__(self, state: State) -> None:
        self._state, self.asked = state, set()

    def __getattr__(self, name: str) -> Any:
        self.asked.add(name)
        return getattr(self._state, name)


@dataclass
class Inputs:
    """A batch of states in odd arrays, and what they mean."""

    given: State
    clean: State  # the same numbers, float64 and contiguous
    singles: set[str] = field(default_factory=set)  # which of them are float32 arrays

    @classmethod
    def random(cls, rng: np.random.Generator, u: Units, leading: tuple[int, ...]) -> Inputs:
        m, speed = u.model, 10.0 ** rng.uniform(-1, 1.5)
        shapes = {name: narrowed(rng, leading) for name in ("q", "v", "a", "tau", "forces", "q1")}
        normal = lambda name, size: rng.normal(size=(*shapes[name], *size))  # noqa: E731
        q, base = random_q(rng, u, shapes["q"]), random_q(rng, u, shapes["q1"])
        values = {
            "q": q,
            "v": speed * normal("v", (m.nv,)) * u.v,
            "a": 5.0 * normal("a", (m.nv,)) * u.v,
            "tau": 10.0 * normal("tau", (m.nv,)) * u.tau,
            "forces": 10.0 * normal("forces", (m.njoints, 6)) * u.wrench,
            "q1": base if shapes["q"] else sl.integrate(m, q, rng.uniform(-1.0, 1.0, (*shapes["q1"], m.nv)) * u.v),
        }
        types = dict.fromkeys(values, "f8")
        kind = rng.integers(8)
        if kind <= 1:
            types = dict.fromkeys(values, "f4")
        elif kind == 2:
            types |= {name: str(rng.choice(["f4", "f8"])) for name in ("v", "a", "tau", "forces")}
        elif kind == 3 and u.length >= 1.0 and u.mass >= 1.0:
            types |= {name: "i8" for name in ("v", "a") if rng.random() < 0.5}
        given, clean, singles = {}, {}, set()
        for name, value in values.items():
            typed = value.astype(types[name])
            given[name], clean[name] = FORMS[random_form(rng, typed)](typed), np.array(typed, "f8")
            if types[name] == "f4":
                singles.add(name)
        return cls(State(**given), State(**clean), singles)


def sample(state: State, leading: tuple[int, ...], index: tuple[int, ...]) -> State:
    """One of a batch; arrays that do not reach so far, and are not asked for, are taken at their beginning."""

    def at(x: Array, core: int) -> Array:
        shape = np.broadcast_shapes(x.shape[: x.ndim - core], leading)
        return np.broadcast_to(x, (*shape, *x.shape[x.ndim - core :]))[index].copy()

    return State(**{name: at(x, 2 if name == "forces" else 1) for name, x in vars(state).items()})


def check(rng: np.random.Generator) -> Iterator[str]:
    """One robot, one batch of states, a few functions: what is wrong, in words."""
    model, units = random_robot(rng, 30, mimics=True)
    whole = random_leading(rng)
    inputs = Inputs.random(rng, units, whole)
    spare = sample(Inputs.random(rng, units, ()).clean, (), ())
    names = [name for name in TABLE if model.coupling is None or name not in NOT_WITH_MIMICS]
    sl.set_threads(int(rng.integers(1, 3)))
    lanes = [tuple(int(rng.integers(n)) for n in whole) for _ in range(2)] if 0 not in whole else []
    states = [sample(inputs.clean, whole, lane) for lane in lanes]
    sizes = [Sizes.of(units, state) for state in states]
    for name in rng.choice(names, 8, replace=False).tolist():
        yield from (
            f"{name}: {wrong}" for wrong in function_check(name, units, inputs, whole, lanes, states, sizes, spare)
        )


def function_check(
    name: str, u: Units, inputs: Inputs, whole: tuple[int, ...], lanes: list[tuple[int, ...]], states: list[State],
    sizes: list[Sizes], spare: State,
) -> Iterator[str]:  # fmt: skip
    model, (ours, theirs) = u.model, TABLE[name]
    asked = Asked(spare)
    cores = [np.shape(leaf) for leaf in leaves(theirs(model, spare))]
    ours(model, asked)
    used = asked.asked
    single = used <= inputs.singles
    if single and name in DOUBLE_ONLY:
        return
    cut = {key: np.asarray(x).ndim - (2 if key == "forces" else 1) for key, x in vars(inputs.clean).items()}
    leading = np.broadcast_shapes(*(vars(inputs.clean)[key].shape[: cut[key]] for key in used))
    result = leaves(ours(model, inputs.given))
    dtype = np.dtype("f4" if single else "f8")
    for leaf, core in zip(result, cores, strict=True):
        if leaf.shape != (*leading, *core):
            yield f"shape {leaf.shape}, expected {(*leading, *core)}"
            return
        if leaf.dtype != dtype and leaf.shape:
            yield f"type {leaf.dtype}, expected {dtype}"
            return
    if name in OUT:
        memory = np.full(result[0].shape, np.nan, dtype)
        answer = OUT[name](model, inputs.given, memory)
        if answer is not memory or not np.array_equal(memory, result[0]):
            yield "another result, given memory for it"
    ruled = rule(name, u)
    for lane, state, size in zip(lanes, states, sizes, strict=True):
        at = lane[len(whole) - len(leading) :]
        at = tuple(0 if n == 1 else k for k, n in zip(at, leading, strict=True))
        mine = [leaf[at] for leaf in result]
        if not all(np.isfinite(leaf).all() for leaf in mine):
            yield f"NaN or infinity in sample {lane}"
            continue
        if not single:
            alone = leaves(ours(model, state))
            for one, other in zip(mine, alone, strict=True):
                if not np.allclose(one, other, rtol=1e-9, atol=1e-9 * largest(other) + 1e-300):
                    yield f"sample {lane} is {largest(one - other) / largest(other):.1e} from the same alone"
        if ruled is None:
            continue
        lever = max(1.0, largest(state.q) / u.length)  # the oracle has all motions about the world's origin
        bound = FACTOR * float(np.finfo(dtype).eps) * lever * ruled[1](u, state, size)
        for one, right, unit in zip(mine, leaves(theirs(model, state)), cycle(ruled[0]), strict=False):
            error = largest((one - right) / unit)
            if error > bound:
                size = largest(right / unit)
                yield f"{dtype}, sample {lane}: off by {error:.1e} of {size:.1e}, at most {bound:.1e} allowed"
