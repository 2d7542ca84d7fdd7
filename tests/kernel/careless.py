"""A kernel with the faults that `SALTUS_POISON` is to find, run in every way; prints, for each, whether they show as NaN."""

from __future__ import annotations

import numpy as np

import saltus as sl
from saltus.kernel import Layout, ld, st
from saltus.kernel.forward import push_forward
from saltus.model.tree import algorithm


@algorithm(inputs={"v": "nv"}, outputs={"x": "nv", "y": "nv"}, work=Layout(nv={"memory": None}))
def _careless(tree, v, w, x, y):
    """Leaves the last entry of x unwritten, and has y from memory that nobody wrote."""
    for k in range(tree.nv - 1):
        st(x, k, ld(v, k))
    for k in range(tree.nv):
        st(y, k, w.memory[k])
        w.memory[k] = ld(v, k)


def shows(x: np.ndarray, y: np.ndarray) -> bool:
    return bool(np.isnan(x[..., -1]).all() and np.isnan(y).all() and (x[..., :-1] == 1.0).all())


if __name__ == "__main__":
    model = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    for dtype in (np.float64, np.float32):
        for shape in ((3,), (1, 3), (40, 3), (700, 3)):
            v = np.ones(shape, dtype)
            for _ in range(2):  # the first call makes the short way
                print(shows(*_careless.call(model, (v,))))
            out = np.zeros_like(v), np.zeros_like(v)
            _careless.call(model, (v,), out)
            print(shows(*out))
    for shape in ((3,), (40, 3)):
        outputs, slopes = push_forward(_careless, model, (np.ones(shape),), (np.ones((*shape[:-1], 1, 3)),))
        print(shows(*outputs) and shows(*slopes))
    answer = _careless.push(model, (np.ones(3),), (np.ones(3),))
    print(answer.__class__ is int or (shows(*answer[0]) and shows(*answer[1])))
