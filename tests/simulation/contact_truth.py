"""What impulses of contacts must be, by NumPy and SciPy: the conditions as they are written, all modes tried, and scenes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import brentq, root

import saltus as sl
from saltus.arrays import Array


def violations(G: Array, g: Array, friction: Array, impulses: Array, law: str = "coulomb") -> dict[str, float]:
    """By how much each condition is missed, at worst: impulses outside their cones [N s], rates outside what is allowed
    [m/s], work that should be none, or not that [J]."""
    x, u = impulses.reshape(-1, 3), (G @ impulses + g).reshape(-1, 3)
    push, slip = np.linalg.norm(x[:, :2], axis=1), np.linalg.norm(u[:, :2], axis=1)
    along = (x[:, :2] * u[:, :2]).sum(axis=1)
    if law == "coulomb":
        closing, work = -u[:, 2], np.abs(x[:, 2] * u[:, 2]) + np.abs(along + friction * x[:, 2] * slip)
    else:
        closing, work = friction * slip - u[:, 2], np.abs(along + x[:, 2] * u[:, 2])
    return {
        "cone": max(0.0, (push - friction * x[:, 2]).max(), (-x[:, 2]).max()),
        "closing": max(0.0, closing.max()),
        "work": work.max(),
    }


def natural_map(G: Array, g: Array, friction: Array, impulses: Array) -> float:
    """|D (x - P(x - u / D))| of the worst contact, D being the mean of its three entries of the diagonal [m/s]."""
    worst, u = 0.0, G @ impulses + g
    for c, mu in enumerate(friction):
        k = slice(3 * c, 3 * c + 3)
        D = max(np.trace(G[k, k]) / 3, 1e-12 * np.diag(G).max() + 1e-30)
        tau = impulses[k] - u[k] / D
        normal, length = max(tau[2], 0.0), np.hypot(*tau[:2])
        tangent = tau[:2] if length <= mu * normal else tau[:2] * (mu * normal / length)
        worst = max(worst, D * float(np.linalg.norm(impulses[k] - [*tangent, normal])))
    return worst


def all_solutions(G: Array, g: Array, friction: Array) -> list[Array]:
    """Impulses of one contact or two, of all modes: each is open, sticks, or slides in a direction that is looked for."""
    found: list[Array] = []
    for modes in product(("open", "stick", "slide"), repeat=len(friction)):
        sliding = [c for c, mode in enumerate(modes) if mode == "slide"]

        def impulses(angles: Any, modes: Any = modes, sliding: Any = sliding) -> Array:
            """Where closed contacts do not open, sticking ones do not move, and sliding ones are pushed against angles."""
            columns, rows = np.zeros((len(g), 0)), []
            for c, mode in enumerate(modes):
                if mode == "stick":
                    columns = np.hstack([columns, np.eye(len(g))[:, 3 * c : 3 * c + 3]])
                    rows += [3 * c, 3 * c + 1, 3 * c + 2]
                elif mode == "slide":
                    angle = angles[sliding.index(c)]
                    column = np.zeros((len(g), 1))
                    column[3 * c : 3 * c + 3, 0] = -friction[c] * np.cos(angle), -friction[c] * np.sin(angle), 1
                    columns = np.hstack([columns, column])
                    rows.append(3 * c + 2)
            return columns @ np.linalg.solve((G @ columns)[rows], -g[rows])

        def turned(angles: Any, sliding: Any = sliding, impulses: Any = impulses) -> list[float]:
            """How fast contacts slide across their angles."""
            u = G @ impulses(angles) + g
            return [-np.sin(a) * u[3 * c] + np.cos(a) * u[3 * c + 1] for a, c in zip(angles, sliding, strict=True)]

        grid = np.linspace(0, 2 * np.pi, 181 if len(sliding) == 1 else 25)
        if not sliding:
            candidates = [impulses([])]
        elif len(sliding) == 1:
            values = [turned([a])[0] for a in grid]
            candidates = [
                impulses([brentq(lambda a, turned=turned: turned([a])[0], a, b, xtol=1e-14)])
                for a, b, s, t in zip(grid[:-1], grid[1:], values[:-1], values[1:], strict=True)
                if s * t <= 0
            ]
        else:
            roots = [root(turned, start, tol=1e-13) for start in product(grid[:-1], repeat=2)]
            candidates = [impulses(each.x) for each in roots if each.success]
        for x in candidates:
            missed = violations(G, g, friction, x)
            if max(missed.values()) < 1e-8 and all(np.abs(x - other).max() > 1e-6 for other in found):
                found.append(x)
    return found


def random_matrix(rng: np.random.Generator, rows: int) -> Array:
    """Positive definite, with moderate condition."""
    J = rng.normal(size=(rows, rows + 2))
    return np.asarray(J @ J.T / rows)


def random_scene(rng: np.random.Generator, models: list[sl.Model]) -> tuple[Array, Array, Array]:
    """G, g and friction of a robot in any pose, with 1 to 32 contacts anywhere: on one ground, or each on one of its own, so
    that they are wedged; the same ones twice; with gaps; with no friction, or that of ice, steel or rubber."""
    model = models[rng.integers(len(models))]
    q = sl.random_configuration(model, seed=int(rng.integers(1 << 30)))
    v = rng.normal(size=model.nv) * rng.choice([0, 0.1, 1, 5])
    count = int(rng.integers(1, 33))
    frames = rng.choice([i for i, frame in enumerate(model.frames) if frame.joint > 0], count)
    if rng.random() < 0.3:
        frames[count // 2 :] = frames[: count - count // 2]
    friction = rng.uniform(0, 2, count) * (rng.random(count) > 0.1)
    if rng.random() < 0.4:
        friction[:] = rng.uniform(0, 1)
    one_ground = rng.random() < 0.5
    J = np.zeros((3 * count, model.nv))
    for c, frame in enumerate(frames):
        whole = sl.frame_jacobian(model, q, int(frame), "local_world_aligned")
        normal = np.array([0, 0, 1.0]) if one_ground else rng.normal(size=3)
        normal = normal / np.linalg.norm(normal)
        point = rng.normal(size=3) * 0.05 * (not one_ground and rng.random() < 0.5)
        motion = whole[:3] - np.cross(np.eye(3), point) @ whole[3:]
        J[3 * c : 3 * c + 3] = np.vstack([np.linalg.svd(normal[None])[2][1:], normal]) @ motion
    M = sl.crba(model, q)
    inverse = np.linalg.inv(M + 1e-6 * np.diag(np.diag(M)))
    step = rng.choice([1e-4, 1e-3, 1e-2])
    g = J @ (v - step * inverse @ sl.nonlinear_effects(model, q, v))
    g[2::3] += rng.choice([0, 0, 1e-4]) * rng.random(count) / step
    G = J @ inverse @ J.T
    return (G + G.T) / 2, g, friction
