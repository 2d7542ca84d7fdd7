// Many robots: those far away are drawn coarsely, those outside the picture not at all.

const BUDGET = 50000; // triangles of all that is drawn coarsely
const NEAR = 0.25, MOST_NEAR = 8; // part of the picture's height from which a robot is drawn finely; how many are at most
const [UNSEEN, FAR, CLOSE] = [0, 1, 2];

// What of a part is drawn coarsely, and how: its largest solids, as many as the budget allows.
function coarsely(solids, geometries) {
  const found = solids.map(() => null), radii = geometries.map((geometry) => {
    geometry.computeBoundingSphere();
    return geometry.boundingSphere.radius;
  });
  let left = BUDGET / robotCount;
  for (const index of [...solids.keys()].sort((a, b) => radii[b] - radii[a])) {
    const geometry = coarse(solids[index], geometries[index]);
    left -= (geometry.index ?? geometry.attributes.position).count / 3;
    if (left < 0) break;
    found[index] = geometry;
  }
  return found;
}

function coarse({ kind, size: s }, geometry) {
  if (kind === "box") return geometry;
  if (kind === "sphere") return new THREE.SphereGeometry(s[0], 4, 3);
  if (kind === "ellipsoid") return new THREE.SphereGeometry(1, 5, 3).scale(...s);
  if (kind === "mesh") return clustered(geometry);
  const length = kind === "capsule" ? s[1] + s[0] : s[1];
  return new THREE.CylinderGeometry(s[0], s[0], length, 5, 1, true).rotateX(Math.PI / 2); // without its ends
}

// A mesh whose vertices that lie in one cell of a grid have become one.
function clustered(geometry, cells = 5) {
  geometry.computeBoundingBox();
  const { min, max } = geometry.boundingBox, { position } = geometry.attributes, corners = geometry.index.array;
  const cell = (value, low, high) => Math.min(cells - 1, Math.floor(cells * (value - low) / (high - low || 1)));
  const number = new Map(), sums = [], vertexOf = new Uint32Array(position.count);
  for (let k = 0; k < position.count; k++) {
    const [x, y, z] = [position.getX(k), position.getY(k), position.getZ(k)];
    const key = (cell(x, min.x, max.x) * cells + cell(y, min.y, max.y)) * cells + cell(z, min.z, max.z);
    if (!number.has(key)) number.set(key, sums.push([0, 0, 0, 0]) - 1);
    const sum = sums[vertexOf[k] = number.get(key)];
    sum[0] += x; sum[1] += y; sum[2] += z; sum[3] += 1;
  }
  const faces = new Map();
  for (let k = 0; k < corners.length; k += 3) {
    const face = [vertexOf[corners[k]], vertexOf[corners[k + 1]], vertexOf[corners[k + 2]]];
    if (new Set(face).size === 3) faces.set([...face].sort((a, b) => a - b).join(), face);
  }
  const simple = new THREE.BufferGeometry();
  const vertices = new Float32Array(sums.flatMap(([x, y, z, count]) => [x / count, y / count, z / count]));
  simple.setAttribute("position", new THREE.BufferAttribute(vertices, 3));
  simple.setIndex([...faces.values()].flat());
  simple.computeVertexNormals();
  return simple;
}

// How the robots of a part are drawn, seen from where the camera is.
function levelsOf({ robots, bodies, moved }) {
  const levels = new Uint8Array(robots).fill(CLOSE), near = [];
  if (robotCount < CROWD) return levels;
  camera.updateMatrixWorld();
  const margin = 1 + size / reach;
  for (let robot = 0; robot < robots; robot++) {
    at.setFromMatrixPosition(moved[robot * bodies]).add(world.position);
    const distance = Math.max(at.distanceTo(camera.position), 1e-6);
    const height = size / (2 * distance * Math.tan(camera.fov * Math.PI / 360));
    at.project(camera);
    const seen = at.z < 1 && Math.abs(at.x) < margin + height && Math.abs(at.y) < margin + height;
    levels[robot] = seen ? FAR : UNSEEN;
    if (seen && height > NEAR) near.push([height, robot]);
  }
  near.sort((a, b) => b[0] - a[0]);
  for (const [, robot] of near.slice(0, MOST_NEAR)) levels[robot] = CLOSE;
  return levels;
}
