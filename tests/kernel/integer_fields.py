"""A kernel that keeps integers in its workspace, beside numbers and alone; run as a program, it says whether it is right."""

from __future__ import annotations

import numpy as np

import saltus as sl
from saltus.kernel import Layout, kernel, ld, st
from saltus.kernel.forward import push_forward
from saltus.model.tree import algorithm
from saltus.spatial.algebra import Vec3

WORK = Layout(
    one={"total": int},
    nj={"count": int},
    nv={"before": int, "value": None, "place": int, "point": Vec3, "negative": int},
)


@kernel
def smaller_before(tree, n, k):
    """How many of the integers are to stand before number k."""
    found = 0
    for j in range(tree.nv):
        if n[j] < n[k] or (n[j] == n[k] and j < k):
            found += 1
    return found


@algorithm(inputs={"n": "6 int", "v": "nv"}, outputs={"y": "nv", "z": "nv"}, work=WORK)
def _ranked(tree, n, v, w, y, z):
    """Into y, in the order of n: each number, times how many of n leave the same by nj, and again times itself; into z, as
    many halves of it as n is large, the total of n, and whether n is negative."""
    st(w.total, 0, 0)
    for i in range(tree.nj):
        w.count[i] = 0
    for k in range(tree.nv):
        w.value[k], w.point[k] = ld(v, k), Vec3(ld(v, k), 2.0 * ld(v, k), 0.0)
        w.before[k], w.place[k], w.negative[k] = -n[k], smaller_before(tree, n, k), n[k] < 0
        w.count[n[k] % tree.nj] += 1
        st(w.total, 0, ld(w.total, 0) + n[k])
    for k in range(tree.nv):
        same = w.count[n[k] % tree.nj]
        w.value[k] *= same
        st(y, w.place[k], w.value[k] + w.point[k].y * w.before[k])
        halves = 0.0 * ld(v, k)
        for _ in range(max(0, -w.before[k])):
            halves = halves + 0.5 * ld(v, k)
        st(z, k, halves + w.total[0] + (100.0 if w.negative[k] else 0.0))


def right(n: np.ndarray, v: np.ndarray, nj: int) -> tuple[np.ndarray, np.ndarray]:
    """The same by NumPy."""
    order, same = np.argsort(n, kind="stable"), (n[:, None] % nj == n % nj).sum(0)
    z = 0.5 * v * np.maximum(n, 0) + n.sum() + 100.0 * (n < 0)
    return (v * same - 2.0 * v * n)[..., order], z


MODEL = sl.random_model(seed=0, bodies=6, kinds=["revolute"])
INTEGERS = [np.array(n, np.int32) for n in ((3, -2, 0, 5, 7, -7), (0, 0, 0, 0, 0, 0), (-90, 3, 2, 1, -1, 3))]
SHAPES = ((6,), (1, 6), (40, 6), (700, 6))


def numbers(shape: tuple[int, ...], dtype: type = np.float64) -> np.ndarray:
    """Whole ones, with which all arithmetic here is exact."""
    return np.random.default_rng(1).integers(-9, 10, shape).astype(dtype)


def is_right(model: sl.Model, n: np.ndarray, v: np.ndarray) -> bool:
    """Twice: the first call makes the short way."""
    found = [_ranked.call(model, (n, v)) for _ in range(2)]
    return all(
        np.array_equal(a, b) for pair in found for a, b in zip(pair, right(n, v, len(model.joints)), strict=True)
    )


def slopes_are_right(n: np.ndarray, shape: tuple[int, ...]) -> bool:
    """What is linear has the slopes that it has along its direction from nothing."""
    v, dv = numbers(shape), numbers((*shape[:-1], 9, 6))[..., ::-1]
    values, slopes = push_forward(_ranked, MODEL, (n, v), (None, dv))
    nothing = right(n, 0.0 * v, 7)
    wanted = [a - b[..., None, :] for a, b in zip(right(n, dv, 7), nothing, strict=True)]
    return all(map(np.array_equal, [*values, *slopes], [*right(n, v, 7), *wanted]))


if __name__ == "__main__":
    for n in INTEGERS:
        for shape in SHAPES:
            print(*(is_right(MODEL, n, numbers(shape, dtype)) for dtype in (np.float64, np.float32)))
            print(slopes_are_right(n, shape))
