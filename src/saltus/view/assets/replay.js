// The replay page: draws the scene that saltus/view/replay.py wrote into #data. World frame, z up, metres.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const { robots, frames, dt, size, floor, contacts } = data;
const element = (id) => document.getElementById(id);

function floats(text) {
  return new Float32Array(bytes(text).buffer);
}
function bytes(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

const poses = floats(data.poses); // (robots, frames, bodies, 7): position, quaternion x y z w
const center = floats(data.center); // (robots, frames, 3)
const path = floats(data.path); // (frames, 3)
const points = floats(contacts.points), arrows = floats(contacts.arrows), normals = floats(contacts.normals);
const support = floats(contacts.support), active = bytes(contacts.active);
const friction = floats(contacts.friction); // all (robots, frames, contacts ...)

// ------------------------------------------------------------------------------------------------ stage: light, floor

const renderer = new THREE.WebGLRenderer({ canvas: element("canvas"), antialias: true });
renderer.shadowMap.enabled = true;
renderer.shadowMap.type = THREE.PCFShadowMap;
renderer.toneMapping = THREE.ACESFilmicToneMapping;
renderer.toneMappingExposure = 1.15;

const stage = new THREE.Scene();
const world = new THREE.Group(); // moves against the robots when the camera follows them
stage.add(world);

const low = new THREE.Vector3(...data.low), high = new THREE.Vector3(...data.high);
const middle = low.clone().add(high).multiplyScalar(0.5);
const reach = Math.max(low.distanceTo(high), size); // of all that is to be seen

const camera = new THREE.PerspectiveCamera(data.field_of_view, 1, 0.03 * size, 60 * reach);
camera.up.set(0, 0, 1);
camera.position.set(...data.eye);
const controls = new THREE.OrbitControls(camera, renderer.domElement);
controls.target.copy(middle);
controls.maxDistance = 12 * reach;
controls.addEventListener("change", paint);

const sky = new THREE.HemisphereLight(0xffffff, 0x8c8478, 1.5);
sky.position.set(0, 0, 1);
const sun = new THREE.DirectionalLight(0xfff4e6, 2.6);
sun.position.copy(middle).add(new THREE.Vector3(0.45, -0.6, 1.3).multiplyScalar(2 * reach));
sun.target.position.copy(middle);
sun.castShadow = true;
sun.shadow.mapSize.set(2048, 2048);
sun.shadow.radius = 5;
sun.shadow.normalBias = 0.006 * size;
Object.assign(sun.shadow.camera, {
  left: -1.1 * reach, right: 1.1 * reach, top: 1.1 * reach, bottom: -1.1 * reach, near: 0.05 * reach, far: 6 * reach,
});
const fill = new THREE.DirectionalLight(0xdfe8ff, 0.7);
fill.position.set(-1, 0.8, 0.5);
stage.add(sky, sun, sun.target, fill);

const span = 40 * reach;
const cell = 10 ** Math.round(Math.log10(0.25 * size)); // 0.1 m for a small robot, 1 m for a large one
const plane = new THREE.PlaneGeometry(2 * span, 2 * span);
// Offset: what lies flat on the floor is seen, however coarse the depth buffer.
const behind = { polygonOffset: true, polygonOffsetFactor: 4, polygonOffsetUnits: 16 };
const ground = new THREE.Mesh(plane, new THREE.MeshStandardMaterial({ roughness: 1, ...behind }));
ground.receiveShadow = true;
const grid = new THREE.Mesh(plane, new THREE.ShaderMaterial({ // lines one and a half pixels wide at any distance
  transparent: true, depthWrite: false, ...behind, polygonOffsetUnits: 8,
  uniforms: { color: { value: new THREE.Color() }, shift: { value: new THREE.Vector3() }, fade: { value: 7 * reach } },
  vertexShader: `varying vec2 at; varying float far; uniform vec3 shift;
    void main() {
      vec4 seen = modelViewMatrix * vec4(position, 1.0);
      at = position.xy - shift.xy; far = -seen.z; gl_Position = projectionMatrix * seen;
    }`,
  fragmentShader: `varying vec2 at; varying float far; uniform vec3 color; uniform float fade;
    float lines(float step) {
      vec2 place = at / step, width = max(fwidth(place), 1e-6);
      vec2 near = clamp(1.25 - abs(fract(place - 0.5) - 0.5) / width, 0.0, 1.0) * clamp(1.0 - 2.5 * width, 0.0, 1.0);
      return max(near.x, near.y);
    }
    void main() {
      float strength = max(0.45 * lines(${cell.toFixed(6)}), lines(${(5 * cell).toFixed(6)}));
      gl_FragColor = vec4(color, strength * clamp(1.0 - far / fade, 0.0, 1.0));
      #include <colorspace_fragment>
    }`,
}));
stage.add(ground, grid);

function dress() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const air = new THREE.Color(dark ? 0x171b21 : 0xeef1f5);
  stage.background = air;
  stage.fog = new THREE.Fog(air, 4 * reach, 14 * reach);
  ground.material.color.set(dark ? 0x2a3038 : 0xe3e7ec);
  grid.material.uniforms.color.value.set(dark ? 0x56606d : 0xaeb7c2);
  paint();
}

// ------------------------------------------------------------------------------------------------------------- robots

function geometryOf({ kind, size: s, mesh }) {
  if (kind === "box") return new THREE.BoxGeometry(...s);
  if (kind === "sphere") return new THREE.SphereGeometry(s[0], 40, 28);
  if (kind === "ellipsoid") return new THREE.SphereGeometry(1, 40, 28).scale(...s);
  if (kind === "cylinder") return new THREE.CylinderGeometry(s[0], s[0], s[1], 48).rotateX(Math.PI / 2);
  if (kind === "capsule") return new THREE.CapsuleGeometry(s[0], s[1], 12, 32).rotateX(Math.PI / 2);
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
const bodyCount = poses.length / (7 * robots * frames);
const bodies = []; // robot by robot
const skins = []; // materials of the robots, with the opacity each has of its own
const geometries = data.solids.map(geometryOf);
for (let robot = 0; robot < robots; robot++) {
  const own = Array.from({ length: bodyCount }, () => new THREE.Group());
  data.solids.forEach((solid, index) => {
    const [red, green, blue, alpha] = solid.color;
    const opacity = alpha * data.opacity[robot];
    const material = new THREE.MeshStandardMaterial({
      color: new THREE.Color().setRGB(red, green, blue, "srgb"), roughness: 0.55, metalness: 0.08,
      side: solid.kind === "mesh" ? THREE.DoubleSide : THREE.FrontSide,
    });
    skins.push({ material, opacity });
    const mesh = new THREE.Mesh(geometries[index], material);
    mesh.position.set(...solid.pose.slice(0, 3));
    mesh.quaternion.set(...solid.pose.slice(3));
    mesh.castShadow = mesh.receiveShadow = opacity === 1;
    own[solid.body].add(mesh);
  });
  bodies.push(...own);
}
for (const body of bodies) world.add(body);

function seeThrough(on) {
  for (const { material, opacity } of skins) {
    material.opacity = on ? 0.35 * opacity : opacity;
    material.transparent = material.opacity < 1;
    material.depthWrite = material.opacity === 1;
    material.needsUpdate = true;
  }
}

// ------------------------------------------------------------------------------------------------------------ terrain

const terrain = new THREE.Group();
const painted = (color) => new THREE.Color().setRGB(...color, "srgb");
for (const surface of data.terrain.surfaces) {
  const geometry = meshOf(surface), sharp = new THREE.BufferGeometry();
  sharp.setAttribute("position", new THREE.BufferAttribute(floats(surface.edges), 3));
  const material = new THREE.MeshStandardMaterial({
    color: painted(surface.color), roughness: 0.9,
    polygonOffset: true, polygonOffsetFactor: 1, polygonOffsetUnits: 4, // edges are seen
  });
  const line = new THREE.LineBasicMaterial({ color: painted(surface.edge_color) });
  for (const place of data.terrain.places) {
    const mesh = new THREE.Mesh(geometry, material);
    mesh.castShadow = mesh.receiveShadow = true;
    mesh.add(new THREE.LineSegments(sharp, line));
    mesh.position.set(...place);
    terrain.add(mesh);
  }
}
world.add(terrain);

// ------------------------------------------------------------------------------------------------------------- extras

const contactCount = contacts.count, places = robots * contactCount; // of contacts in one frame
const overlay = (color, opacity = 1) => new THREE.MeshStandardMaterial({
  color, roughness: 0.6, transparent: opacity < 1, opacity, depthWrite: opacity === 1, side: THREE.DoubleSide,
});
const instanced = (geometry, material, count) => {
  const mesh = new THREE.InstancedMesh(geometry, material, count);
  mesh.frustumCulled = false;
  return mesh;
};

const inFront = { depthTest: false, transparent: true }; // the centre of mass lies inside the robot
const balls = instanced(new THREE.SphereGeometry(0.022 * size, 32, 20),
  new THREE.MeshBasicMaterial({ color: 0xf2a900, ...inFront }), robots);
balls.renderOrder = 2;
const plumb = new THREE.BufferGeometry(); // lines from the centres of mass to the floor
plumb.setAttribute("position", new THREE.BufferAttribute(new Float32Array(6 * robots), 3));
const plumbLines = new THREE.LineSegments(plumb, new THREE.LineBasicMaterial({ color: 0xf2a900, ...inFront }));
plumbLines.renderOrder = 2;
plumbLines.frustumCulled = false;
const discs = instanced(new THREE.CylinderGeometry(0.02 * size, 0.02 * size, 0.002 * size, 32).rotateX(Math.PI / 2),
  new THREE.MeshBasicMaterial({ color: 0xf2a900 }), robots);

const thickness = 0.009 * size, headLength = 5 * thickness;
const red = overlay(0xd62f2f);
const shafts = instanced(new THREE.CylinderGeometry(1, 1, 1, 20).translate(0, 0.5, 0).rotateX(Math.PI / 2), red, places);
const heads = instanced(new THREE.ConeGeometry(2.2 * thickness, headLength, 24).translate(0, -headLength / 2, 0)
  .rotateX(Math.PI / 2), red, places);

const coneHeight = 0.12 * size; // apex at the contact, opening along the normal
const cones = instanced(new THREE.ConeGeometry(1, 1, 40, 1, true).translate(0, -0.5, 0).rotateX(-Math.PI / 2),
  overlay(0x3b82c4, 0.35), places);

const polygonFaces = [];
for (let robot = 0; robot < robots; robot++) {
  const first = robot * contactCount;
  for (let k = 1; k + 1 < contactCount; k++) polygonFaces.push(first, first + k, first + k + 1);
}
const polygon = new THREE.BufferGeometry();
polygon.setAttribute("position", new THREE.BufferAttribute(new Float32Array(3 * places), 3));
polygon.setIndex(polygonFaces);
const polygons = new THREE.Mesh(polygon, new THREE.MeshBasicMaterial({
  color: 0x2f9e5f, transparent: true, opacity: 0.4, depthWrite: false, side: THREE.DoubleSide,
}));
polygons.frustumCulled = false;

const com = new THREE.Group().add(balls, plumbLines, discs);
const forces = new THREE.Group().add(shafts, heads);
world.add(com, forces, cones, polygons);

const matrix = new THREE.Matrix4(), turn = new THREE.Quaternion(), at = new THREE.Vector3(), scale = new THREE.Vector3();
const arrow = new THREE.Vector3(), up = new THREE.Vector3(0, 0, 1), still = new THREE.Quaternion(), one = new THREE.Vector3(1, 1, 1);
const nowhere = new THREE.Matrix4().makeScale(0, 0, 0);

function drawCenters(frame) {
  for (let robot = 0; robot < robots; robot++) {
    at.fromArray(center, 3 * (robot * frames + frame));
    balls.setMatrixAt(robot, matrix.compose(at, still, one));
    plumb.attributes.position.setXYZ(2 * robot, at.x, at.y, at.z);
    plumb.attributes.position.setXYZ(2 * robot + 1, at.x, at.y, floor);
    at.z = floor + 0.002 * size;
    discs.setMatrixAt(robot, matrix.compose(at, still, one));
  }
  balls.instanceMatrix.needsUpdate = discs.instanceMatrix.needsUpdate = plumb.attributes.position.needsUpdate = true;
}

function drawContacts(frame) {
  for (let place = 0; place < places; place++) {
    const robot = Math.floor(place / contactCount), index = place % contactCount;
    const source = (robot * frames + frame) * contactCount + index;
    at.fromArray(points, 3 * source);
    arrow.fromArray(arrows, 3 * source);
    const length = arrow.length();
    turn.setFromUnitVectors(up, length > 0 ? arrow.clone().divideScalar(length) : up);
    const shaft = Math.max(length - headLength, 0), seen = length > 0;
    shafts.setMatrixAt(place, seen ? matrix.compose(at, turn, scale.set(thickness, thickness, shaft)) : nowhere);
    const headScale = Math.min(1, length / headLength); // a force too small for a head has a small one
    heads.setMatrixAt(place, seen
      ? matrix.compose(arrow.clone().add(at), turn, scale.set(headScale, headScale, headScale)) : nowhere);
    turn.setFromUnitVectors(up, arrow.fromArray(normals, 3 * source));
    const width = friction[source] * coneHeight;
    cones.setMatrixAt(place, active[source] && width > 0
      ? matrix.compose(at, turn, scale.set(width, width, coneHeight)) : nowhere);
    at.fromArray(support, 3 * source);
    polygon.attributes.position.setXYZ(place, at.x, at.y, at.z + 0.003 * size);
  }
  for (const mesh of [shafts, heads, cones]) mesh.instanceMatrix.needsUpdate = true;
  polygon.attributes.position.needsUpdate = true;
}

// -------------------------------------------------------------------------------------------------- switches and time

const shown = {};
function addSwitch(name, on, apply) {
  const label = document.createElement("label"), box = document.createElement("input");
  box.type = "checkbox";
  box.checked = shown[name] = on;
  box.addEventListener("change", () => { shown[name] = box.checked; apply(box.checked); draw(); });
  label.append(box, name);
  element("extras").append(label);
  apply(on);
}
const extras = { "centre of mass": com, "contact forces": forces, "friction cones": cones, "support polygon": polygons };
for (const [name, object] of Object.entries(extras)) {
  object.visible = false;
  if (!data.extras.includes(name)) continue;
  addSwitch(name, data.shown.includes(name), (on) => { object.visible = on; });
}
addSwitch("see-through", false, seeThrough);
if (frames > 1) addSwitch("follow", data.follow, () => {});

let seconds = 0, playing = frames > 1, before = null, waiting = false;
const slider = element("time"), last = (frames - 1) * dt;
slider.max = frames - 1;
element("player").hidden = frames === 1;

function draw() {
  const frame = Math.min(frames - 1, Math.floor(seconds / dt + 1e-6));
  bodies.forEach((body, index) => {
    const robot = Math.floor(index / bodyCount);
    const start = 7 * ((robot * frames + frame) * bodyCount + index % bodyCount);
    body.position.fromArray(poses, start);
    body.quaternion.fromArray(poses, start + 3);
  });
  drawCenters(frame);
  drawContacts(frame);
  if (shown.follow) world.position.fromArray(path, 3 * frame).negate();
  else world.position.set(0, 0, 0);
  // The floor has no end: it stays under the camera, and its lines move.
  ground.position.z = grid.position.z = world.position.z + floor;
  grid.material.uniforms.shift.value.copy(world.position);
  slider.value = frame;
  element("clock").textContent = `${(frame * dt).toFixed(2)} / ${last.toFixed(2)} s`;
  paint();
}

function paint() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; renderer.render(stage, camera); });
}

function play(on) {
  playing = on && frames > 1;
  before = null;
  element("play").textContent = playing ? "\u275a\u275a" : "\u25b6";
  if (playing) requestAnimationFrame(tick);
}

function tick(now) {
  if (!playing) return;
  if (before !== null) {
    seconds += (now - before) / 1000 * Number(element("speed").value);
    if (seconds >= last + dt) seconds %= last + dt;
    draw();
  }
  before = now;
  requestAnimationFrame(tick);
}

function step(count) {
  play(false);
  seconds = Math.min(last, Math.max(0, (Number(slider.value) + count) * dt));
  draw();
}

slider.addEventListener("input", () => { play(false); seconds = Number(slider.value) * dt; draw(); });
element("play").addEventListener("click", () => play(!playing));
addEventListener("keydown", (event) => {
  if (event.key !== " " && event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
  if (event.target.matches?.("label input, select, button")) return; // keys mean something of their own there
  event.preventDefault();
  if (event.key === " ") play(!playing);
  else step((event.key === "ArrowLeft" ? -1 : 1) * (event.shiftKey ? 10 : 1));
});
addEventListener("resize", resize);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", dress);

function resize() {
  camera.aspect = innerWidth / innerHeight;
  camera.updateProjectionMatrix();
  renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
  renderer.setSize(innerWidth, innerHeight, false);
  paint();
}

resize();
dress();
controls.update();
draw();
play(playing);
