"""The backward pass against NumPy: all sizes, regularisation, gaps, masks, batches, and nodes that are to blame."""

from __future__ import annotations

import numpy as np
import pytest

from saltus.ocp.horizon import Horizon
from saltus.ocp.problem import Expansion
from saltus.ocp.riccati import _backward, _box_backward
from tests.ocp.problems import riccati

SIZES = [(1, 1, 1), (3, 2, 1), (4, 3, 2), (3, 4, 4), (5, 5, 3), (4, 7, 9), (6, 13, 8), (8, 36, 12)]


def some_nodes(T, n, m, seed=0, shape=()):
    draw = np.random.default_rng(seed)
    half = draw.normal(size=(*shape, T + 1, n + m, n + m))
    L = half @ half.swapaxes(-1, -2) + np.eye(n + m)
    nodes = Expansion(
        np.eye(n) + 0.3 * draw.normal(size=(*shape, T, n, n)) / np.sqrt(n), draw.normal(size=(*shape, T, n, m)),
        draw.normal(size=(*shape, T + 1, n)), draw.normal(size=(*shape, T, m)), L[..., :n, :n], L[..., :-1, :n, n:],
        L[..., :-1, n:, n:],
    )  # fmt: skip
    return nodes, draw.normal(size=(*shape, T + 1, n))


def close(found, truth, tolerance=1e-12):
    for x, y in zip(found, truth, strict=True):
        assert np.abs(x - y).max() <= tolerance * np.abs(y).max()


@pytest.mark.parametrize("T, n, m", SIZES)
def test_it_is_riccatis(T, n, m):
    nodes, gaps = some_nodes(T, n, m)
    found = _backward.call(Horizon(T, n, n, m), (*nodes[:7], gaps, np.ones(T), np.array([1e-2, 3e-2])))
    K, k, Vx, Vxx = riccati(nodes, gaps, 1e-2, 3e-2)
    close((found[0], found[1], found[3], found[4]), (K, k, Vx, Vxx))
    close([found[5]], [np.einsum("tij,tj->ti", Vxx, gaps)])
    assert (found[4] == found[4].swapaxes(-1, -2)).all()
    gain = np.einsum("ti,ti->", found[2], k)
    slope, curve = np.einsum("ti,ti->", Vx, gaps), np.einsum("ti,tij,tj->", gaps, Vxx, gaps)
    close([found[6]], [[gain, -gain, gain - slope, curve - gain, -1]])


@pytest.mark.parametrize("T, n, m", SIZES[2:5])
def test_bounds_far_away_are_none(T, n, m):
    nodes, gaps = some_nodes(T, n, m)
    inputs = (*nodes[:7], gaps, np.ones(T), np.array([1e-2, 3e-2]))
    far = np.full((T, m), 1e30)
    found = _box_backward.call(Horizon(T, n, n, m), (*inputs, -far, far))
    close(found, _backward.call(Horizon(T, n, n, m), inputs))


def test_packets_have_what_one_has():
    T, n, m = 5, 5, 3
    nodes, gaps = some_nodes(T, n, m, shape=(11,))
    rest, far = (gaps, np.ones(T), np.array([1e-9, 1e-9])), 0.1 * np.ones((T, m))
    for algorithm, more in ((_backward, ()), (_box_backward, (-far, far))):
        many = algorithm.call(Horizon(T, n, n, m), (*nodes[:7], *rest, *more))
        for i in (0, 3, 10):
            one = algorithm.call(Horizon(T, n, n, m), (*(x[i] for x in nodes[:7]), gaps[i], *rest[1:], *more))
            close([x[i] for x in many], one)


def test_controls_that_do_nothing():
    T, n, m = 6, 5, 3
    nodes, gaps = some_nodes(T, n, m)
    acts = np.array([1.0, 0, 1, 1, 0, 1])
    found = _backward.call(Horizon(T, n, n, m), (*nodes[:7], gaps, acts, np.array([1e-9, 1e-9])))
    assert (found[0][acts == 0] == 0).all() and (found[1][acts == 0] == 0).all()
    cut = nodes._replace(
        Fu=nodes.Fu * acts[:, None, None], Lu=nodes.Lu * acts[:, None], Lxu=nodes.Lxu * acts[:, None, None],
        Luu=np.where(acts[:, None, None] > 0, nodes.Luu, np.eye(m)),
    )  # fmt: skip
    close((found[3], found[4]), riccati(cut, gaps, 1e-9, 1e-9)[2:])


@pytest.mark.parametrize("shape", [(), (9,)])
def test_the_node_to_blame(shape):
    T, n, m = 6, 5, 3
    nodes, gaps = some_nodes(T, n, m, shape=shape)
    for culprit in (4, 0):
        nodes.Luu[..., culprit, :, :] = -1e6 * np.eye(m)
        found = _backward.call(Horizon(T, n, n, m), (*nodes[:7], gaps, np.ones(T), np.array([1e-9, 1e-9])))
        assert (found[6][..., 4] == 4).all()  # the first one from behind
    nodes, gaps = some_nodes(T, n, m, shape=shape)
    nodes.Luu[..., 2, :, :] = 0
    nodes.Fu[..., 2, :, :] = 0
    found = _backward.call(Horizon(T, n, n, m), (*nodes[:7], gaps, np.ones(T), np.array([1e-9, 0.0])))
    assert (found[6][..., 4] == 2).all()


def test_a_value_function_that_is_lost():
    T, n, m = 30, 2, 1
    nodes, gaps = some_nodes(T, n, m)
    nodes = nodes._replace(Fx=np.tile(1e4 * np.eye(n), (T, 1, 1)), Fu=np.zeros((T, n, m)))
    found = _backward.call(Horizon(T, n, n, m), (*nodes[:7], gaps, np.ones(T), np.array([1e-9, 1e-9])))
    assert 0 < found[6][4] < T


def test_single_precision():
    T, n, m = 5, 5, 3
    nodes, gaps = some_nodes(T, n, m)
    inputs = [np.asarray(x, np.float32) for x in (*nodes[:7], gaps, np.ones(T), np.array([1e-2, 3e-2]))]
    found = _backward.call(Horizon(T, n, n, m), tuple(inputs))
    assert found[0].dtype == np.float32
    close((found[0], found[1]), riccati(nodes, gaps, 1e-2, 3e-2)[:2], 1e-4)


@pytest.mark.parametrize("field", range(7))
@pytest.mark.parametrize("shape", [(), (9,)])
def test_what_is_not_finite_is_blamed(field, shape):
    """It is the kernel that tells: its first inputs are not looked through."""
    T, n, m = 6, 5, 3
    for bad in (np.nan, np.inf):
        nodes, gaps = some_nodes(T, n, m, shape=shape)
        nodes[field][(*[slice(None)] * len(shape), 2, 0)] = bad
        rest, far = (gaps, np.ones(T), np.array([1e-9, 1e-9])), np.ones((T, m))
        for algorithm, more in ((_backward, ()), (_box_backward, (-far, far))):
            found = algorithm.call(Horizon(T, n, n, m), (*nodes[:7], *rest, *more))
            assert (found[6][..., 4] == 2).all()
