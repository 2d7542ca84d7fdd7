"""A human bends down, takes a weight and lifts it: optimal control by direct transcription, solved by IPOPT.

    python -m examples.lifting [--load KG] [--mode MODE] [--folder FOLDER]

        minimise     sum over both phases of  T int_0^1 (haste + |u|^2) ds
        subject to   dx/ds = T (v, a)              a, forces: constrained dynamics, with the soles held on the ground
                     heel, toe >= 0                normal forces at both ends of the soles
                     hand in front of the legs, limits of joints and torques
                     standing -> hand at the weight, at rest -> standing with the weight at the elbow's height

The human (`human.py`) has eight degrees of freedom in the sagittal plane, five of them with torques. In the second phase a
point mass is in the hand; at rest, it is taken without an impact.

Torques and states at all nodes, and the durations T, are the unknowns of one nonlinear programme (separated Hermite-Simpson
collocation, torques linear in each interval). All nodes of a phase are one batch, for dynamics and for derivatives. Second
derivatives are central differences of first ones.

| symbol | code | shape | unit |
|---|---|---|---|
| x = (q, v), z = (x, u) | `z` | (n, 21), n = 2 N + 1 nodes | m, rad, m/s, rad/s, limit of the joint |
| T | `T` | () | s |
| y = (a, heel, toe, hand) | `y` | (n, 12) | m/s^2, rad/s^2, body weight, m |
| D x = T / N B (v, a) | `D`, `B` | (2 N, n) | |

References: P. Manns, K. Mombaur, Towards discrete mechanics and optimal control for complex models (2017), for the motion;
M. Kelly, An introduction to trajectory optimization (2017), section 4, for the collocation.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from examples.human import BODY_WEIGHT, HEEL, SUPPORT, TOE, human, on_the_ground, standing
from saltus.arrays import Array

NV, NU = 8, 5
NX, NZ, NY = 2 * NV, 2 * NV + NU, NV + 4
Q, V, U = slice(0, NV), slice(NV, NX), slice(NX, NZ)  # in z
JOINTS = slice(NV - NU, NV)  # in q
A, PATH = slice(0, NV), slice(NV, NY)  # in y

STANDING = np.array([0.1, 0.2, 0.1, 0.1, 0.2])  # hip, knee, ankle, shoulder, elbow [rad]
BENT = np.array([1.9, 1.3, 0.3, 1.2, 0.2])  # where the search starts from
LIFTED = np.array([0.1, 0.2, 0.1, 0.2, 1.4])
WEIGHT = np.array([0.40, 0.25])  # where it is taken, before the ankle and above the ground [m]
FRONT = 0.12, 0.30  # the hand stays before that: empty, it may pass beside the knees [m]
HASTE = 0.1  # what a second costs, beside the effort
FASTEST, SLOWEST, SPEED = 0.4, 3.0, 6.0  # s, s, m/s and rad/s

CURVATURE_STEP = 1e-2
"""Of differences of first derivatives: so wide that those of finite differences do not drown in noise."""


# ------------------------------------------------------------------------------------------------------- transcription


class Phase:
    """One phase of the motion: N intervals, their ends and middles as nodes."""

    def __init__(self, load: float, intervals: int, mode: str) -> None:
        self.model, self.mode = human(load), mode
        self.dynamics, self.strength = standing(self.model), self.model.effort_limit[JOINTS]
        self.intervals, self.n = intervals, 2 * intervals + 1
        self.D, self.B = np.zeros((2 * intervals, self.n)), np.zeros((2 * intervals, self.n))
        for k in range(0, 2 * intervals, 2):
            self.D[k, k : k + 3], self.B[k, k : k + 3] = (-1 / 2, 1, -1 / 2), (1 / 8, 0, -1 / 8)
            self.D[k + 1, k : k + 3], self.B[k + 1, k : k + 3] = (-1, 0, 1), (1 / 6, 4 / 6, 1 / 6)
        self.quadrature = self.B[1::2].sum(0) / intervals  # (n,), Simpson's

    def inputs(self, z: Array) -> tuple[Array, Array, Array]:
        tau = np.zeros((*z.shape[:-1], NV))
        tau[..., JOINTS] = self.strength * z[..., U]
        return np.ascontiguousarray(z[..., Q]), np.ascontiguousarray(z[..., V]), tau

    def outputs(self, z: Array) -> Array:
        """y (..., 12) of nodes z (..., 21)."""
        q, v, tau = self.inputs(z)
        solution = self.dynamics.solve(q, v, tau)
        hand = sl.frame_placement(self.model, q, "hand")[..., [0, 2], 3]
        return np.concatenate([solution.a, solution.forces[..., [2, 4]] @ SUPPORT.T / BODY_WEIGHT, hand], axis=-1)

    def slopes(self, z: Array) -> Array:
        """dy/dz (..., 12, 21)."""
        q, v, tau = self.inputs(z)
        da, df = self.dynamics_slopes(q, v, tau)
        dy = np.zeros((*z.shape[:-1], NY, NZ))
        dy[..., A, :] = da
        dy[..., NV : NV + 2, :] = SUPPORT / BODY_WEIGHT @ df[..., [2, 4], :]
        dy[..., NV + 2 :, Q] = sl.frame_jacobian(self.model, q, "hand", "local_world_aligned")[..., [0, 2], :]
        return dy

    def dynamics_slopes(self, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        """Of accelerations (..., 8, 21) and forces (..., 6, 21) with respect to z."""
        if self.mode == "analytical":
            D = self.dynamics.derivatives(q, v, tau)
            by_input = [(D.da_dq, D.df_dq), (D.da_dv, D.df_dv), (D.da_dtau, D.df_dtau)]
        else:  # one input at a time: differences have the step that fits the largest number among the inputs that change
            by_input = []
            for k in range(3):
                directions = [np.broadcast_to(np.eye(NV), (*q.shape, NV)) if j == k else None for j in range(3)]
                _, slopes = sl.jvp(sl.ConstrainedDynamics.solve, self.dynamics, (q, v, tau), directions, self.mode)
                by_input.append(tuple(np.swapaxes(slope, -1, -2) for slope in slopes[:2]))
        (da_dq, df_dq), (da_dv, df_dv), (da_dtau, df_dtau) = by_input
        da = np.concatenate([da_dq, da_dv, da_dtau[..., JOINTS] * self.strength], axis=-1)
        return da, np.concatenate([df_dq, df_dv, df_dtau[..., JOINTS] * self.strength], axis=-1)

    def curvature(self, z: Array, weights: Array) -> Array:
        """d^2 (weights . y) / dz^2 (n, 21, 21)."""
        steps = CURVATURE_STEP * np.eye(NZ)
        ahead, behind = (weights[:, None, None] @ self.slopes(z[:, None] + step) for step in (steps, -steps))
        H = (ahead - behind)[..., 0, :] / (2 * CURVATURE_STEP)
        return np.asarray(H + np.swapaxes(H, 1, 2)) / 2

    def cost(self, z: Array, T: float) -> float:
        return float(T * (HASTE + self.quadrature @ (z[:, U] ** 2).sum(-1)))

    def gradient(self, z: Array, T: float) -> tuple[Array, float]:
        dz = np.zeros_like(z)
        dz[:, U] = 2.0 * T * self.quadrature[:, None] * z[:, U]
        return dz, self.cost(z, T) / T

    def constraints(self, z: Array, T: float) -> Array:
        y = self.outputs(z)
        defects = self.D @ z[:, :NX] - T / self.intervals * self.B @ np.hstack([z[:, V], y[:, A]])
        bends = self.D[::2] @ z[:, U]  # of the torques, in the middle of an interval
        return np.concatenate([defects.ravel(), bends.ravel(), y[:, PATH].ravel()])

    def jacobian(self, z: Array, T: float) -> tuple[Array, Array]:
        return self.assembled(T, np.hstack([z[:, V], self.outputs(z)[:, A]]), self.slopes(z))

    def assembled(self, T: float, rates: Array, dy: Array) -> tuple[Array, Array]:
        """The Jacobian with respect to z (m, 21 n) and T (m,), for the rates (n, 16) of the states and dy/dz (n, 12, 21)."""
        n, every = self.n, np.arange(self.n)
        step = -self.B / self.intervals
        rate_slopes = np.concatenate([np.broadcast_to(np.eye(NV, NZ, NV), (n, NV, NZ)), dy[:, A]], axis=1)
        defects = np.einsum("ik,xz->ixkz", self.D, np.eye(NX, NZ)) + T * np.einsum("ik,kxz->ixkz", step, rate_slopes)
        bends = np.einsum("ik,uz->iukz", self.D[::2], np.eye(NU, NZ, NX))
        path = np.zeros((n, NY - NV, n, NZ))
        path[every, :, every] = dy[:, PATH]
        by_z = np.concatenate([rows.reshape(-1, n * NZ) for rows in (defects, bends, path)])
        by_T = np.zeros(len(by_z))
        by_T[: step.shape[0] * NX] = (step @ rates).ravel()
        return by_z, by_T

    def hessian(self, z: Array, T: float, scale: float, multipliers: Array) -> tuple[Array, Array]:
        """Of scale * cost + multipliers . constraints: a block (21, 21) for each node, and its column (n, 21) for T."""
        defects, path = multipliers[: 2 * self.intervals * NX], multipliers[-self.n * (NY - NV) :]
        pull = -self.B.T @ defects.reshape(-1, NX) / self.intervals  # on the rates, by T
        blocks = self.curvature(z, np.hstack([T * pull[:, V], path.reshape(self.n, -1)]))
        blocks[:, range(NX, NZ), range(NX, NZ)] += 2.0 * scale * T * self.quadrature[:, None]
        column = (pull[:, None, V] @ self.slopes(z)[:, A])[:, 0]
        column[:, V] += pull[:, :NV]
        column[:, U] += 2.0 * scale * self.quadrature[:, None] * z[:, U]
        return blocks, column


class Lifting:
    """The whole motion as a nonlinear programme in (z, T) of both phases; see `interior_point.Programme`."""

    def __init__(self, load: float, mode: str = "analytical", intervals: int = 16) -> None:
        self.phases = Phase(0.0, intervals, mode), Phase(load, intervals, mode)
        self.model, n = self.phases[0].model, self.phases[0].n
        self.shape, self.half = (2, n, NZ), n * NZ
        self._bound_unknowns(n)
        self._bound_constraints(n, intervals)
        self.jacobian_pattern, self.hessian_pattern = self._patterns()

    def _bound_unknowns(self, n: int) -> None:
        torques, speeds = np.ones(NU), np.full(NV, SPEED)
        lower, upper = (
            np.tile(np.concatenate([q, sign * speeds, sign * torques]), (2, n, 1))
            for q, sign in ((self.model.lower_position_limit, -1.0), (self.model.upper_position_limit, 1.0))
        )
        for bound in (lower, upper):
            bound[0, 0, :NX] = np.concatenate([on_the_ground(self.model, STANDING), np.zeros(NV)])
            bound[:, -1, V][:, JOINTS] = 0.0  # the pelvis has no choice: the soles are on the ground
            bound[1, -1, JOINTS] = LIFTED
        self.lower = np.concatenate([lower.ravel(), [FASTEST, FASTEST]])
        self.upper = np.concatenate([upper.ravel(), [SLOWEST, SLOWEST]])

    def _bound_constraints(self, n: int, intervals: int) -> None:
        met = np.zeros(intervals * (2 * NX + NU))
        least, most = np.zeros((2, n, NY - NV)), np.full((2, n, NY - NV), np.inf)
        least[0, :, 2], least[1, :, 2] = FRONT
        least[0, -1, 2:] = most[0, -1, 2:] = WEIGHT
        self.least, self.most = (
            np.concatenate([met, path[0].ravel(), met, path[1].ravel(), np.zeros(NX)]) for path in (least, most)
        )

    def _patterns(self) -> tuple[Array, Array]:
        """Where Jacobian and Hessian can differ from zero."""
        rates, dy = np.arange(1.0, self.shape[1] + 1)[:, None] * np.ones(NX), np.ones((self.shape[1], NY, NZ))
        jacobian = self._joined([phase.assembled(np.pi, rates, dy) for phase in self.phases])
        hessian = self._arrow([(np.ones((self.shape[1], NZ, NZ)), np.ones(self.shape[1:]))] * 2)
        return jacobian != 0.0, hessian != 0.0

    def parts(self, x: Array) -> list[tuple[Phase, Array, float]]:
        """Each phase with its nodes z (n, 21) and duration T."""
        return list(zip(self.phases, x[:-2].reshape(self.shape), x[-2:], strict=True))

    def guess(self) -> Array:
        """Through a bent pose, in a second each way, with the torques that would hold each pose."""
        s = np.linspace(0.0, 1.0, self.shape[1])[:, None]
        z = np.zeros(self.shape)
        for phase, nodes, start, end in zip(self.phases, z, (STANDING, BENT), (BENT, LIFTED), strict=True):
            nodes[:, Q] = [on_the_ground(self.model, angles) for angles in start + s**2 * (3 - 2 * s) * (end - start)]
            nodes[:, V] = np.gradient(nodes[:, Q], s[:, 0], axis=0)
            still = np.zeros((len(nodes), NV))
            held = phase.dynamics.inverse_dynamics(nodes[:, Q], still, still, actuated=np.arange(NV) >= NV - NU)
            nodes[:, U] = held.tau[:, JOINTS] / phase.strength
        return np.concatenate([z.ravel(), [1.0, 1.0]])

    def cost(self, x: Array) -> float:
        return sum(phase.cost(z, T) for phase, z, T in self.parts(x))

    def gradient(self, x: Array) -> Array:
        (bend, bend_T), (lift, lift_T) = (phase.gradient(z, T) for phase, z, T in self.parts(x))
        return np.concatenate([bend.ravel(), lift.ravel(), [bend_T, lift_T]])

    def constraints(self, x: Array) -> Array:
        (_, bend, _), (_, lift, _) = self.parts(x)
        link = lift[0, :NX] - bend[-1, :NX]
        return np.concatenate([*(phase.constraints(z, T) for phase, z, T in self.parts(x)), link])

    def jacobian(self, x: Array) -> Array:
        return self._joined([phase.jacobian(z, T) for phase, z, T in self.parts(x)])

    def _joined(self, parts: list[tuple[Array, Array]]) -> Array:
        """The Jacobian of the whole from those of both phases."""
        m, half = len(parts[0][0]), self.half
        J = np.zeros((2 * m + NX, 2 * half + 2))
        for k, (by_z, by_T) in enumerate(parts):
            J[k * m : (k + 1) * m, k * half : (k + 1) * half], J[k * m : (k + 1) * m, 2 * half + k] = by_z, by_T
        J[2 * m :, half : half + NX], J[2 * m :, half - NZ : half - NU] = np.eye(NX), -np.eye(NX)
        return J

    def hessian(self, x: Array, scale: float, multipliers: Array) -> Array:
        shares = multipliers[:-NX].reshape(2, -1)
        return self._arrow(
            [phase.hessian(z, T, scale, share) for (phase, z, T), share in zip(self.parts(x), shares, strict=True)]
        )

    def _arrow(self, parts: list[tuple[Array, Array]]) -> Array:
        """The Hessian of the whole: blocks on its diagonal, and a row and a column for each duration."""
        nodes, half = np.arange(self.shape[1]), self.half
        H = np.zeros((2 * half + 2, 2 * half + 2))
        for k, (blocks, column) in enumerate(parts):
            own = slice(k * half, (k + 1) * half)
            diagonal = np.zeros((len(nodes), NZ, len(nodes), NZ))
            diagonal[nodes, :, nodes] = blocks
            H[own, own] = diagonal.reshape(half, half)
            H[own, 2 * half + k] = H[2 * half + k, own] = column.ravel()
        return H


# ------------------------------------------------------------------------------------------------------------- picture

SKELETON = "sole", "ankle", "knee", "hip", "shoulder", "elbow", "hand"
POSES, SPACING = 6, 0.7  # m


def skeletons(model: sl.Model, q: Array) -> Array:
    """Where the joints of poses q (..., 8) are in the plane (..., 7, 2) [m], from the sole to the hand."""
    return np.stack([sl.frame_placement(model, q, name)[..., [0, 2], 3] for name in SKELETON], axis=-2)


def draw(axes: Any, model: sl.Model, q: Array, weight: Array | None) -> None:
    """Some of the poses q (n, 8) side by side, and the weight: where it lies (2,) [m], or in the hand."""
    shown = q[np.linspace(0, len(q) - 1, POSES).round().astype(int)]
    for shift, body in zip(np.arange(POSES) * SPACING, skeletons(model, shown), strict=True):
        x, z = body[:, 0] + shift, body[:, 1]
        axes.plot([shift + HEEL, shift + TOE], [0.0, 0.0], color="black", linewidth=3.0)
        axes.plot(x, z, color="#2f6fb7", linewidth=2.5, marker="o", markersize=3.5)
        axes.plot(1.25 * x[4] - 0.25 * x[3], 1.25 * z[4] - 0.25 * z[3], color="#2f6fb7", marker="o", markersize=9.0)
        lies = (x[-1], z[-1]) if weight is None else (weight[0] + shift, weight[1])
        axes.plot(*lies, color="#c0504d", marker="s", markersize=7.0)
    axes.set(aspect="equal", xlim=(-0.3, POSES * SPACING - 0.2), ylim=(-0.03, 1.65), xticks=[], ylabel="height [m]")
    axes.spines[["top", "right", "bottom"]].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description="A human bends down, takes a weight and lifts it.")
    parser.add_argument("--load", type=float, default=10.0, help="mass of the weight [kg]")
    parser.add_argument(
        "--mode", default="analytical", choices=("analytical", "ad", "fd", "fdc"), help="of derivatives"
    )
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where the picture goes")
    options = parser.parse_args()

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from examples.interior_point import minimise

    lifting = Lifting(options.load, options.mode)
    found = minimise(lifting, lifting.guess())
    print(
        f"{found.status} after {found.iterations} iterations, {found.seconds:.1f} s; cost {lifting.cost(found.x):.4f}"
    )
    figure, panels = plt.subplots(2, 1, figsize=(8, 8), layout="constrained")
    for axes, (phase, z, T), weight in zip(panels, lifting.parts(found.x), (WEIGHT, None), strict=True):
        draw(axes, phase.model, z[:, Q], weight)
        axes.set_title(f"{'bending' if weight is not None else 'lifting'}, {T:.2f} s")
    options.folder.mkdir(exist_ok=True)
    figure.savefig(options.folder / "lifting.png", dpi=130)
    print(f"wrote {options.folder / 'lifting.png'}")


if __name__ == "__main__":
    main()
