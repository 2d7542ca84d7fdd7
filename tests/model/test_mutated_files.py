"""Robot files that were damaged at random either load or raise a `ModelError`: no other exception, no crash, no hang."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import saltus as sl
from tests.model.robots import LIMIT, ORIGIN, joint, link, robot

MODELS = Path(__file__).parent / "mjcf"
URDF = robot(
    '<material name="red"><color rgba="1 0 0 1"/></material>',
    link("a"),
    link("b", '<visual><origin xyz="0 0 1"/><geometry><box size="1 2 3"/></geometry><material name="red"/></visual>'),
    link("c", '<visual><geometry><mesh filename="meshes/x.stl" scale="1 1 1"/></geometry></visual>'),
    joint("j", "a", "b", inside=ORIGIN + LIMIT + '<axis xyz="0 1 0"/><dynamics damping="1" friction="2"/>'),
    joint("k", "b", "c", inside=LIMIT + '<mimic joint="j" multiplier="2" offset="0.5"/>'),
)
SDF = """<sdf version="1.9"><model name="test" placement_frame="f"><pose>0 0 1 0 0 0</pose>
<frame name="f" attached_to="b"><pose relative_to="a">0 0 1 0 0 0</pose></frame>
<link name="a"><inertial><pose>0 0 1 0 0 0</pose><mass>1</mass><inertia><ixx>1</ixx></inertia></inertial>
<visual name="v"><geometry><mesh><uri>x.stl</uri><scale>1 1 1</scale></mesh></geometry></visual></link>
<link name="b"><pose relative_to="a">1 0 0 0 0 0</pose>
<visual name="w"><geometry><box><size>1 2 3</size></box></geometry>
<material><diffuse>1 0 0</diffuse></material></visual></link>
<link name="c"/>
<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis><xyz expressed_in="a">0 0 1</xyz>
<limit><lower>-1</lower><upper>1</upper><effort>3</effort></limit><dynamics><damping>1</damping></dynamics></axis></joint>
<joint name="k" type="ball"><parent>a</parent><child>c</child></joint>
<joint name="l" type="universal"><parent>f</parent><child>c</child><axis/><axis2/></joint></model></sdf>"""
MJCF = [path.read_text() for path in sorted(MODELS.glob("*.xml")) if path.stem not in ("include", "mesh")]

VALUES = ["", " ", "0", "-1", "nan", "inf", "-inf", "1e400", "1e308", "0 0 0", "1 2", "0 0 0 0 0 0 0", "a", "b", "universe",
          "world", "__model__", "x" * 300, "ü", "../../x", "/etc/passwd", "99999999999", "0x10", "1,5", "free", "ball",
          "fixed", "true", "&amp;", "&lt;", "&#0;", "&e;", "é\\u0000", "-0.0"]  # fmt: skip
ATTRIBUTE = re.compile(r'\s[\w:]+="[^"]*"')
ELEMENT = re.compile(r"<\w[^<>]*/>|<(\w+)[^<>]*>[^<>]*</\1>")
TEXT = re.compile(r"(?<=>)[^<>]+(?=<)")


@st.composite
def mutated(draw: Any, texts: list[str]) -> str:
    """One of the texts after one to four accidents."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 4))):
        accident = draw(st.sampled_from(["cut", "drop", "value", "text", "element", "double", "noise", "swap"]))
        pattern = {"value": ATTRIBUTE, "drop": ATTRIBUTE, "text": TEXT}.get(accident, ELEMENT)
        found = list(pattern.finditer(text))
        if accident == "cut":
            text = text[: draw(st.integers(0, len(text)))]
        elif accident == "noise":
            at = draw(st.integers(0, len(text)))
            text = text[:at] + draw(st.text(max_size=3)) + text[at + draw(st.integers(0, 3)) :]
        elif found:
            match = found[draw(st.integers(0, len(found) - 1))]
            old, value = match.group(), draw(st.sampled_from(VALUES))
            other = found[draw(st.integers(0, len(found) - 1))].group()
            new = {"drop": "", "element": "", "double": old + old, "swap": other, "text": value}.get(accident)
            new = f'{old.partition("=")[0]}="{value}"' if new is None else new
            text = text[: match.start()] + new + text[match.end() :]
    return text


def loads_or_says_why(folder: Path, name: str, text: str, load: Callable[..., sl.Model]) -> None:
    path = folder / name
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    start = time.process_time()
    try:
        model = load(path)
    except sl.ModelError as error:
        assert str(path) in str(error) and len(str(error)) > len(str(path)) + 5
    else:
        assert model.nv >= 0 and model.neutral().shape == (model.nq,)
    assert time.process_time() - start < 10.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutated")


@settings(max_examples=300)
@given(text=mutated([URDF]), mimic=st.booleans(), floating_base=st.booleans())
def test_urdf(folder: Path, text: str, mimic: bool, floating_base: bool) -> None:
    loads_or_says_why(folder, "robot.urdf", text, lambda path: sl.load_urdf(path, floating_base, mimic))


@settings(max_examples=300)
@given(text=mutated([SDF]), floating_base=st.booleans())
def test_sdf(folder: Path, text: str, floating_base: bool) -> None:
    loads_or_says_why(folder, "robot.sdf", text, lambda path: sl.load_sdf(path, floating_base))


@settings(max_examples=300)
@given(text=mutated(MJCF))
def test_mjcf(folder: Path, text: str) -> None:
    loads_or_says_why(folder, "robot.xml", text, sl.load_mjcf)


@settings(max_examples=100)
@given(content=st.binary(max_size=200))
def test_any_bytes(folder: Path, content: bytes) -> None:
    path = folder / "robot"
    path.write_bytes(content)
    for load in (sl.load_urdf, sl.load_sdf, sl.load_mjcf):
        with pytest.raises(sl.ModelError):
            load(path)


def test_they_load_when_whole(folder: Path) -> None:
    for name, text, load in (
        ("a.urdf", URDF, sl.load_urdf),
        ("a.sdf", SDF, sl.load_sdf),
        ("a.xml", MJCF[0], sl.load_mjcf),
    ):
        (folder / name).write_text(text)
        assert load(folder / name).nv > 0
