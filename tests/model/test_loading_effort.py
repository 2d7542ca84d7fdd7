"""Loading takes effort in proportion to the file: of four times as much, not more than five times as many calls; or a limit
is named."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import saltus as sl

LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'


def urdf(inside: str) -> str:
    return f'<robot name="r">{inside}</robot>'


def sdf(inside: str) -> str:
    return f'<sdf version="1.9"><model name="m">{inside}</model></sdf>'


def urdf_chain(count: int, kind: str = "revolute", following: bool = False) -> str:
    links = "".join(f'<link name="l{k}"/>' for k in range(count + 1))
    joints = [
        f'<joint name="j{k}" type="{kind}"><parent link="l{k}"/><child link="l{k + 1}"/>{LIMIT}'
        + (f'<mimic joint="j{k + 1}"/>' if following and k < count - 1 else "")
        + "</joint>"
        for k in range(count)
    ]
    return urdf(links + "".join(joints))


def urdf_star(count: int) -> str:
    links = "".join(f'<link name="l{k}"/>' for k in range(count + 1))
    joint = '<joint name="j{0}" type="fixed"><parent link="l0"/><child link="l{0}"/></joint>'
    return urdf(links + "".join(joint.format(k) for k in range(1, count + 1)))


def urdf_visuals(count: int) -> str:
    visual = (
        '<visual><geometry><mesh filename="m{0}.stl"/></geometry>'
        '<material name="c{0}"><color rgba="1 0 0 1"/></material></visual>'
    )
    return urdf(f'<link name="a">{"".join(visual.format(k) for k in range(count))}</link>')


def sdf_frames(count: int, step: int) -> str:
    """Each attached to the one before, or after; the last one to a link."""
    names = [f"f{k}" for k in range(count)][::step]
    frames = [f'<frame name="{name}" attached_to="{at}"/>' for name, at in zip(names, ["a", *names], strict=False)]
    return sdf('<link name="a"/>' + "".join(sorted(frames)))


def sdf_loose_frames(count: int) -> str:
    return sdf("".join(f'<frame name="f{k}"/>' for k in range(count)) + '<link name="a"/>')


def sdf_chain(count: int) -> str:
    links = "".join(f'<link name="l{k}"/>' for k in range(count + 1))
    joint = '<joint name="j{0}" type="revolute"><parent>l{0}</parent><child>l{1}</child><axis/></joint>'
    return sdf(links + "".join(joint.format(k, k + 1) for k in range(count)))


def mjcf_star(count: int) -> str:
    body = '<body><joint name="j{0}"/><geom size="1"/></body>'
    bodies, motors = (
        "".join(body.format(k) for k in range(count)),
        "".join(f'<motor joint="j{k}"/>' for k in range(count)),
    )
    return f"<mujoco><worldbody>{bodies}</worldbody><actuator>{motors}</actuator></mujoco>"


FILES: dict[str, tuple[str, Callable[[int], str]]] = {
    "urdf chain": ("urdf", urdf_chain),
    "urdf chain that does not move": ("urdf", lambda count: urdf_chain(count, "fixed")),
    "urdf chain of followers": ("mimic", lambda count: urdf_chain(count, following=True)),
    "urdf star": ("urdf", urdf_star),
    "urdf visuals": ("urdf", urdf_visuals),
    "sdf frames": ("sdf", lambda count: sdf_frames(count, 1)),
    "sdf frames backwards": ("sdf", lambda count: sdf_frames(count, -1)),
    "sdf frames attached to nothing": ("sdf", sdf_loose_frames),
    "sdf chain": ("sdf", sdf_chain),
    "mjcf star": ("xml", mjcf_star),
}


def load(path: Path, kind: str) -> sl.Model:
    readers = {"urdf": sl.load_urdf, "mimic": lambda file: sl.load_urdf(file, mimic=True), "sdf": sl.load_sdf}
    return readers.get(kind, sl.load_mjcf)(path)  # type: ignore[operator]


def effort(path: Path, kind: str, text: str) -> int:
    """Calls of functions, which no other work of the machine changes."""
    path.write_text(text)
    profile = cProfile.Profile()
    profile.runcall(load, path, kind)
    return pstats.Stats(profile).total_calls  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("name", FILES)
def test_in_proportion(name: str, tmp_path: Path) -> None:
    kind, write = FILES[name]
    if kind == "xml":
        pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    effort(path, kind, write(2))  # imports
    few, many = (effort(path, kind, write(count)) for count in (60, 240))
    assert many < 5 * few


@pytest.mark.parametrize("kind", ["urdf", "sdf", "xml"])
def test_attributes_are_limited(kind: str, tmp_path: Path) -> None:
    """Who reads a hundred thousand of them may take the square of it."""
    path = tmp_path / "robot.xml"
    for count in (900, 100_000):
        attributes = " ".join(f'a{k}="1"' for k in range(count))
        link = f'<link name="a" {attributes}/>'
        path.write_text({"urdf": urdf(link), "sdf": sdf(link), "xml": f"<mujoco {attributes}/>"}[kind])
        if count == 100_000:
            start = time.process_time()
            with pytest.raises(sl.ModelError, match=r"line 1: <\w+> has 10000\d attributes, expected at most 1000"):
                load(path, kind)
            assert time.process_time() - start < 10.0
        elif kind != "xml":
            assert load(path, kind).nv == 6 * (kind == "sdf")


@pytest.mark.parametrize("kind", ["urdf", "sdf"])
def test_levels_are_limited(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    for depth in (900, 100_000):
        inside = "<x>" * depth + "</x>" * depth + '<link name="a"/>'
        path.write_text(urdf(inside) if kind == "urdf" else sdf(inside))
        if depth == 900:
            assert load(path, kind).nv == 6 * (kind == "sdf")
        else:
            with pytest.raises(sl.ModelError, match="line 1: <x> is nested too deep, expected at most 1000 levels"):
                load(path, kind)


@pytest.mark.slow
def test_twenty_thousand_frames(tmp_path: Path) -> None:
    path = tmp_path / "robot.sdf"
    path.write_text(sdf_frames(20_000, -1))
    start = time.process_time()
    assert len(sl.load_sdf(path).frames) > 20_000
    assert time.process_time() - start < 60.0  # linear it is 3 s, and was 300 s


def test_many_bodies_on_one_joint() -> None:
    """Their names are made up, each once."""
    builder = sl.ModelBuilder()
    joint = builder.add_joint("j", "revolute")
    names = [builder.add_body(joint, 1.0, inertia=[[1, 0, 0], [0, 1, 0], [0, 0, 1]]) for _ in range(2000)]
    model = builder.build()
    assert [model.frames[k].name for k in (names[0], names[1], names[-1])] == ["j_body", "j_body_2", "j_body_2000"]
