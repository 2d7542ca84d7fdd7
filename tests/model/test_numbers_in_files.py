"""Numbers in robot files are plain decimal ones, whatever Python or C would take for one; none of them is negative where
nothing can be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import saltus as sl

WRONG = [
    "1_0",
    "\u0661",
    "\uff11",
    "nan",
    "-NaN",
    "Infinity",
    "infinity",
    "0x10",
    "0x1p3",
    "1e",
    "1d3",
    "1,5",
    "1.5f",
    "1\u00a0",
]
RIGHT = {"1": 1.0, "+1.5": 1.5, "2.": 2.0, ".5": 0.5, "1e-3": 1e-3, "2.5E+1": 25.0}


def urdf(mass: str, ixx: str = "1") -> str:
    inertia = f'<inertia ixx="{ixx}" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    return (
        f'<robot name="r"><link name="a"/><link name="b"><inertial><mass value="{mass}"/>{inertia}</inertial></link>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
    )


def sdf(mass: str, ixx: str = "1") -> str:
    inertial = f"<inertial><mass>{mass}</mass><inertia><ixx>{ixx}</ixx></inertia></inertial>"
    return f'<sdf version="1.9"><model name="m"><link name="b">{inertial}</link></model></sdf>'


def mjcf(mass: str, ixx: str = "1") -> str:
    inertial = f'<inertial pos="0 0 0" mass="{mass}" diaginertia="{ixx} 1 1"/>'
    return f'<mujoco><worldbody><body name="b"><joint/>{inertial}</body></worldbody></mujoco>'


FORMATS: dict[str, tuple[Callable[..., str], Callable[..., sl.Model]]] = {
    "urdf": (urdf, sl.load_urdf),
    "sdf": (sdf, sl.load_sdf),
    "xml": (mjcf, sl.load_mjcf),
}


def load(tmp_path: Path, suffix: str, **values: str) -> sl.Model:
    if suffix == "xml":
        pytest.importorskip("mujoco")
    write, read = FORMATS[suffix]
    path = tmp_path / f"robot.{suffix}"
    path.write_text(write(**values), encoding="utf-8")
    return read(path)


@pytest.mark.parametrize("suffix", FORMATS)
def test_right_numbers(suffix: str, tmp_path: Path) -> None:
    for text, value in RIGHT.items():
        assert load(tmp_path, suffix, mass=text).total_mass == value


@pytest.mark.parametrize("word", WRONG)
@pytest.mark.parametrize("suffix", FORMATS)
def test_wrong_numbers(suffix: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(sl.ModelError, match=r"robot\.\w+"):
        load(tmp_path, suffix, mass=word)


@pytest.mark.parametrize("suffix", ["urdf", "sdf"])
@pytest.mark.parametrize(("ixx", "mass"), [("-1", "1"), ("-1e-9", "1"), ("-1e-9", "0")])
def test_negative_moments_of_inertia(suffix: str, ixx: str, mass: str, tmp_path: Path) -> None:
    with pytest.raises(sl.ModelError, match=r"link 'b'.*: its moments of inertia are \[-1.*expected none negative"):
        load(tmp_path, suffix, mass=mass, ixx=ixx)


@pytest.mark.parametrize("suffix", FORMATS)
def test_negative_masses(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(sl.ModelError, match="mass"):
        load(tmp_path, suffix, mass="-1")


@pytest.mark.parametrize("suffix", ["urdf", "sdf"])
def test_negative_by_rounding(suffix: str, tmp_path: Path) -> None:
    """iCub's files have such."""
    assert load(tmp_path, suffix, mass="0.5", ixx="-5.42101e-20").nv > 0


@pytest.mark.parametrize("version", ["1_0", "\u0661.6", "1." + 5000 * "1", "-1.6"])
def test_wrong_versions(version: str, tmp_path: Path) -> None:
    path = tmp_path / "robot.sdf"
    path.write_text(sdf("1").replace('"1.9"', f'"{version}"'), encoding="utf-8")
    with pytest.raises(sl.ModelError, match="expected one as 1.6"):
        sl.load_sdf(path)


def test_a_count_in_disguise(tmp_path: Path) -> None:
    """What would repeat a thing beyond all measure is seen in any notation."""
    path = tmp_path / "robot.xml"
    copies = '<replicate count="0x7fffffff"><body><joint/><geom size="1"/></body></replicate>'
    path.write_text(f"<mujoco><worldbody>{copies}</worldbody></mujoco>")
    with pytest.raises(sl.ModelError, match="count='0x7fffffff', expected plain decimal numbers"):
        sl.load_mjcf(path)
