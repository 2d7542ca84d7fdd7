// Switches, the camera's buttons, and time.

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
for (const view of Object.keys(data.views)) {
  const button = document.createElement("button");
  button.textContent = view;
  button.addEventListener("click", () => look(view));
  element("views").append(button);
}
for (const [name, object] of Object.entries(extras)) {
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
  drawRobots(frame);
  for (const [group, move] of draws) if (group.visible) move(frame);
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
  requestAnimationFrame(() => { waiting = false; render(); });
}

function render() {
  renderer.render(stage, camera);
  placeLabels();
}

// Without a GPU a large picture takes longer than a frame: while it plays, it has fewer pixels then.
const SLOW = 45, QUICK = 25, FEWEST = 0.35; // ms between pictures; part of the pixels along a side
let sharpness = 1, spent = 0;

function keepPace(passed) {
  spent = 0.7 * spent + 0.3 * passed;
  const wanted = spent > SLOW ? Math.max(FEWEST, 0.8 * sharpness) : spent < QUICK ? Math.min(1, 1.1 * sharpness) : sharpness;
  if (wanted !== sharpness) sharpen(wanted);
}

function sharpen(wanted) {
  sharpness = wanted;
  spent = (SLOW + QUICK) / 2; // what was measured was another size
  resize();
}

function play(on) {
  playing = on && frames > 1;
  before = null;
  if (!playing && sharpness < 1) sharpen(1);
  element("play").textContent = playing ? "\u275a\u275a" : "\u25b6";
  if (playing) requestAnimationFrame(tick);
}

function tick(now) {
  if (!playing) return;
  if (before !== null) {
    keepPace(now - before);
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
  renderer.setPixelRatio(sharpness * Math.min(devicePixelRatio, 2));
  renderer.setSize(innerWidth, innerHeight, false);
  paint();
}

resize();
dress();
look("start");
draw();
play(playing);
