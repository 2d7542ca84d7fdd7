"""What `load_mjcf` refuses, most of it before MuJoCo sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

import saltus as sl


def mjcf(inside: str) -> str:
    return f"<mujoco>{inside}</mujoco>"


BODY = '<worldbody><body name="b"><joint name="j"/><geom size="1"/></body></worldbody>'
LAUGHS = '<!ENTITY l0 "ha">' + "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
BROKEN = {
    "empty": ("", "is empty"),
    "urdf": ("<robot/>", "root element is <robot>, expected <mujoco>"),
    "truncated": (mjcf(BODY)[:-12], "not well-formed XML"),
    "entity expansion": (f"<!DOCTYPE mujoco [{LAUGHS}]>" + mjcf("&l11;"), "declares XML entities"),
    "external entity": ('<!DOCTYPE mujoco [<!ENTITY e SYSTEM "file:///x">]>' + mjcf("&e;"), "declares XML entities"),
    "unknown element": (mjcf("<robot/>"), "MuJoCo refuses it: .*unrecognized element.*'robot', line 1"),
    "no mass": (mjcf("<worldbody><body name='b'><joint/></body></worldbody>"), "MuJoCo refuses it: .*mass"),
    "impossible inertia": (
        mjcf("<worldbody><body><joint/><inertial pos='0 0 0' mass='1' diaginertia='1 1 9'/></body></worldbody>"),
        "MuJoCo refuses it: .*inertia",
    ),
    "NaN": (mjcf(BODY.replace('name="b"', 'name="b" pos="0 nan 0"')), "<body> has pos='0 nan 0', expected plain decimal"),
    "infinity": (mjcf(BODY.replace('name="b"', 'name="b" pos="0 inf 0"')), "<body> has pos='0 inf 0', expected finite"),
    "climbing include": (mjcf('<include file="../x.xml"/>'), "line 1: <include>: the path '../x.xml' climbs out of"),
    "absolute include": (mjcf('<include file="/etc/passwd"/>'), "the path '/etc/passwd' climbs out of"),
    "missing include": (mjcf('<include file="x.xml"/>'), "x.xml: cannot be read: No such file"),
    "climbing mesh": (mjcf('<asset><mesh file="../x.stl"/></asset>'), "<mesh>: the path '../x.stl' climbs out of"),
    "climbing folder": (mjcf('<compiler meshdir=".."/>'), "<compiler>: the path '..' climbs out of"),
    "climbing from its folder": (
        mjcf('<compiler assetdir="a"/><asset><texture type="2d" file="../../x.png"/></asset>'),
        "<texture>: the path '../../x.png' climbs out of",
    ),
    "remote mesh": (mjcf('<asset><mesh file="http://example.org/x.stl"/></asset>'), "is not that of a file"),
    "missing mesh": (mjcf('<asset><mesh file="x.stl"/></asset>'), "MuJoCo refuses it: .*x.stl"),
    "a million bodies": (mjcf('<worldbody><replicate count="1000000"><geom size="1"/></replicate></worldbody>'), "100000"),
    "a thousand thousands": (
        mjcf('<worldbody><replicate count="999"><replicate count="999"><geom/></replicate></replicate></worldbody>'),
        "more than 100000 in all",
    ),
    "a huge image": (mjcf('<asset><texture name="t" builtin="flat" type="2d" width="99999" height="9"/></asset>'), "16384"),
    "a huge height field": (mjcf('<asset><hfield name="h" nrow="99999" ncol="2" size="1 1 1 1"/></asset>'), "16384"),
    "user data": (mjcf('<size nuser_body="1000000000"/>' + BODY), "nuser_body='1000000000', expected at most"),
    "600 levels": (mjcf("<worldbody>" + "<body><joint/><geom size='1'/>" * 600 + "</body>" * 600 + "</worldbody>"), "deep"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_file(tmp_path: Path, case: str) -> None:
    text, message = BROKEN[case]
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "x.xml").write_text(mjcf(BODY))  # there to be read, if anything would
    path = folder / "robot.xml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(sl.ModelError, match=message) as caught:
        sl.load_mjcf(path)
    assert str(folder) in str(caught.value)


def test_directory_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(sl.ModelError, match="is a directory, expected an MJCF file"):
        sl.load_mjcf(tmp_path)
    with pytest.raises(sl.ModelError, match="cannot be read: No such file"):
        sl.load_mjcf(tmp_path / "x.xml")


def test_included_files_are_checked_too(tmp_path: Path) -> None:
    (tmp_path / "main.xml").write_text(mjcf('<include file="part.xml"/>' + BODY))
    (tmp_path / "part.xml").write_text(mjcf('<asset><mesh file="../x.stl"/></asset>'))
    with pytest.raises(sl.ModelError, match=r"part\.xml: line 1: <mesh>: the path '../x.stl' climbs out of"):
        sl.load_mjcf(tmp_path / "main.xml")
    (tmp_path / "part.xml").write_text('<!DOCTYPE mujoco [<!ENTITY e "x">]>' + mjcf("&e;"))
    with pytest.raises(sl.ModelError, match=r"part\.xml: declares XML entities"):
        sl.load_mjcf(tmp_path / "main.xml")


def test_files_that_include_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(mjcf('<include file="b.xml"/>' + BODY))
    (tmp_path / "b.xml").write_text(mjcf('<include file="a.xml"/>'))
    with pytest.raises(sl.ModelError, match="MuJoCo refuses it"):
        sl.load_mjcf(tmp_path / "a.xml")


def test_attached_models_have_names_relative_to_themselves(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "part.xml").write_text(mjcf('<worldbody><include file="body.xml"/></worldbody>'))
    (tmp_path / "sub" / "body.xml").write_text('<x><body name="b"><joint name="j"/><geom size="1"/></body></x>')
    model = '<asset><model name="m" file="sub/part.xml"/></asset>'
    attach = '<worldbody><attach model="m" body="b" prefix="p_"/></worldbody>'
    (tmp_path / "main.xml").write_text(mjcf(model + attach))
    assert [joint.name for joint in sl.load_mjcf(tmp_path / "main.xml").joints] == ["universe", "p_j"]


def test_a_package_is_a_home(tmp_path: Path) -> None:
    (tmp_path / "package.xml").write_text("<package/>")
    (tmp_path / "mjcf").mkdir()
    (tmp_path / "part.xml").write_text(mjcf('<option gravity="0 0 -1"/>'))
    (tmp_path / "mjcf" / "robot.xml").write_text(mjcf('<include file="../part.xml"/>' + BODY))
    assert sl.load_mjcf(tmp_path / "mjcf" / "robot.xml").gravity.tolist() == [0, 0, -1]


def test_a_chain_of_four_hundred_bodies(tmp_path: Path) -> None:
    link = "<body pos='0 0 0.1'><joint axis='0 1 0'/><geom size='0.05'/>"
    path = tmp_path / "robot.xml"
    path.write_text(mjcf("<worldbody>" + link * 400 + "</body>" * 400 + "</worldbody>"))
    assert sl.load_mjcf(path).nv == 400


@pytest.mark.filterwarnings("ignore:.*settotalmass")
def test_no_log_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo writes warnings into the current directory, if it is let."""
    monkeypatch.chdir(tmp_path)
    Path("robot.xml").write_text(mjcf('<compiler settotalmass="1"/>' + BODY))
    assert sl.load_mjcf("robot.xml").total_mass == pytest.approx(1.0)
    assert [path.name for path in tmp_path.iterdir()] == ["robot.xml"]
