// What can be switched on and off: centres of mass, contacts, frames' axes, the user's own objects.

const extras = {}; // by name, a group of all parts
const draws = []; // [group, what moves it to a frame]
for (const name of data.extras) world.add(extras[name] = new THREE.Group());

function extra(name, objects, draw) {
  extras[name].add(...objects);
  draws.push([extras[name], draw]);
}

const overlay = (color, opacity = 1) => new THREE.MeshStandardMaterial({
  color, roughness: 0.6, transparent: opacity < 1, opacity, depthWrite: opacity === 1, side: THREE.DoubleSide,
});
const inFront = { depthTest: false, transparent: true }; // the centre of mass lies inside the robot

function addCenters(part) {
  const { robots } = part, center = floats(part.center); // (robots, frames, 3)
  const balls = instanced(new THREE.SphereGeometry(0.022 * size, fine(32), fine(20)),
    new THREE.MeshBasicMaterial({ color: 0xf2a900, ...inFront }), robots);
  const plumb = new THREE.BufferGeometry(); // lines from the centres of mass to the floor
  plumb.setAttribute("position", new THREE.BufferAttribute(new Float32Array(6 * robots), 3));
  const lines = new THREE.LineSegments(plumb, new THREE.LineBasicMaterial({ color: 0xf2a900, ...inFront }));
  lines.frustumCulled = false;
  balls.renderOrder = lines.renderOrder = 2;
  const disc = new THREE.CylinderGeometry(0.02 * size, 0.02 * size, 0.002 * size, fine(32)).rotateX(Math.PI / 2);
  const discs = instanced(disc, new THREE.MeshBasicMaterial({ color: 0xf2a900 }), robots);
  extra("centre of mass", [balls, lines, discs], (frame) => {
    for (let robot = 0; robot < robots; robot++) {
      at.fromArray(center, 3 * (robot * frames + frame));
      balls.setMatrixAt(robot, matrix.makeTranslation(at.x, at.y, at.z));
      plumb.attributes.position.setXYZ(2 * robot, at.x, at.y, at.z);
      plumb.attributes.position.setXYZ(2 * robot + 1, at.x, at.y, floor);
      discs.setMatrixAt(robot, matrix.makeTranslation(at.x, at.y, floor + 0.002 * size));
    }
    balls.instanceMatrix.needsUpdate = discs.instanceMatrix.needsUpdate = plumb.attributes.position.needsUpdate = true;
  });
}

// ----------------------------------------------------------------------------------------------------------- contacts

const thickness = 0.009 * size, headLength = 5 * thickness;
const shaft = new THREE.CylinderGeometry(1, 1, 1, fine(20)).translate(0, 0.5, 0).rotateX(Math.PI / 2);
const head = new THREE.ConeGeometry(2.2 * thickness, headLength, fine(24)).translate(0, -headLength / 2, 0)
  .rotateX(Math.PI / 2);
const arrow = new THREE.Vector3(), tail = new THREE.Vector3(), direction = new THREE.Vector3();

class Arrows {
  constructor(color, count) {
    const material = overlay(color);
    this.shafts = instanced(shaft, material, count);
    this.heads = instanced(head, material, count);
  }

  set(place) { // from `tail` as far as `arrow`
    const length = arrow.length(), seen = length > 0;
    turn.setFromUnitVectors(up, seen ? direction.copy(arrow).divideScalar(length) : up);
    const straight = Math.max(length - headLength, 0);
    this.shafts.setMatrixAt(place,
      seen ? matrix.compose(tail, turn, scale.set(thickness, thickness, straight)) : nowhere);
    const share = Math.min(1, length / headLength); // one too small for a head has a small one
    this.heads.setMatrixAt(place,
      seen ? matrix.compose(at.copy(arrow).add(tail), turn, scale.set(share, share, share)) : nowhere);
    this.shafts.instanceMatrix.needsUpdate = this.heads.instanceMatrix.needsUpdate = true;
  }
}

function addContacts(part) {
  const { robots, contacts } = part, { count } = contacts, places = robots * count; // of contacts in one frame
  const [points, arrows, normals, support] = ["points", "arrows", "normals", "support"].map((name) => floats(contacts[name]));
  const active = bytes(contacts.active), friction = floats(contacts.friction); // all (robots, frames, count ...)
  const source = (place, frame) => (Math.floor(place / count) * frames + frame) * count + place % count;
  if (extras["contact forces"]) {
    const drawn = part.arrows = new Arrows(0xd62f2f, places);
    extra("contact forces", [drawn.shafts, drawn.heads], (frame) => {
      for (let place = 0; place < places; place++) {
        tail.fromArray(points, 3 * source(place, frame));
        arrow.fromArray(arrows, 3 * source(place, frame));
        drawn.set(place);
      }
    });
  }
  if (extras["friction cones"]) {
    const height = 0.12 * size; // apex at the contact, opening along the normal
    const cone = new THREE.ConeGeometry(1, 1, fine(40), 1, true).translate(0, -0.5, 0).rotateX(-Math.PI / 2);
    const cones = instanced(cone, overlay(0x3b82c4, 0.35), places);
    extra("friction cones", [cones], (frame) => {
      for (let place = 0; place < places; place++) {
        const row = source(place, frame), width = friction[row] * height;
        turn.setFromUnitVectors(up, arrow.fromArray(normals, 3 * row));
        cones.setMatrixAt(place, active[row] && width > 0
          ? matrix.compose(at.fromArray(points, 3 * row), turn, scale.set(width, width, height)) : nowhere);
      }
      cones.instanceMatrix.needsUpdate = true;
    });
  }
  if (extras["support polygon"]) {
    const faces = [], polygon = new THREE.BufferGeometry();
    for (let robot = 0; robot < robots; robot++) {
      const first = robot * count;
      for (let k = 1; k + 1 < count; k++) faces.push(first, first + k, first + k + 1);
    }
    polygon.setAttribute("position", new THREE.BufferAttribute(new Float32Array(3 * places), 3));
    polygon.setIndex(faces);
    const polygons = new THREE.Mesh(polygon, new THREE.MeshBasicMaterial({
      color: 0x2f9e5f, transparent: true, opacity: 0.4, depthWrite: false, side: THREE.DoubleSide,
    }));
    polygons.frustumCulled = false;
    extra("support polygon", [polygons], (frame) => {
      for (let place = 0; place < places; place++) {
        at.fromArray(support, 3 * source(place, frame));
        polygon.attributes.position.setXYZ(place, at.x, at.y, at.z + 0.003 * size);
      }
      polygon.attributes.position.needsUpdate = true;
    });
  }
}

// ---------------------------------------------------------------------------------------------------- axes and objects

// Triads of axes: x red, y green, z blue. `poseOf(index, frame)` sets `matrix`.
function addTriads(name, count, length, poseOf) {
  const bar = (x, z) => new THREE.CylinderGeometry(1, 1, 1, fine(12)).translate(0, 0.5, 0)
    .scale(data.axis_width * length, length, data.axis_width * length).rotateZ(z).rotateX(x);
  const bars = [[bar(0, -Math.PI / 2), 0xd94a3a], [bar(0, 0), 0x3f9e4d], [bar(Math.PI / 2, 0), 0x3b6fc4]]
    .map(([geometry, color]) => instanced(geometry, new THREE.MeshBasicMaterial({ color, ...inFront }), count));
  extra(name, bars, (frame) => {
    for (let index = 0; index < count; index++) {
      poseOf(index, frame);
      for (const mesh of bars) mesh.setMatrixAt(index, matrix);
    }
    for (const mesh of bars) mesh.instanceMatrix.needsUpdate = true;
  });
}

function addAxes(part) {
  const axes = floats(part.axes), each = axes.length / (7 * part.robots * frames);
  if (!each) return;
  addTriads("frame axes", part.robots * each, data.axis_length, (index, frame) => {
    poseAt(axes, (Math.floor(index / each) * frames + frame) * each + index % each, matrix);
  });
}

const labels = []; // [element, where it is, its group]
const elsewhere = (place) => matrix.setPosition(
  matrix.elements[12] + place[0], matrix.elements[13] + place[1], matrix.elements[14] + place[2]);

function addObjects({ places, markers, triads, paths, pointers, labels: words }) {
  const count = places.length;
  for (const marker of markers) {
    const numbers = floats(marker.poses), mesh = instanced(geometryOf(marker), skin(marker, marker.color[3]), count);
    mesh.castShadow = marker.color[3] === 1;
    extra("objects", [mesh], (frame) => {
      places.forEach((place, index) => { poseAt(numbers, frame, matrix); mesh.setMatrixAt(index, elsewhere(place)); });
      mesh.instanceMatrix.needsUpdate = true;
    });
  }
  for (const triad of triads) {
    const numbers = floats(triad.poses);
    addTriads("objects", count, triad.length, (index, frame) => {
      poseAt(numbers, frame, matrix);
      elsewhere(places[index]);
    });
  }
  for (const { points, color, width } of paths) {
    const segments = points.length - 1;
    const tube = new THREE.CylinderGeometry(1, 1, 1, fine(12)).translate(0, 0.5, 0).rotateX(Math.PI / 2);
    const mesh = instanced(tube, overlay(painted(color), color[3]), count * segments);
    places.forEach((place, index) => {
      for (let k = 0; k < segments; k++) {
        arrow.fromArray(points[k + 1]).sub(tail.fromArray(points[k]));
        const length = arrow.length();
        if (length > 0) turn.setFromUnitVectors(up, arrow.divideScalar(length));
        matrix.compose(tail, turn, scale.set(width / 2, width / 2, length || 1e-9));
        mesh.setMatrixAt(index * segments + k, elsewhere(place));
      }
    });
    extra("objects", [mesh], () => {});
  }
  for (const pointer of pointers) {
    const from = floats(pointer.at), vectors = floats(pointer.vectors), drawn = new Arrows(painted(pointer.color), count);
    extra("objects", [drawn.shafts, drawn.heads], (frame) => {
      places.forEach((place, index) => {
        tail.fromArray(from, 3 * frame).add(at.fromArray(place));
        arrow.fromArray(vectors, 3 * frame);
        drawn.set(index);
      });
    });
  }
  for (const { text, at: where } of words) {
    const numbers = floats(where);
    for (const place of places) {
      const word = document.createElement("div"), spot = new THREE.Vector3();
      word.className = "label";
      word.textContent = text;
      document.body.append(word);
      labels.push([word, spot, extras.objects]);
      draws.push([extras.objects, (frame) => spot.fromArray(numbers, 3 * frame).add(at.fromArray(place))]);
    }
  }
}

function placeLabels() {
  for (const [word, spot, group] of labels) {
    at.copy(spot).add(world.position).project(camera);
    word.hidden = !group.visible || at.z > 1;
    word.style.left = `${(at.x + 1) / 2 * innerWidth}px`;
    word.style.top = `${(1 - at.y) / 2 * innerHeight}px`;
  }
}

for (const part of parts) {
  addCenters(part);
  addContacts(part);
  addAxes(part);
  addObjects(part);
}
