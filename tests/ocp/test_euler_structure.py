"""Backward passes that know semi-implicit Euler against those that do not."""

from __future__ import annotations

import numpy as np
import pytest

from saltus.ocp.euler_structure import _euler_backward, _euler_box_backward
from saltus.ocp.horizon import Horizon
from saltus.ocp.riccati import _backward, _box_backward
from tests.ocp.test_backward import close, some_nodes

ROBOTS = [
    (1, 1, ()),
    (2, 1, ()),
    (5, 3, ((1, 3),)),
    (6, 6, ((0, 6),)),
    (7, 2, ((0, 3), (4, 3))),
    (18, 12, ((0, 6),)),
    (23, 17, ()),
]


def euler_nodes(T, nv, m, blocks, impacts=(), shape=()):
    """Nodes whose Fx, Fu have the structure, and A, B, h, steps."""
    draw = np.random.default_rng(nv)
    nodes, gaps = some_nodes(T, 2 * nv, m, shape=shape)
    h = draw.uniform(0.01, 0.1, (*shape, T))
    A = np.tile(np.eye(nv), (*shape, T, 1, 1))
    B = h[..., None, None] * A
    for first, size in blocks:
        here = slice(first, first + size)
        A[..., here, here] += 0.3 * draw.normal(size=(*shape, T, size, size))
        B[..., here, here] += 0.01 * draw.normal(size=(*shape, T, size, size))
    steps = np.ones(T, np.int32)
    steps[list(impacts)] = 0
    change = steps[:, None, None] == 1
    G = np.concatenate([nodes.Fx[..., nv:, :], nodes.Fu[..., nv:, :]], -1)
    upper = B @ G
    upper[..., :nv] += A
    Fx, Fu = nodes.Fx.copy(), nodes.Fu.copy()
    Fx[..., :nv, :] = np.where(change, upper[..., : 2 * nv], Fx[..., :nv, :])
    Fu[..., :nv, :] = np.where(change, upper[..., 2 * nv :], Fu[..., :nv, :])
    empty = np.zeros((*shape, T, 0))
    known = [
        np.concatenate([M[..., f : f + s, f : f + s].reshape(*shape, T, -1) for f, s in blocks], -1)
        if blocks
        else empty
        for M in (A, B)
    ]
    return nodes._replace(Fx=Fx, Fu=Fu), gaps, (*known, h, steps)


@pytest.mark.parametrize("nv, m, blocks", ROBOTS)
def test_it_is_the_same(nv, m, blocks):
    T = 6
    nodes, gaps, euler = euler_nodes(T, nv, m, blocks, impacts=(2,))
    inputs = (*nodes[:7], gaps, np.ones(T), np.array([1e-3, 1e-2]))
    horizon = Horizon(T, 2 * nv, 2 * nv, m, blocks=blocks)
    close(_euler_backward.call(horizon, (*inputs, *euler)), _backward.call(horizon, inputs), 1e-11)
    bounds = -0.1 * np.ones((T, m)), 0.1 * np.ones((T, m))
    truth = _box_backward.call(horizon, (*inputs, *bounds))
    close(_euler_box_backward.call(horizon, (*inputs, *bounds, *euler)), truth, 1e-9)


def test_packets():
    T, nv, m, blocks = 4, 7, 3, ((0, 6),)
    nodes, gaps, euler = euler_nodes(T, nv, m, blocks, impacts=(1,), shape=(9,))
    inputs = (*nodes[:7], gaps, np.ones(T), np.array([1e-3, 1e-2]))
    horizon = Horizon(T, 2 * nv, 2 * nv, m, blocks=blocks)
    close(_euler_backward.call(horizon, (*inputs, *euler)), _backward.call(horizon, inputs), 1e-11)
