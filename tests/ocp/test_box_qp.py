"""Bounds of controls at each node against a dense solver of quadratic programs."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from scipy import sparse

from saltus.ocp.horizon import Horizon
from saltus.ocp.problem import Expansion
from saltus.ocp.riccati import _box_backward


def dense(H, q, lower, upper):
    m = len(q)
    A = sparse.csc_matrix(np.vstack([np.eye(m), -np.eye(m)]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    cone = [clarabel.NonnegativeConeT(2 * m)]
    return np.array(
        clarabel.DefaultSolver(
            sparse.triu(sparse.csc_matrix(H), format="csc"), q, A, np.concatenate([upper, -lower]), cone, settings
        )
        .solve()
        .x
    )


@pytest.mark.parametrize("m", [1, 2, 3, 5, 8, 12])
def test_one_node(m):
    draw = np.random.default_rng(m)
    count, n = 40, 2
    half = draw.normal(size=(count, m, m))
    H = half @ half.swapaxes(-1, -2) + 0.01 * np.eye(m)
    q = draw.normal(size=(count, m))
    lower, upper = -draw.uniform(0, 0.5, (count, m)), draw.uniform(0, 0.5, (count, m))
    lower[:, 0] = 0.1 * (np.arange(count) % 3 - 1)  # some begin outside
    upper[:, 0] = lower[:, 0] + 0.3
    lead = (count, 1)
    Lxu = draw.normal(size=(*lead, n, m))
    nodes = Expansion(
        np.zeros((*lead, n, n)), np.zeros((*lead, n, m)), np.zeros((count, 2, n)), q[:, None],
        np.ones((count, 2, 1, 1)) * np.eye(n), Lxu, H[:, None],
    )  # fmt: skip
    found = _box_backward.call(
        Horizon(1, n, n, m),
        (*nodes[:7], np.zeros((count, 2, n)), np.ones(1), np.zeros(2), lower[:, None], upper[:, None]),
    )
    K, k, Qu, Vx, Vxx = found[0][:, 0], found[1][:, 0], found[2][:, 0], found[3][:, 0], found[4][:, 0]
    held = 0
    for i in range(count):
        x = dense(H[i], q[i], lower[i], upper[i])
        assert np.abs(-k[i] - x).max() < 2e-6  # as far as that one is right
        slope = q[i] - H[i] @ k[i]
        tight = (Qu[i] == 0) & (slope != 0)
        held += tight.sum()
        free = ~tight
        assert np.abs(slope[free]).max(initial=0) < 1e-10  # this is what makes it right
        assert (-k[i] >= lower[i]).all() and (-k[i] <= upper[i]).all()
        assert (np.where(slope[tight] > 0, -k[i][tight] == lower[i][tight], -k[i][tight] == upper[i][tight])).all()
        assert (K[i][tight] == 0).all()
        ff = np.ix_(free, free)
        gain = np.linalg.solve(H[i][ff], Lxu[i, 0].T[free])
        assert np.abs(K[i][free] - gain).max(initial=0) < 1e-9 * max(1, np.abs(gain).max(initial=0))
        assert np.allclose(Vx[i], -Lxu[i, 0] @ k[i], atol=1e-9)
        assert np.allclose(Vxx[i], np.eye(n) - Lxu[i, 0] @ K[i], atol=1e-8)
    assert held > count / 4
