"""Everything that can be given wrongly, one row each (see `bad_inputs/`): what is called, and what the exception says.

Every message names what was wrong, where, and what was expected. Nothing crashes, hangs, or answers with wrong numbers.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import saltus as sl
from tests.bad_inputs.in_algorithms import IN_ALGORITHMS
from tests.bad_inputs.in_control import IN_CONTROL
from tests.bad_inputs.in_files import EVERY_FORMAT, IN_FILES, LOADERS, PAIR, WHOLE, no_files, sdf
from tests.bad_inputs.in_models import IN_MODELS
from tests.bad_inputs.in_views import IN_VIEWS
from tests.model.robots import joint, link, robot

TABLE = {
    **{f"algorithms: {name}": case for name, case in IN_ALGORITHMS.items()},
    **{f"control: {name}": case for name, case in IN_CONTROL.items()},
    **{f"models: {name}": case for name, case in IN_MODELS.items()},
    **{f"views: {name}": case for name, case in IN_VIEWS.items()},
    **{f"paths: {name}": case for name, case in no_files(str(Path(__file__).parent))},
}
FILES = [(ending, name) for ending, cases in IN_FILES.items() for name in cases] + [
    (ending, name) for ending in LOADERS for name in EVERY_FORMAT
]


@contextmanager
def raises(kind: type[Exception], message: str) -> Iterator[None]:
    """An exception of just this class, or of its own module's: a ModelError is a ValueError, but not what was asked for."""
    with pytest.raises(kind, match=message) as caught:
        yield
    assert caught.type is kind, f"{caught.type.__name__}: {caught.value}"
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize("name", TABLE)
def test_bad_input(name: str) -> None:
    case = TABLE[name]
    for _ in range(2):  # the second time everything is prepared
        with raises(case.kind, case.message):
            case.call()


@pytest.mark.parametrize(("ending", "name"), FILES, ids=[f"{ending}: {name}" for ending, name in FILES])
def test_bad_file(ending: str, name: str, tmp_path: Path) -> None:
    if name in EVERY_FORMAT:
        make, message = EVERY_FORMAT[name]
        content = make(ending)
    else:
        content, message = IN_FILES[ending][name]
    path = tmp_path / f"robot.{ending}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with raises(sl.ModelError, message):
        LOADERS[ending](path)


def test_the_table_is_long() -> None:
    assert len(TABLE) + len(FILES) >= 120


def test_the_whole_files_load(tmp_path: Path) -> None:
    """So that what is wrong with the others is what the table says."""
    for ending, text in WHOLE.items():
        path = tmp_path / f"robot.{ending}"
        path.write_text(text)
        assert LOADERS[ending](path).nv >= 1


def test_unicode_names(tmp_path: Path) -> None:
    """They are names like any other, in files, in paths and in messages."""
    knee, shank = "Knie_ü", "すね"
    path = tmp_path / "Läufer_猫.urdf"
    path.write_text(robot(link("a"), link(shank), joint(knee, "a", shank)), encoding="utf-8")
    model = sl.load_urdf(path)
    assert [each.name for each in model.joints] == ["universe", knee]
    assert sl.frame_placement(model, model.neutral(), shank).shape == (4, 4)
    sl.save_urdf(model, tmp_path / "copy.urdf")
    assert sl.load_urdf(tmp_path / "copy.urdf").joint_index(knee) == 1
    (tmp_path / "脚.xml").write_text(f'<mujoco><worldbody><body name="{shank}"><joint name="{knee}"/><geom size="1"/></body>'
                                     "</worldbody></mujoco>", encoding="utf-8")  # fmt: skip
    assert sl.load_mjcf(tmp_path / "脚.xml").joint_index(knee) == 1
    (tmp_path / "脚.sdf").write_text(sdf(f'<link name="{shank}"/>'), encoding="utf-8")
    assert sl.load_sdf(tmp_path / "脚.sdf").frame_index(shank) > 0
    with pytest.raises(sl.ModelError, match=f"has no joint 'Knie_u'; did you mean '{knee}'"):
        model.joint_index("Knie_u")


def test_a_robot_through_a_pipe(tmp_path: Path) -> None:
    """As shells make one of `<(xacro robot.xacro)`; only devices are refused."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(PAIR,), daemon=True)
    writer.start()
    assert sl.load_urdf(tmp_path / "pipe").nv == 1
    writer.join(timeout=10)


def test_mujoco_wants_its_ending(tmp_path: Path) -> None:
    (tmp_path / "robot.mjcf").write_text(WHOLE["xml"])
    with pytest.raises(sl.ModelError, match="MuJoCo knows MJCF files by their names, expected one that ends in .xml"):
        sl.load_mjcf(tmp_path / "robot.mjcf")
