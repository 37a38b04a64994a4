// The page: reads everything once, then follows the stream. What comes from the cluster is put on
// the page as text, never as markup.

import { follow, get } from "./api.js";
import { Fleet } from "./fleet.js";
import { COLOURS, FleetMap } from "./map.js";

const part = (/** @type {string} */ id) => document.getElementById(id);

/** @param {string} tag @param {string} text */
function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

const page = {
  fleet: /** @type {Fleet | null} */ (null),
  pods: new Map(),
  end: () => {},
};
const map = new FleetMap(
  /** @type {HTMLCanvasElement} */ (part("canvas")),
  (device) => show(`${device.driver}/${device.pool}/${device.name}`, device),
);

async function start() {
  page.end();
  try {
    const [fleet, pods] = await Promise.all([get("fleet"), get("pods?pending")]);
    page.fleet = new Fleet(fleet);
    page.pods = new Map(pods.pods.map((each) => [`${each.namespace}/${each.name}`, each]));
    draw();
    page.end = follow(Math.min(fleet.revision, pods.revision), {
      update,
      reset: start,
      state: (text) => (part("connection").textContent = text),
    });
  } catch (error) {
    part("connection").textContent = String(error.message);
  }
}

function update(change) {
  if (change.fleet) page.fleet.apply(change.fleet);
  for (const each of change.pods?.changed ?? []) {
    const name = `${each.namespace}/${each.name}`;
    if (each.pending) page.pods.set(name, each);
    else page.pods.delete(name);
  }
  for (const name of change.pods?.gone ?? []) page.pods.delete(name);
  draw();
}

let isDue = false;
function draw() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    map.draw(page.fleet.byNode());
    part("summary").replaceChildren(
      ...page.fleet.summary.map((each) =>
        element("li", `${each.model || each.driver}: ${each.free} of ${each.devices} free`),
      ),
    );
    part("legend").replaceChildren(
      ...page.fleet.states.map((state) => {
        const item = element("li", state);
        item.style.setProperty("--colour", COLOURS[state]);
        return item;
      }),
    );
    part("pending").replaceChildren(...[...page.pods.values()].map(pending));
  });
}

function pending(pod) {
  const item = element("li", "");
  const button = element("button", `${pod.namespace}/${pod.name}`);
  button.addEventListener("click", () => explain(pod));
  item.append(button, element("span", pod.why));
  return item;
}

async function explain(pod) {
  const path = ["pod", pod.namespace, pod.name].map(encodeURIComponent).join("/");
  try {
    show(`pod ${pod.namespace}/${pod.name}`, await get(`explain/${path}`));
  } catch (error) {
    show(`pod ${pod.namespace}/${pod.name}`, { error: error.message });
  }
}

function show(title, value) {
  part("details").replaceChildren(
    element("h3", title),
    element("pre", JSON.stringify(value, null, 2)),
  );
}

// The token is in the cookie from now on, and need not stay in the history of the browser.
const here = new URL(location.href);
if (here.searchParams.has("token")) {
  here.searchParams.delete("token");
  history.replaceState(null, "", here);
}
start();
