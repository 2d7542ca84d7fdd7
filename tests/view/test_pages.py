"""The viewer and the replay file in a headless Chromium: they draw, the slider moves the robot, the console has no error."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

import saltus as sl
from saltus import view
from tests.view.browser import LARGE, differing, launched, opened, settled, wait_until
from tests.view.walker import FEET, crouch, quadruped

pytestmark = pytest.mark.slow
expect.set_options(timeout=30_000)  # ms; software draws slowly
STILL = "play(false); seconds = 0; draw()"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def replay(browser, tmp_path_factory) -> str:
    q, forces = crouch()
    file = tmp_path_factory.mktemp("replay") / "crouch.html"
    view.save_replay(
        file, quadruped(), q, 0.05, contacts=FEET, forces=forces, friction=0.7, title="Crouch </script> & rise"
    )
    return file.as_uri()


def test_the_replay_draws_and_its_slider_moves_the_robot(browser, replay: str) -> None:
    with opened(browser, replay) as page:
        assert page.title() == page.locator("h1").inner_text() == "Crouch </script> & rise"
        page.evaluate("for (const object of Object.values(extras)) object.visible = false")  # the robot alone
        page.evaluate(STILL)
        start = settled(page)
        page.locator("#time").fill("29")
        end = settled(page)
        assert differing(start, end) > 0.05
        assert page.locator("#clock").inner_text() == "1.45 / 1.45 s"
        page.locator("#time").fill("0")
        assert differing(start, settled(page)) < 1e-3


def test_every_place_of_the_slider_is_its_frame(browser, tmp_path) -> None:
    """Also 29 x 0.02 s, which is less than 29 times as long as 0.02 s."""
    file = view.save_replay(tmp_path / "slow.html", quadruped(), crouch(60)[0], 0.02)
    with opened(browser, file.as_uri()) as page:
        page.evaluate("play(false)")
        for frame in (1, 28, 29, 30, 58, 59):
            page.locator("#time").fill(str(frame))
            assert page.locator("#clock").inner_text() == f"{0.02 * frame:.2f} / 1.18 s"
            assert page.locator("#time").input_value() == str(frame)


def test_arrows_of_the_replay_point_along_the_forces(browser, replay: str) -> None:
    """From the contact to the tip of the head, of all four feet."""
    q, forces = crouch()
    with opened(browser, replay) as page:
        page.evaluate("play(false); seconds = 7 * dt; draw()")
        matrices = page.evaluate(
            """[...Array(4).keys()].map((place) => [parts[0].arrows.shafts, parts[0].arrows.heads].map((mesh) => {
              const found = new THREE.Matrix4(); mesh.getMatrixAt(place, found); return found.elements; }))"""
        )
        scale = page.evaluate("0.5 * size") / np.linalg.norm(forces, axis=-1).max()
    for foot, parts, force in zip(FEET, matrices, forces[7], strict=True):
        shaft, head = (np.reshape(part, (4, 4)).T for part in parts)  # three.js writes columns
        point = sl.frame_placement(quadruped(), q[7], foot)[:3, 3]
        np.testing.assert_allclose(shaft[:3, 3], point, atol=1e-5)
        np.testing.assert_allclose(head[:3, 3], point + scale * force, atol=1e-5)
        for part in (shaft, head):
            along = part[:3, 2] / np.linalg.norm(part[:3, 2])
            np.testing.assert_allclose(along, force / np.linalg.norm(force), atol=1e-5)


def test_the_replay_plays_and_listens_to_keys(browser, replay: str) -> None:
    with opened(browser, replay) as page:
        expect(page.locator("#time")).not_to_have_value(re.compile("^[01]$"))  # it plays by itself
        page.keyboard.press("Space")
        at = int(page.locator("#time").input_value())
        page.wait_for_timeout(300)
        assert int(page.locator("#time").input_value()) == at
        page.keyboard.press("ArrowLeft")
        assert int(page.locator("#time").input_value()) == at - 1
        page.keyboard.press("Space")
        expect(page.locator("#time")).not_to_have_value(str(at - 1))


def test_objects_axes_and_labels_are_seen_and_can_be_hidden(browser, tmp_path) -> None:
    q, _ = crouch()
    objects = [
        view.Marker((0.3, 0.0, 0.6), "box", (0.3, 0.3, 0.3), (0.9, 0.0, 0.9)),
        view.Path([(-0.5, 0.3, 0.01), (0.5, 0.3, 0.01)], width=0.05),
        view.Arrow((0, 0, 0.3), np.linspace([0, 0, 0.1], [0, 0, 0.6], 30)),
        view.Label("target", np.linspace([0.3, 0.0, 0.8], [0.3, 0.0, 0.4], 30)),
    ]
    file = view.save_replay(tmp_path / "objects.html", quadruped(), q, objects=objects, axes=["root"])
    with opened(browser, file.as_uri()) as page:
        page.evaluate(STILL)
        before = settled(page)
        purple = (before[..., 0] - before[..., 1] > 0.3) & (before[..., 2] - before[..., 1] > 0.3)
        assert purple.mean() > 0.01
        label = page.locator(".label")
        assert label.inner_text() == "target"
        places = []
        for frame in (0, 29):
            page.evaluate(f"seconds = {frame} * dt; draw(); render()")
            box = label.bounding_box()
            expected = page.evaluate(
                "frame => { const p = new THREE.Vector3(0.3, 0, frame ? 0.4 : 0.8).add(world.position).project(camera);"
                "return [(p.x + 1) / 2 * innerWidth, (1 - p.y) / 2 * innerHeight]; }", frame
            )  # fmt: skip
            places.append(box["y"])
            assert abs(box["x"] + box["width"] / 2 - expected[0]) < 2
            assert 0 < expected[1] - box["y"] - box["height"] < 0.5 * box["height"]  # just above
        assert places[1] > places[0] + 10
        for extra in ("objects", "frame axes"):
            page.evaluate(STILL)
            shown = settled(page)
            page.get_by_label(extra).click()
            assert differing(shown, settled(page)) > 1e-3, extra
        assert not label.is_visible()


def test_buttons_move_the_camera(browser, replay: str) -> None:
    with opened(browser, replay) as page:
        page.evaluate(STILL)
        start = settled(page)
        directions = {"front": (1, 0, 0), "side": (0, -1, 0), "top": (0, 0, 1)}
        for name, direction in directions.items():
            page.get_by_role("button", name=name).click()
            seen = page.evaluate("camera.position.clone().sub(controls.target).normalize().toArray()")
            np.testing.assert_allclose(seen, direction, atol=1e-3)
        page.get_by_role("button", name="start").click()
        assert differing(start, settled(page)) < 1e-3


def test_a_crowd_is_drawn_coarsely_but_near_by(browser, tmp_path) -> None:
    q = np.stack([crouch(4)[0]] * 30)
    file = view.save_replay(tmp_path / "crowd.html", quadruped(), q)
    with opened(browser, file.as_uri()) as page:
        page.evaluate(STILL)
        settled(page)
        assert "30 robots" in page.locator("header p").inner_text()
        drawn = "() => [...levelsOf(parts[0])].reduce((sum, level) => (sum[level]++, sum), [0, 0, 0])"
        assert page.evaluate(drawn) == [0, 30, 0]
        whole = page.evaluate("(render(), renderer.info.render.triangles)")
        assert whole < 60_000
        page.evaluate("controls.target.set(0, 0, 0.4); camera.position.set(1, 0.3, 0.6); controls.update(); draw()")
        unseen, far, close = page.evaluate(drawn)
        assert unseen > 0 and 0 < close <= 8 and unseen + far + close == 30
        page.locator("#time").fill("3")
        scene = view.describe(quadruped(), q)
        for robot in range(30):  # each where it is, whatever instance it is drawn by
            place = page.evaluate(f"at.setFromMatrixPosition(parts[0].moved[{robot} * parts[0].bodies]).toArray()")
            expected = scene.placements[robot, 3, 1, :3, 3]
            np.testing.assert_allclose(place, expected, atol=1e-5)


def test_robots_side_by_side_are_drawn(browser, tmp_path) -> None:
    ball = sl.ModelBuilder("ball")
    ball.add_shape(0, "sphere", (0.2,), color=(0.0, 0.8, 0.0, 1.0))
    scenes = [view.describe(quadruped(), crouch()[0], 0.05), view.describe(ball.build(), np.zeros(0))]
    file = view.save_replay(tmp_path / "two.html", view.side_by_side(scenes))
    with opened(browser, file.as_uri(), LARGE) as page:
        page.evaluate(STILL)
        image = settled(page)
        green = (image[..., 1] - image[..., 0] > 0.25) & (image[..., 1] - image[..., 2] > 0.25)
        orange = (image[..., 0] - image[..., 2] > 0.25) & ~green
        assert green.mean() > 0.005 and orange.mean() > 0.005


def test_pictures_and_videos(tmp_path) -> None:
    import imageio.v3 as imageio

    q, _ = crouch(20)
    objects = [view.Marker((0, 0, 0.5), "sphere", (0.4,), (0.9, 0.0, 0.9))]
    picture = imageio.imread(view.save_picture(tmp_path / "a.png", quadruped(), q, size=(320, 240), objects=objects))
    assert picture.shape[:2] == (240, 320)
    middle = picture[120, 160, :3].astype(float)
    assert middle[0] - middle[1] > 60 and middle[2] - middle[1] > 60
    for name in ("a.gif", "a.mp4"):
        file = view.save_video(tmp_path / name, quadruped(), q, 0.02, size=(160, 120), speed=0.5)
        frames = imageio.imread(file, index=None) if name == "a.gif" else imageio.imread(file, plugin="FFMPEG")
        assert frames.shape[:3] == (20, 120, 160)  # 0.8 s, 25 a second
        assert abs(frames[0].astype(float) - frames[-1]).mean() > 1


def test_sliders_and_cameras_of_the_viewer(browser) -> None:
    arm = sl.load_robot("arm")
    with view.show(arm, arm.reference_configurations["standing"], port=8191) as viewer, \
         opened(browser, viewer.url, LARGE) as page:  # fmt: skip
        page.get_by_text("joints").click()
        page.get_by_text("joint_2").wait_for()
        before = settled(page)
        page.get_by_role("slider").nth(1).press("End")
        wait_until(page, lambda now: differing(before, now) > 0.01)
        assert viewer.q[1] == arm.upper_position_limit[1]
        viewer.look("start")  # at where the robot is now
        page.wait_for_timeout(500)
        moved = settled(page)
        page.get_by_role("button", name="top").click()
        wait_until(page, lambda now: differing(moved, now) > 0.05)
        viewer.look("start")
        wait_until(page, lambda now: differing(moved, now) < 0.01)
        with pytest.raises(ValueError, match="no view 'below'"):
            viewer.look("below")


def test_every_switch_of_the_replay_changes_the_picture(browser, replay: str) -> None:
    with opened(browser, replay) as page:
        page.evaluate(STILL)
        before = settled(page)
        for extra in ("centre of mass", "contact forces", "friction cones", "support polygon", "see-through"):
            page.get_by_label(extra).click()
            after = settled(page)
            assert differing(before, after) > 1e-3, extra
            before = after


def test_the_replay_is_dark_where_the_reader_wants_it(browser, replay: str) -> None:
    means = []
    for scheme in ("light", "dark"):
        with opened(browser, replay, color_scheme=scheme) as page:
            page.evaluate(STILL)
            means.append(settled(page).mean())
    assert means[1] < 0.5 < means[0]


def test_a_replay_of_one_pose_has_no_player(browser, tmp_path) -> None:
    robot = sl.random_model(seed=0, bodies=8)
    with opened(browser, view.save_replay(tmp_path / "pose.html", robot, robot.neutral()).as_uri()) as page:
        settled(page)
        assert not page.locator("#player").is_visible()


def test_nothing_to_draw(browser, tmp_path) -> None:
    empty = sl.ModelBuilder("empty").build()
    with opened(browser, view.save_replay(tmp_path / "empty.html", empty, empty.neutral()).as_uri()) as page:
        assert page.locator("h1").inner_text() == "empty"
    with view.show(empty, port=8163) as viewer, opened(browser, viewer.url) as page:
        page.get_by_text("see-through").wait_for()


@pytest.mark.parametrize("layout", ["grid", "overlay"])
def test_a_replay_of_a_batch(browser, tmp_path, layout: str) -> None:
    q = np.stack([crouch()[0], crouch()[0][::-1], np.tile(crouch()[0][0], (30, 1))])
    with opened(browser, view.save_replay(tmp_path / "batch.html", quadruped(), q, layout=layout).as_uri()) as page:
        page.evaluate(STILL)
        start = settled(page)
        page.locator("#time").fill("29")
        assert differing(start, settled(page)) > 0.01


def test_a_replay_needs_nothing_from_elsewhere_and_is_small(tmp_path) -> None:
    robot = sl.random_model(seed=0, bodies=80, kinds=["revolute"])
    q = sl.interpolate(robot, robot.neutral(), sl.random_configuration(robot, seed=1), np.linspace(0, 1, 251))
    text = view.save_replay(tmp_path / "long.html", robot, q).read_text(encoding="utf-8")
    assert len(text) < 3_000_000
    assert not re.search(r"""(src|href)=["'](?!data:)""", text)
    assert "MIT License" in text and "three.js authors" in text


def test_the_viewer_draws_moves_and_closes(browser) -> None:
    q, forces = crouch()
    viewer = view.show(quadruped(), q, 0.05, port=8123, contacts=FEET, forces=forces, friction=0.7)
    try:
        with opened(browser, viewer.url, LARGE) as page:
            page.get_by_text("time [s]").wait_for()
            start = settled(page)
            slider = page.get_by_role("slider").first
            slider.press("End")
            page.wait_for_timeout(500)
            end = settled(page)
            assert differing(start, end) > 0.03
            slider.press("Home")
            page.wait_for_timeout(500)
            assert differing(start, settled(page)) < 2e-3
            page.get_by_label("play").click()
            wait_until(page, lambda now: differing(start, now) > 0.01)
            viewer.update(q[0])
            standing = settled(page)
            viewer.update(q[-1])
            page.wait_for_timeout(500)
            assert differing(standing, settled(page)) > 0.03
    finally:
        viewer.close()
    viewer.close()  # once more does no harm
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection("127.0.0.1", int(viewer.url.rsplit(":", 1)[1]), timeout=5).request("GET", "/")


def test_the_viewer_listens_on_the_loopback_address_only() -> None:
    robot = quadruped()
    with view.show(robot, port=8143) as viewer:
        assert viewer.url.startswith("http://127.0.0.1:")
        assert repr(viewer) == f"Viewer({viewer.url!r})"
        with open("/proc/net/tcp", encoding="utf-8") as table:  # local addresses, in hexadecimal
            port = f"{int(viewer.url.rsplit(':', 1)[1]):04X}"
            listening = {line.split()[1] for line in list(table)[1:] if line.split()[3] == "0A"}
        assert {address for address in listening if address.endswith(f":{port}")} == {f"0100007F:{port}"}


@pytest.mark.parametrize("live", [False, True])
def test_a_simulated_motion_is_drawn_with_its_terrain(browser, tmp_path, live: bool) -> None:
    """Also where the camera follows; and what is slippery is blue."""
    sim = sl.Simulator(quadruped(), [sl.Ground(), sl.Box((8.0, 8.0, 0.1), friction=0.0)])
    q = quadruped().neutral()
    q[2] += 0.6
    motion = sim.rollout(q, np.zeros(quadruped().nv), duration=0.4, every=20)

    def is_blue(image: np.ndarray) -> bool:
        return bool((image[..., 2] - image[..., 0] > 0.04).mean() > 0.3)

    if live:
        with view.show(motion, port=8176) as viewer, opened(browser, viewer.url, LARGE) as page:
            wait_until(page, is_blue)
    else:
        with opened(browser, view.save_replay(tmp_path / "motion.html", motion).as_uri()) as page:
            page.evaluate(STILL)
            wait_until(page, is_blue)
