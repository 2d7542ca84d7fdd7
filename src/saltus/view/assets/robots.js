// The robots, and what stands still around them. Each solid is drawn once for all robots that have it, as instances.

const matrix = new THREE.Matrix4(), turn = new THREE.Quaternion(), at = new THREE.Vector3(), scale = new THREE.Vector3();
const up = new THREE.Vector3(0, 0, 1), still = new THREE.Quaternion(), one = new THREE.Vector3(1, 1, 1);
const nowhere = new THREE.Matrix4().makeScale(0, 0, 0);
const painted = (color) => new THREE.Color().setRGB(color[0], color[1], color[2], "srgb");

function poseAt(numbers, row, into) { // position and quaternion x y z w
  return into.compose(at.fromArray(numbers, 7 * row), turn.fromArray(numbers, 7 * row + 3), one);
}

function instanced(geometry, material, count) {
  const mesh = new THREE.InstancedMesh(geometry, material, count);
  mesh.frustumCulled = false;
  return mesh;
}

const fine = (sides) => Math.max(6, Math.round(sides * (robotCount < CROWD ? 1 : 0.5)));

function geometryOf({ kind, size: s, mesh }) {
  if (kind === "box") return new THREE.BoxGeometry(...s);
  if (kind === "sphere") return new THREE.SphereGeometry(s[0], fine(40), fine(28));
  if (kind === "ellipsoid") return new THREE.SphereGeometry(1, fine(40), fine(28)).scale(...s);
  if (kind === "cylinder") return new THREE.CylinderGeometry(s[0], s[0], s[1], fine(48)).rotateX(Math.PI / 2);
  if (kind === "capsule") return new THREE.CapsuleGeometry(s[0], s[1], fine(12), fine(32)).rotateX(Math.PI / 2);
  return meshes[mesh];
}

function meshOf({ vertices, faces }) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(floats(vertices), 3));
  geometry.setIndex(new THREE.BufferAttribute(new Uint32Array(bytes(faces).buffer), 1));
  geometry.computeVertexNormals();
  return geometry;
}

const meshes = data.meshes.map(meshOf);
const skins = []; // materials of the robots, with the opacity each has of its own

function skin(solid, opacity) {
  return new THREE.MeshStandardMaterial({
    color: painted(solid.color), roughness: 0.55, metalness: 0.08, opacity, transparent: opacity < 1,
    depthWrite: opacity === 1, side: solid.kind === "mesh" ? THREE.DoubleSide : THREE.FrontSide,
  });
}

// Of the robots of a part, (robots, frames, bodies, 7).
function posesOf({ poses, robots, bodies, places }) {
  if (poses.numbers !== undefined) return floats(poses.numbers);
  const shorts = new Int16Array(bytes(poses.shorts).buffer), found = new Float32Array(shorts.length);
  const { low, scale: step } = poses, each = 7 * frames * bodies;
  for (let robot = 0; robot < robots; robot++) {
    const place = places[Math.min(robot, places.length - 1)];
    for (let k = robot * each; k < (robot + 1) * each; k += 7) {
      for (let i = 0; i < 3; i++) found[k + i] = place[i] + low[i] + (shorts[k + i] + 32768) * step[i];
      for (let i = 3; i < 7; i++) found[k + i] = shorts[k + i] / 32767;
    }
  }
  return found;
}

for (const part of parts) {
  part.numbers = posesOf(part);
  part.moved = Array.from({ length: part.robots * part.bodies }, () => new THREE.Matrix4());
  part.crowds = []; // solids, with the robots they are drawn for
  const geometries = part.solids.map(geometryOf);
  const simple = robotCount < CROWD ? part.solids.map(() => null) : coarsely(part.solids, geometries);
  for (const own of new Set(part.opacity)) {
    const members = [...part.opacity.keys()].filter((robot) => part.opacity[robot] === own);
    part.solids.forEach((solid, index) => {
      const opacity = solid.color[3] * own, material = skin(solid, opacity);
      const mesh = instanced(geometries[index], material, members.length);
      mesh.castShadow = mesh.receiveShadow = opacity === 1;
      skins.push({ material, opacity });
      const far = simple[index] && instanced(simple[index], material, members.length);
      part.crowds.push({ mesh, far, members, body: solid.body, local: poseAt(solid.pose, 0, new THREE.Matrix4()) });
      world.add(mesh);
      if (far) world.add(far);
    });
  }
}

function drawRobots(frame) {
  for (const part of parts) {
    const { robots, bodies, numbers, moved, crowds } = part;
    for (let robot = 0; robot < robots; robot++) {
      for (let body = 0; body < bodies; body++) {
        poseAt(numbers, (robot * frames + frame) * bodies + body, moved[robot * bodies + body]);
      }
    }
    const levels = levelsOf(part);
    for (const { mesh, far, members, body, local } of crowds) {
      let close = 0, distant = 0;
      for (const robot of members) {
        if (levels[robot] === CLOSE) {
          mesh.setMatrixAt(close++, matrix.multiplyMatrices(moved[robot * bodies + body], local));
        } else if (far && levels[robot] === FAR) {
          far.setMatrixAt(distant++, matrix.multiplyMatrices(moved[robot * bodies + body], local));
        }
      }
      mesh.count = close;
      mesh.instanceMatrix.needsUpdate = true;
      if (far) {
        far.count = distant;
        far.instanceMatrix.needsUpdate = true;
      }
    }
  }
}

function seeThrough(on) {
  for (const { material, opacity } of skins) {
    material.opacity = on ? data.see_through * opacity : opacity;
    material.transparent = material.opacity < 1;
    material.depthWrite = material.opacity === 1;
    material.needsUpdate = true;
  }
}

// ------------------------------------------------------------------------------------------------------------ terrain

for (const part of parts) {
  for (const surface of part.surfaces) {
    const sharp = new THREE.BufferGeometry();
    sharp.setAttribute("position", new THREE.BufferAttribute(floats(surface.edges), 3));
    const material = new THREE.MeshStandardMaterial({
      color: painted(surface.color), roughness: 0.9,
      polygonOffset: true, polygonOffsetFactor: 1, polygonOffsetUnits: 4, // edges are seen
    });
    const line = new THREE.LineBasicMaterial({ color: painted(surface.edge_color) });
    const mesh = instanced(meshOf(surface), material, part.places.length);
    mesh.castShadow = mesh.receiveShadow = true;
    part.places.forEach((place, index) => {
      mesh.setMatrixAt(index, matrix.makeTranslation(...place));
      const edges = new THREE.LineSegments(sharp, line);
      edges.position.set(...place);
      if (robotCount < CROWD) world.add(edges);
    });
    world.add(mesh);
  }
}
