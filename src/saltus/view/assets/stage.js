// The replay page draws the scene that saltus/view/replay.py wrote into #data. World frame, z up, metres.
// This file: the light, the floor, the camera. Scripts follow one another in one page: this one, crowd.js, robots.js,
// extras.js, player.js.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const { frames, dt, size, floor, parts } = data;
const element = (id) => document.getElementById(id);

function bytes(text) {
  const binary = atob(text), found = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index++) found[index] = binary.charCodeAt(index);
  return found;
}
function floats(text) {
  return new Float32Array(bytes(text).buffer);
}

const path = floats(data.path); // (frames, 3)
const robotCount = parts.reduce((sum, part) => sum + part.robots, 0);
const CROWD = 24; // from so many robots on they are drawn with less care, without shadows or smoothed edges

// ------------------------------------------------------------------------------------------------ stage: light, floor

const renderer = new THREE.WebGLRenderer({ canvas: element("canvas"), antialias: robotCount < CROWD });
renderer.shadowMap.enabled = robotCount < CROWD;
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
const controls = new THREE.OrbitControls(camera, renderer.domElement);
controls.target.copy(middle);
controls.maxDistance = 12 * reach;
controls.addEventListener("change", () => robotCount < CROWD ? paint() : draw()); // who is near may be another one

function look(view) {
  camera.position.set(...data.views[view]);
  controls.target.copy(middle);
  controls.update();
  paint();
}

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
const floorMaterial = robotCount < CROWD
  ? new THREE.MeshStandardMaterial({ roughness: 1, ...behind }) : new THREE.MeshBasicMaterial(behind); // the fastest
const ground = new THREE.Mesh(plane, floorMaterial);
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
