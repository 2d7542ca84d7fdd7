"""Robots to look at: a 3D viewer in the browser, replay files, pictures, videos, plots.

viser, matplotlib, trimesh and playwright are imported when they are used.
"""

from saltus.view.beside import side_by_side
from saltus.view.browser import Viewer, show
from saltus.view.contacts import Contacts, contacts_of
from saltus.view.held import held_contacts
from saltus.view.objects import Arrow, Label, Marker, Path
from saltus.view.ocp_plots import plot_controls, plot_costs, plot_forces, plot_gaps
from saltus.view.plots import plot_center_of_mass, plot_contact_forces, plot_energy, plot_trajectory
from saltus.view.recording import save_picture, save_video
from saltus.view.replay import save_replay
from saltus.view.scene import Scene, describe

__all__ = [
    "Arrow",
    "Contacts",
    "Label",
    "Marker",
    "Path",
    "Scene",
    "Viewer",
    "contacts_of",
    "describe",
    "held_contacts",
    "plot_center_of_mass",
    "plot_contact_forces",
    "plot_controls",
    "plot_costs",
    "plot_energy",
    "plot_forces",
    "plot_gaps",
    "plot_trajectory",
    "save_picture",
    "save_replay",
    "save_video",
    "show",
    "side_by_side",
]
