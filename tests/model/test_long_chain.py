"""A chain of 10 000 links loads and computes: nothing recurses along it, nothing takes the square of its length in time."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import saltus as sl
from tests.closeness import assert_close, error

LINKS = 10_000
INERTIAL = (
    '<inertial><origin xyz="0 0 -0.05"/><mass value="0.1"/>'
    '<inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-5"/></inertial>'
)


def chain_urdf(joints: int) -> str:
    links = "".join(f'<link name="link_{i}">{INERTIAL}</link>' for i in range(joints + 1))
    hinges = "".join(
        f'<joint name="joint_{i:05d}" type="continuous"><parent link="link_{i}"/><child link="link_{i + 1}"/>'
        f'<origin xyz="0 0 -0.1"/><axis xyz="0 1 0"/></joint>'
        for i in range(joints)
    )
    return f'<robot name="chain">{links}{hinges}</robot>'


def chain_sdf(joints: int) -> str:
    """Every link placed relative to the one before."""
    links = "".join(
        f'<link name="l{i}">' + (f'<pose relative_to="l{i - 1}">0 0 -0.1 0 0 0</pose>' if i else "") + "</link>"
        for i in range(joints + 1)
    )
    hinges = "".join(
        f'<joint name="j{i}" type="revolute"><parent>l{i}</parent><child>l{i + 1}</child>'
        "<axis><xyz>0 1 0</xyz></axis></joint>"
        for i in range(joints)
    )
    return f'<sdf version="1.9"><model name="chain">{links}{hinges}</model></sdf>'


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sl.Model]:
    path = tmp_path_factory.mktemp("chain") / "chain.urdf"
    path.write_text(chain_urdf(LINKS))
    start = time.process_time()
    model = sl.load_urdf(path)
    assert time.process_time() - start < 60.0  # seconds on an idle machine
    yield model


@pytest.mark.slow
def test_dynamics(chain: sl.Model) -> None:
    assert (chain.nv, chain.nq) == (LINKS, 2 * LINKS)
    q, rng = sl.random_configuration(chain, 0), np.random.default_rng(1)
    v, a = rng.normal(size=(2, chain.nv)) * 0.1
    tau = sl.rnea(chain, q, v, a)
    assert np.isfinite(tau).all()
    found = sl.aba(chain, q, v, tau)
    # Motions are ill-conditioned in so long a chain; the torques that they take are not.
    assert_close(sl.rnea(chain, q, v, found), tau, 1e-10)
    packets = sl.rnea(chain, np.tile(q, (9, 1)), v, a)
    assert error(packets[8], tau) < 1e-12
    assert_close(sl.center_of_mass(chain, q)[1], np.zeros(()), 1e-12, scale=1.0)
    J = sl.frame_jacobian(chain, q, f"link_{LINKS}", "world")
    assert np.array_equal(J[3:, 0], [0, 1, 0]) and J.shape == (6, LINKS)


@pytest.mark.slow
def test_inertia_matrix(chain: sl.Model) -> None:
    """800 MB, and no more: one sample of a large model takes no packet's memory."""
    q, rng = chain.neutral(), np.random.default_rng(1)
    a = rng.normal(size=chain.nv)
    M = sl.crba(chain, q)
    torques = sl.rnea(chain, q, np.zeros(chain.nv), a) - sl.gravity(chain, q)
    assert_close(M @ a, torques, 1e-10)


@pytest.mark.slow
def test_wrong_inputs_of_a_large_model(chain: sl.Model) -> None:
    """They go the same way as those of a small one, without its shortcuts."""
    v = np.zeros(LINKS)
    v[5000] = np.nan
    with pytest.raises(ValueError, match=r"^rnea: v\[5000\] is nan, expected finite"):
        sl.rnea(chain, chain.neutral(), v, v)
    q = chain.neutral()
    q[2 * 7000] = 2.0
    with pytest.raises(
        ValueError, match="^gravity: q: the cosine and sine of joint 'joint_07000', .* norm 2, expected 1"
    ):
        sl.gravity(chain, q)


@pytest.mark.slow
def test_copies_and_files(chain: sl.Model, tmp_path: Path) -> None:
    assert pickle.loads(pickle.dumps(chain)).nv == LINKS
    sl.save_urdf(chain, tmp_path / "copy.urdf")
    assert sl.load_urdf(tmp_path / "copy.urdf").total_mass == pytest.approx(chain.total_mass)


@pytest.mark.slow
def test_sdf(tmp_path: Path) -> None:
    path = tmp_path / "chain.sdf"
    path.write_text(chain_sdf(LINKS))
    start = time.process_time()
    model = sl.load_sdf(path, floating_base=False)
    assert time.process_time() - start < 60.0
    assert model.nv == LINKS
    tip = sl.frame_placement(model, model.neutral(), f"l{LINKS}")
    assert_close(tip[:3, 3], np.array([0, 0, -0.1 * LINKS]), 1e-9)


@pytest.mark.parametrize("depth", [1_000, 10_000])
def test_deep_mjcf_is_refused(tmp_path: Path, depth: int) -> None:
    """Bodies lie in bodies: MuJoCo itself stops at some hundreds of levels, the reader of XML at 2048, and they say so."""
    path = tmp_path / "chain.xml"
    opened = "<body><joint/><geom size='1'/>" * depth
    path.write_text(f"<mujoco><worldbody>{opened}{'</body>' * depth}</worldbody></mujoco>")
    with pytest.raises(sl.ModelError, match=r"chain\.xml: .*[Dd]e(ep|pth)"):
        sl.load_mjcf(path)


def test_more_joints_than_can_be_counted() -> None:
    """The square of their number must fit 32 bits."""
    small = sl.random_model(0, 1, ["translation"])

    class Huge:
        name, nv = "huge", 50_000

    from saltus.model.tree import TREE

    assert TREE.measure(small)["nv"] == 3
    with pytest.raises(sl.ModelError, match="model 'huge' has 50000 degrees of freedom, expected at most 46340"):
        TREE.measure(Huge())


def test_large_models_with_one_sample() -> None:
    """Too large for the stack, yet small enough for a packet: both ways give the same."""
    model = sl.random_model(3, 600, ["revolute", "prismatic"])
    q, rng = sl.random_configuration(model, 0), np.random.default_rng(2)
    v, tau = rng.normal(size=(2, model.nv))
    for function, inputs in ((sl.rnea, (q, v, tau)), (sl.crba, (q,))):
        one = function(model, *inputs)
        many = function(model, *(np.tile(x, (2, 1)) for x in inputs))
        assert_close(one, many[1], 1e-12)
        out = np.full_like(one, np.nan)
        assert function(model, *inputs, out=out) is out and np.array_equal(out, one)
    out = v.copy()
    assert np.array_equal(sl.rnea(model, q, out, tau, out=out), sl.rnea(model, q, v, tau))
