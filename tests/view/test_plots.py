"""Plots show the numbers and the limits they are given."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

import saltus as sl
from saltus import view
from tests.view.walker import FEET, crouch, quadruped

T = 30
TIME = np.linspace(0.0, 1.0, T)


@pytest.fixture(autouse=True)
def no_figures_left():
    plt.switch_backend("agg")
    yield
    plt.close("all")


def test_joints_with_their_limits() -> None:
    robot, q, rng = quadruped(), crouch(T)[0], np.random.default_rng(0)
    v, tau = rng.normal(size=(T, robot.nv)), rng.normal(size=(T, robot.nv))
    figure = view.plot_trajectory(robot, TIME, q, v, tau, joints=["root", "HL_shank"])
    assert len(figure.axes) == 6
    root, shank, speed, torque = figure.axes[0], *figure.axes[3:]
    np.testing.assert_array_equal([line.get_ydata() for line in root.lines], q[:, :7].T)  # and no limits
    joint = robot.joints[robot.joint_index("HL_shank")]
    for axis, values, limits in (
        (shank, q[:, joint.iq], (-2.6, 2.6)),
        (speed, v[:, joint.iv], (-10.0, 10.0)),
        (torque, tau[:, joint.iv], (-40.0, 40.0)),
    ):
        curve, *dashed = axis.lines
        np.testing.assert_array_equal(curve.get_ydata(), values)
        assert [line.get_ydata()[0] for line in dashed] == list(limits)
        assert all(line.get_linestyle() == "--" for line in dashed)
    assert shank.get_ylabel() == "position [rad]" and torque.get_ylabel() == "torque [N m]"


def test_every_kind_of_joint_has_a_panel() -> None:
    robot = sl.random_model(seed=2, bodies=20)
    q = sl.random_configuration(robot, seed=3, shape=T)
    figure = view.plot_trajectory(robot, TIME, q, np.zeros((T, robot.nv)))
    assert [axis.get_title() for axis in figure.axes[::2]] == [joint.name for joint in robot.joints[1:]]
    drawn = sum(len([line for line in axis.lines if line.get_linestyle() == "-"]) for axis in figure.axes)
    assert drawn == robot.nq + robot.nv


def test_energy() -> None:
    robot, q = quadruped(), crouch(T)[0]
    v = np.random.default_rng(1).normal(size=(T, robot.nv))
    kinetic, potential, total = (line.get_ydata() for line in view.plot_energy(robot, TIME, q, v).axes[0].lines)
    M = sl.crba(robot, q)
    np.testing.assert_allclose(kinetic, 0.5 * np.einsum("ti,tij,tj->t", v, M, v), rtol=1e-12)
    np.testing.assert_allclose(potential, 9.81 * robot.total_mass * sl.center_of_mass(robot, q)[:, 2], rtol=1e-12)
    np.testing.assert_array_equal(total, kinetic + potential)


def test_center_of_mass_over_its_support() -> None:
    robot, q = quadruped(), crouch(T)[0]
    active = np.ones((T, 4), bool)
    active[10:, 0] = False
    axis = view.plot_center_of_mass(robot, TIME, q, FEET, active).axes[0]
    first, second = (patch.get_xy()[:, :2] for patch in axis.patches)  # one for each set of contacts
    feet = np.array([sl.frame_placement(robot, q[0], foot)[:2, 3] for foot in FEET])
    assert {tuple(corner.round(9)) for corner in first} == {tuple(foot.round(9)) for foot in feet}
    assert len({tuple(corner.round(9)) for corner in second}) == 3


def test_contact_forces_against_friction() -> None:
    forces = np.zeros((T, 2, 3))
    forces[..., 0], forces[..., 1], forces[..., 2] = 3.0, 4.0, np.linspace(0, 20, T)[:, None]
    figure = view.plot_contact_forces(TIME, forces, 0.5, ["left", "right"])
    assert [axis.get_title() for axis in figure.axes] == ["left", "right"]
    normal, tangential, limit = (line.get_ydata() for line in figure.axes[0].lines)
    np.testing.assert_allclose(normal, forces[:, 0, 2])
    np.testing.assert_allclose(tangential, 5.0)
    np.testing.assert_allclose(limit, 0.5 * forces[:, 0, 2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda robot, q: view.plot_trajectory(robot, TIME), "nothing to plot"),
        (lambda robot, q: view.plot_trajectory(robot, TIME[:-1], q), r"q has shape \(30, 19\), expected \(29, 19\)"),
        (lambda robot, q: view.plot_trajectory(robot, TIME, q, joints=["HL_shonk"]), "did you mean 'HL_shank'"),
        (
            lambda robot, q: view.plot_contact_forces(TIME, q, 0.5),
            r"forces has shape \(30, 19\), expected \(30, K, 3\)",
        ),
        (lambda robot, q: view.plot_contact_forces(TIME, crouch(T)[1], 0.5, ["one"]), "1 names, expected 4"),
    ],
)
def test_errors(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(quadruped(), crouch(T)[0])
