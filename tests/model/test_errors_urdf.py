"""What `load_urdf` says about files that are not URDF, or describe no tree of bodies."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from saltus.model import ModelError, load_urdf
from tests.model.robots import INERTIAL, LIMIT, MALFORMED, ORIGIN, ROBOTS, joint, link, robot, write


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_robots(name: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_urdf(ROBOTS / name)
    assert name in str(caught.value) and MALFORMED[name] in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nothing\.urdf: cannot be read: No such file"):
        load_urdf(tmp_path / "nothing.urdf")


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is a directory"):
        load_urdf(tmp_path)


def pair(inside: str = ORIGIN + LIMIT, kind: str = "revolute", child: str = INERTIAL) -> str:
    return robot(link("a"), link("b", child), joint("j", "a", "b", kind, inside))


MASS = '<mass value="1"/>'
INERTIA = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
BROKEN = {
    "empty": ("  \n", "is empty"),
    "binary": ("\0\1\2", "not well-formed XML"),
    "not XML": ("hello", "not well-formed XML"),
    "truncated": (pair()[:-30], "not well-formed XML"),
    "another root": ("<sdf/>", "root element is <sdf>, expected <robot>"),
    "no link": (robot(), "there is no link"),
    "unnamed robot": ("<robot><link name='a'/></robot>", "<robot> has no attribute 'name'"),
    "unnamed link": (robot("<link/>"), "<link> has no attribute 'name'"),
    "empty link name": (robot(link("")), "<link> has no attribute 'name'"),
    "two links": (robot(link("a"), link("a")), "two links 'a'"),
    "two joints": (
        robot(link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("j", "b", "c")),
        "two joints 'j'",
    ),
    "joint without a type": (
        robot(link("a"), '<joint name="j"><parent link="a"/><child link="a"/></joint>'),
        "<joint> has no attribute 'type'",
    ),
    "two roots": (robot(link("a"), link("b"), link("c"), joint("j", "a", "b")), "2 root links, expected one: a, c"),
    "cycle": (robot(link("a"), link("b"), joint("j", "a", "b"), joint("k", "b", "a")), "form a cycle"),
    "cycle beside the root": (
        robot(link("r"), link("a"), link("b"), joint("j", "a", "b"), joint("k", "b", "a")),
        "form a cycle, or hang below one: a, b",
    ),
    "joint to itself": (robot(link("r"), link("a"), joint("j", "a", "a")), "form a cycle"),
    "closed loop": (
        robot(link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("k", "b", "c"), joint("l", "a", "c")),
        "link 'c' is the child of two joints, 'k' and 'l'",
    ),
    "missing parent link": (robot(link("b"), joint("j", "a", "b")), "'j': its parent link 'a' does not exist"),
    "missing child link": (robot(link("a"), joint("j", "a", "b")), "'j': its child link 'b' does not exist"),
    "no parent": (
        robot(link("a"), '<joint name="j" type="fixed"><child link="a"/></joint>'),
        "joint 'j', line 1: <joint> has no <parent>",
    ),
    "unknown joint type": (pair(kind="ball"), "joint 'j' has the unknown type 'ball', expected one of revolute"),
    "joint called universe": (
        robot(link("a"), link("b"), joint("universe", "a", "b")),
        "joint 'universe': its name is that of another joint",
    ),
    "revolute without limit": (pair(inside=""), "joint 'j' is revolute but has no <limit>"),
    "limit without effort": (pair('<limit velocity="1"/>'), "<limit> has no attribute 'effort'"),
    "lower > upper": (
        pair('<limit lower="1" upper="-1" effort="1" velocity="1"/>'),
        r"joint 'j': its lower limit \[1.0\] is above its upper limit \[-1.0\]",
    ),
    "NaN limit": (pair('<limit lower="nan" effort="1" velocity="1"/>'), "<limit> has lower='nan'"),
    "negative effort": (pair('<limit effort="-1" velocity="1"/>'), "effort_limit of joint 'j' is .* negative"),
    "negative damping": (pair(LIMIT + '<dynamics damping="-1"/>'), "damping of joint 'j' is .* negative"),
    "NaN origin": (pair('<origin xyz="0 nan 0"/>' + LIMIT), "joint 'j', line 1: <origin> has xyz='0 nan 0'"),
    "infinite origin": (pair('<origin rpy="0 inf 0"/>' + LIMIT), "rpy='0 inf 0', expected 3 finite numbers"),
    "two numbers": (pair('<origin xyz="0 1"/>' + LIMIT), "xyz='0 1', expected 3 finite numbers"),
    "no numbers": (pair('<origin xyz=""/>' + LIMIT), "xyz='', expected 3 finite numbers"),
    "decimal comma": (pair('<origin xyz="0,5 0 0"/>' + LIMIT), "xyz='0,5 0 0', expected 3 finite numbers"),
    "quaternion": (pair('<origin quat_xyzw="0 0 0 1"/>' + LIMIT), "quat_xyzw, which is not supported"),
    "axis without xyz": (pair("<axis/>" + LIMIT), "<axis> has no attribute 'xyz'"),
    "zero axis": (pair('<axis xyz="0 0 0"/>' + LIMIT), "axis of joint 'j' is .* expected a direction"),
    "NaN mass": (pair(child=f'<inertial><mass value="nan"/>{INERTIA}</inertial>'), "link 'b', .*value='nan'"),
    "negative mass": (pair(child=f'<inertial><mass value="-1"/>{INERTIA}</inertial>'), "body 'b': its mass is -1.0"),
    "no mass": (pair(child=f"<inertial>{INERTIA}</inertial>"), "link 'b', line 1: <inertial> has no <mass>"),
    "no inertia": (pair(child=f"<inertial>{MASS}</inertial>"), "<inertial> has no <inertia>"),
    "no ixy": (pair(child=f'<inertial>{MASS}<inertia ixx="1"/></inertial>'), "<inertia> has no attribute 'ixy'"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_file(tmp_path: Path, case: str) -> None:
    text, message = BROKEN[case]
    path = write(tmp_path, text)
    with pytest.raises(ModelError, match=message) as caught:
        load_urdf(path)
    assert str(caught.value).startswith(str(path))


def test_floating_base_needs_its_name(tmp_path: Path) -> None:
    path = write(tmp_path, robot(link("a"), link("b"), joint("root_joint", "a", "b")))
    assert load_urdf(path).nv == 1
    with pytest.raises(ModelError, match="joint 'root_joint': its name is that of another joint"):
        load_urdf(path, floating_base=True)


FOLLOW = '<mimic joint="k"/>'
BROKEN_MIMICS = {
    "itself": (pair(LIMIT + '<mimic joint="j"/>'), "joint 'j': it mimics itself"),
    "nobody": (pair(LIMIT + FOLLOW), "joint 'j': it mimics 'k', but there is no such joint"),
    "NaN ratio": (pair(LIMIT + '<mimic joint="k" multiplier="nan"/>'), "<mimic> has multiplier='nan'"),
    "no name": (pair(LIMIT + "<mimic/>"), "<mimic> has no attribute 'joint'"),
    "planar": (pair(FOLLOW, "planar"), "a PLANAR joint cannot mimic"),
    "continuous and revolute": (
        robot(*map(link, "abc"), joint("j", "a", "b", inside=LIMIT + FOLLOW), joint("k", "b", "c", "continuous")),
        r"joint 'j' \(REVOLUTE\) cannot mimic 'k' \(CONTINUOUS\)",
    ),
    "each other": (
        robot(
            *map(link, "abc"),
            joint("j", "a", "b", inside=LIMIT + FOLLOW),
            joint("k", "b", "c", inside=LIMIT + '<mimic joint="j"/>'),
        ),
        "joint 'j': it mimics itself, by way of j, k",
    ),
}


@pytest.mark.parametrize("case", BROKEN_MIMICS)
def test_broken_mimic(tmp_path: Path, case: str) -> None:
    text, message = BROKEN_MIMICS[case]
    with pytest.raises(ModelError, match=message):
        load_urdf(write(tmp_path, text), mimic=True)


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    """A billion laughs: each entity is ten of the one before."""
    laughs = '<!ENTITY l0 "ha">' + "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
    for use in (link("&l11;"), link("a", "&l11;"), link("a")):
        start = time.process_time()
        with pytest.raises(ModelError, match="entities|not well-formed"):
            load_urdf(write(tmp_path, f"<!DOCTYPE robot [{laughs}]>" + robot(use)))
        assert time.process_time() - start < 5


def test_external_entities_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("xyzzy")
    for kind in ("", "% "):
        doctype = f'<!DOCTYPE robot [<!ENTITY {kind}leak SYSTEM "{secret.as_uri()}">]>'
        with pytest.raises(ModelError, match="entities") as caught:
            load_urdf(write(tmp_path, doctype + robot(link("a", "&leak;" if not kind else ""))))
        assert "xyzzy" not in str(caught.value)


def test_an_external_dtd_is_not_read(tmp_path: Path) -> None:
    """A plain DOCTYPE is harmless: what it points to is never opened."""
    path = write(tmp_path, '<!DOCTYPE robot SYSTEM "missing.dtd">' + pair())
    assert load_urdf(path).nv == 1
