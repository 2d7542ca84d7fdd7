"""STUB"""
from saltus.kernel import Layout, kernel, zero
from saltus.spatial.algebra import Vec3
CONTACT_WORK = Layout(one={"origin": Vec3}, nslot={"point": Vec3, "normal": Vec3, "gap": None, "grip": None, "bounce": None})
@kernel
def find_contacts(tree, w):
    for s in range(tree.nslot):
        X = w.place[tree.slot_a[s]]
        p = X.R @ tree.slot_place[s] + X.p
        r = tree.slot_radius[s]
        o = p.x * 0.0
        height = p.z + w.origin[0].z - r
        w.gap[s], w.normal[s] = height, Vec3(o, o, o + 1.0)
        w.grip[s], w.bounce[s] = o + tree.slot_friction[s], o + tree.slot_bounce[s]
        w.point[s] = Vec3(p.x, p.y, p.z - r - 0.5 * height)
