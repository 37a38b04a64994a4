// Where everything is on the map: groups of nodes, nodes of devices, devices of partitions. Pure;
// the unit is the side of a device. Places in a node are relative to it, so that grouping the nodes
// in another way moves only nodes.

/**
 * @typedef {import("./fleet.js").Device} Device
 * @typedef {import("./fleet.js").Fleet} Fleet
 * @typedef {{x: number, y: number, width: number, height: number, device: Device,
 *   isDimmed: boolean, color: string, frame: Frame | null}} Cell
 * @typedef {{x: number, y: number, width: number, height: number, name: string, cells: Cell[]}} Frame
 *   a physical device, with the partitions that share its counters
 * @typedef {{x: number, y: number, width: number, height: number, driver: string,
 *   devices: Device[]}} Strip all devices of a driver on a node, which are not shown one by one
 * @typedef {{
 *   x: number, y: number, width: number, height: number, node: string,
 *   cells: Cell[], frames: Frame[], strips: Strip[], look: number, isPainted: boolean,
 * }} Tile a node, or the part of it that is in a group
 * @typedef {{
 *   x: number, y: number, width: number, height: number, name: string, tiles: Tile[],
 *   title: number, devices: number,
 * }} Group `title` is the height of the title
 * @typedef {{
 *   width: number, height: number, groups: Group[], tiles: Tile[],
 *   cells: Map<string, {cell: Cell, tile: Tile}>,
 * }} Layout
 * @typedef {{tiles: Tile[], cells: Map<string, {cell: Cell, tile: Tile}>}} Nodes
 */

const TITLE = 1.5;
/** Pixels of the title of a group, and of the margin around the map. */
export const TITLE_PIXELS = 20;
const LABEL = 0.85;
const PADDING = 0.3;
/** So that there is room for a name. */
const TILE_WIDTH_MIN = 3;
const STRIP_HEIGHT = 0.5;
/** A device with partitions is wider, so that you can tell its slices apart. */
const FRAME_WIDTH = 2;
const GAP = 0.5;
const GROUP_PADDING = 0.5;
const GROUP_GAP = 1;
/** Groups that have titles of a readable size; of more, only some can be read. */
const TITLED_MAX = 60;
/** Groups side by side that are tried. */
const COLUMNS_MAX = 4;
/** A longer task would delay input. */
const PAUSE_AFTER_MS = 12;
/** Widths that are tried, as parts of the one that would do if nothing were left over. */
const WIDTHS = [1, 0.85, 1.1, 1.25, 1.5, 2];

/**
 * Returns all nodes with their devices, in natural order.
 * @param {Fleet} fleet @param {Set<string>} collapsed drivers that are shown as a strip
 * @returns {Nodes}
 */
export function nodesOf(fleet, collapsed) {
  /** @type {Map<string, Device[]>} */
  const nodes = new Map();
  for (const device of fleet.devices.values()) {
    const devices = nodes.get(device.node);
    if (devices) devices.push(device);
    else nodes.set(device.node, [device]);
  }
  const tiles = inOrder([...nodes], ([name]) => name).map(([node, devices]) => tileOf(node, devices, collapsed));
  return { tiles, cells: cellsOf(tiles) };
}

/** @param {Tile[]} tiles */
function cellsOf(tiles) {
  const cells = new Map();
  for (const tile of tiles) for (const cell of tile.cells) cells.set(cell.device.id, { cell, tile });
  return cells;
}

/**
 * Returns a layout in which every node is in the group of its first device.
 * @param {Nodes} nodes @param {(device: Device) => string} groupOf
 * @param {{width: number, height: number}} place pixels for the map
 * @returns {Layout}
 */
export function arrangeNodes({ tiles, cells }, groupOf, place) {
  /** @type {Map<string, Tile[]>} */
  const groups = new Map();
  for (const tile of tiles) add(groups, groupOf(firstOf(tile)), tile);
  return titledGroups(groups, cells, place);
}

/** @param {Tile} tile */
function firstOf({ cells, strips }) {
  return cells.length ? cells[0].device : strips[0].devices[0];
}

/**
 * Returns a layout in which the devices of a node can be in several groups. It takes long for a large
 * fleet, so it pauses for input.
 * @param {Nodes} nodes @param {(device: Device) => string} groupOf
 * @param {{width: number, height: number}} place pixels for the map
 * @param {() => Promise<void>} pause
 * @returns {Promise<Layout>}
 */
export async function arrangeDevices(nodes, groupOf, place, pause) {
  /** @type {Map<string, Tile[]>} */
  const groups = new Map();
  let due = performance.now() + PAUSE_AFTER_MS;
  for (const tile of nodes.tiles) {
    if (performance.now() > due) {
      await pause();
      due = performance.now() + PAUSE_AFTER_MS;
    }
    /** @type {Map<string, Device[]>} */
    const parts = new Map();
    for (const { device } of tile.cells) add(parts, groupOf(device), device);
    for (const strip of tile.strips) for (const device of strip.devices) add(parts, groupOf(device), device);
    const collapsed = new Set(tile.strips.map((each) => each.driver));
    for (const [name, devices] of parts) {
      add(groups, name, parts.size === 1 ? tile : tileOf(tile.node, devices, collapsed));
    }
  }
  const isWhole = [...groups.values()].reduce((sum, each) => sum + each.length, 0) === nodes.tiles.length;
  return titledGroups(groups, isWhole ? nodes.cells : cellsOf([...groups.values()].flat()), place);
}

/**
 * @template Item
 * @param {Map<string, Item[]>} lists @param {string} name @param {Item} item
 */
function add(lists, name, item) {
  const list = lists.get(name);
  if (list) list.push(item);
  else lists.set(name, [item]);
}

/**
 * Packs groups with titles that can be read when the whole map is in sight.
 * @param {Map<string, Tile[]>} named @param {Layout["cells"]} cells
 * @param {{width: number, height: number}} place @returns {Layout}
 */
function titledGroups(named, cells, { width, height }) {
  const groups = inOrder([...named], ([name]) => name);
  const isTitled = groups.some(([name]) => name) && groups.length <= TITLED_MAX;
  let layout = packedGroups(groups, cells, width / height, TITLE);
  for (let round = 0; isTitled && round < 2; round++) {
    const scale = Math.min(width / layout.width, height / layout.height);
    const title = Math.max(TITLE, TITLE_PIXELS / scale);
    if (title === groupsTitle(layout)) break;
    layout = packedGroups(groups, cells, width / height, title);
  }
  return layout;
}

/** @param {Layout} layout */
function groupsTitle({ groups }) {
  return groups.find((each) => each.name)?.title;
}

/**
 * Packs groups side by side, in the shape in which they are seen largest.
 * @param {[string, Tile[]][]} ordered @param {Layout["cells"]} cells @param {number} aspect
 * @param {number} title its height
 * @returns {Layout}
 */
function packedGroups(ordered, cells, aspect, title) {
  const pack = (/** @type {number} */ shape) => {
    const groups = ordered.map(([name, tiles]) => groupOfTiles(name, tiles, shape, title));
    return { groups, ...packed(groups, GROUP_GAP, aspect) };
  };
  const counts = Array.from({ length: Math.min(ordered.length, COLUMNS_MAX) }, (_, n) => n + 1);
  // So many groups side by side, of so many rows each, fill the place.
  const shapes = [aspect, ...counts.map((columns) => (aspect * Math.ceil(ordered.length / columns)) / columns)];
  const sides = shapes.map((shape) => {
    const { width, height } = pack(shape);
    return Math.max(width / aspect, height);
  });
  const { groups, width, height } = pack(shapes[sides.indexOf(Math.min(...sides))]);
  for (const group of groups) {
    for (const tile of group.tiles) {
      tile.x += group.x + GROUP_PADDING;
      tile.y += group.y + group.title;
    }
  }
  return { width, height, groups, tiles: groups.flatMap((each) => each.tiles), cells };
}

/** @param {string} name @param {Tile[]} tiles @param {number} aspect @param {number} height of the title @returns {Group} */
function groupOfTiles(name, tiles, aspect, height) {
  const box = packed(tiles, GAP, aspect);
  const title = name ? height : GROUP_PADDING;
  return {
    ...{ x: 0, y: 0, name, tiles, title },
    devices: tiles.reduce((sum, each) => sum + physicalDevices(each), 0),
    width: box.width + 2 * GROUP_PADDING,
    height: box.height + title + GROUP_PADDING,
  };
}

/** @param {Tile} tile */
function physicalDevices({ cells, frames }) {
  const partitions = frames.reduce((sum, each) => sum + each.cells.length, 0);
  return cells.length - partitions + frames.length;
}

/**
 * Returns items in natural order of their names: numbers count as numbers.
 * @template Item
 * @param {Item[]} items @param {(item: Item) => string} nameOf
 */
function inOrder(items, nameOf) {
  // A collator would compare 10,000 names in half a second.
  const keyed = items.map((item) => ({
    item,
    key: nameOf(item).replace(/\d+/g, (digits) => digits.padStart(12, "0")),
  }));
  keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return keyed.map((each) => each.item);
}

/**
 * The devices of a node: a block of rows for each driver, and a strip for each collapsed one.
 * @param {string} node @param {Device[]} devices @param {Set<string>} collapsed @returns {Tile}
 */
function tileOf(node, devices, collapsed) {
  /** @type {Map<string, Device[]>} */
  const drivers = new Map();
  for (const device of devices) add(drivers, device.driver, device);
  /** @type {Tile} */
  const tile = {
    ...{ x: 0, y: 0, width: 0, height: LABEL, node },
    ...{ cells: [], frames: [], strips: [], look: -1, isPainted: false },
  };
  for (const [driver, own] of drivers) if (!collapsed.has(driver)) addBlock(tile, own);
  tile.width = Math.max(tile.width + 2 * PADDING, TILE_WIDTH_MIN);
  const strips = [...drivers].filter(([driver]) => collapsed.has(driver)).sort(([a], [b]) => (a < b ? -1 : 1));
  strips.forEach(([driver, own], n) => {
    const width = (tile.width - 2 * PADDING) / strips.length;
    const place = { x: PADDING + n * width, y: tile.height + 0.1, width, height: STRIP_HEIGHT - 0.1 };
    tile.strips.push({ ...place, driver, devices: own });
  });
  tile.height += PADDING + (strips.length ? STRIP_HEIGHT : 0);
  return tile;
}

/** @param {Tile} tile @param {Device[]} devices of one driver */
function addBlock(tile, devices) {
  /** @type {Map<string, Device[]>} */
  const frames = new Map();
  /** @type {(Device | Device[])[]} */
  const whole = [];
  for (const device of devices) {
    const name = device.counterSet && `${device.pool}/${device.counterSet}`;
    const known = name && frames.get(name);
    if (known) known.push(device);
    else if (name) frames.set(name, addTo(whole, [device]));
    else whole.push(device);
  }
  const width = [...frames.values()].some((each) => each.length > 1) ? FRAME_WIDTH : 1;
  const columns = columnsOf(whole.length);
  whole.forEach((each, n) => {
    const box = {
      x: PADDING + (n % columns) * width,
      y: tile.height + Math.floor(n / columns),
      ...{ width, height: 1 },
    };
    if (!Array.isArray(each)) tile.cells.push(cellOf(box, each, null));
    else if (each.length === 1) tile.cells.push(cellOf(box, each[0], null));
    else addFrame(tile, box, each);
  });
  tile.width = Math.max(tile.width, Math.min(columns, whole.length) * width);
  tile.height += Math.ceil(whole.length / columns);
}

/**
 * @template Item
 * @param {any[]} items @param {Item} item @returns {Item}
 */
function addTo(items, item) {
  items.push(item);
  return item;
}

/**
 * @param {{x: number, y: number, width: number, height: number}} box
 * @param {Device} device @param {Frame | null} frame @returns {Cell}
 */
function cellOf(box, device, frame) {
  return { ...box, device, isDimmed: false, color: "", frame };
}

/**
 * A physical device: its partitions in lanes, each at its place and in its width.
 * @param {Tile} tile @param {{x: number, y: number, width: number, height: number}} box
 * @param {Device[]} devices
 */
function addFrame(tile, box, devices) {
  /** @type {Frame} */
  const frame = { ...box, name: devices[0].counterSet, cells: [] };
  const lanes = lanesOf(devices);
  const [top, side] = [0.16, 0.03];
  const height = (1 - top - side) / lanes.length;
  lanes.forEach((lane, n) => {
    for (const { device, start, width } of lane) {
      const place = {
        x: box.x + side + start * (box.width - 2 * side),
        y: box.y + top + n * height,
        width: width * (box.width - 2 * side),
        height,
      };
      frame.cells.push(cellOf(place, device, frame));
    }
  });
  tile.frames.push(frame);
  tile.cells.push(...frame.cells);
}

/**
 * Returns rows of partitions that do not overlap, the widest partitions first. Places and widths are
 * fractions of the physical device.
 * @param {Device[]} devices
 */
export function lanesOf(devices) {
  const parts = devices.map((device) => {
    const { start, width, of } = device.placement ?? { start: -1, width: 1, of: 1 };
    return { device, start: start / of, width: width / of };
  });
  parts.sort((a, b) => b.width - a.width || (a.device.model < b.device.model ? -1 : a.device.model > b.device.model ? 1 : 0) || a.start - b.start);
  /** @type {{model: string, end: number, parts: typeof parts}[]} */
  const lanes = [];
  for (const part of parts) {
    const { model } = part.device;
    const fits = (/** @type {{model: string, end: number}} */ lane) =>
      lane.model === model && (part.start < 0 ? lane.end + part.width : lane.end) <= (part.start < 0 ? 1 : part.start) + 1e-6;
    let lane = lanes.find(fits);
    if (!lane) lanes.push((lane = { model, end: 0, parts: [] }));
    if (part.start < 0) part.start = lane.end;
    lane.end = part.start + part.width;
    lane.parts.push(part);
  }
  return lanes.map((each) => each.parts);
}

/** @param {number} count */
function columnsOf(count) {
  if (count <= 4) return count;
  return count <= 8 ? 4 : Math.max(8, Math.ceil(Math.sqrt(count * 2)));
}

/** Puts things in rows of the width at which they are seen largest; how much they take. */
function packed(
  /** @type {{x: number, y: number, width: number, height: number}[]} */ things,
  /** @type {number} */ gap,
  /** @type {number} */ aspect,
) {
  const area = things.reduce((sum, each) => sum + (each.width + gap) * (each.height + gap), 0);
  const widest = things.reduce((most, each) => Math.max(most, each.width), 0);
  const ideal = Math.sqrt(area * aspect) + gap;
  let [best, least] = [ideal, Infinity];
  for (const factor of WIDTHS) {
    const { width, height } = flow(things, gap, Math.max(ideal * factor, widest));
    const side = Math.max(width / aspect, height);
    if (side < least) [best, least] = [ideal * factor, side];
  }
  return flow(things, gap, Math.max(best, widest));
}

/** Puts things side by side in rows; how much they take. */
function flow(
  /** @type {{x: number, y: number, width: number, height: number}[]} */ things,
  /** @type {number} */ gap,
  /** @type {number} */ widthMax,
) {
  let [x, y, row, width] = [0, 0, 0, 0];
  for (const each of things) {
    if (x > 0 && x + each.width > widthMax) {
      y += row + gap;
      [x, row] = [0, 0];
    }
    each.x = x;
    each.y = y;
    x += each.width + gap;
    row = Math.max(row, each.height);
    width = Math.max(width, x - gap);
  }
  return { width, height: y + row };
}

/** @param {Layout} layout @param {number} x @param {number} y @returns {Tile | undefined} */
export function tileAt(layout, x, y) {
  const group = layout.groups.find((each) => isIn(each, x, y));
  return group?.tiles.find((each) => isIn(each, x, y));
}

/**
 * What is at a place of a node: a cell, a physical device, or a strip.
 * @param {Tile} tile @param {number} x @param {number} y places on the map
 */
export function partAt(tile, x, y) {
  const has = (/** @type {{x: number, y: number, width: number, height: number}} */ each) =>
    isIn(each, x - tile.x, y - tile.y);
  return { cell: tile.cells.find(has), frame: tile.frames.find(has), strip: tile.strips.find(has) };
}

/**
 * @param {{x: number, y: number, width: number, height: number}} box
 * @param {number} x @param {number} y
 */
function isIn(box, x, y) {
  return x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
}

/**
 * Returns the place of a device on the map.
 * @param {Layout} layout @param {string} id
 * @returns {{x: number, y: number, width: number, height: number} | null}
 */
export function placeOf(layout, id) {
  const found = layout.cells.get(id);
  if (!found) return null;
  const { cell, tile } = found;
  return { x: tile.x + cell.x, y: tile.y + cell.y, width: cell.width, height: cell.height };
}

/**
 * The next device from one in a direction, or the first.
 * @param {Layout} layout
 * @param {string} from
 * @param {{x: number, y: number}} direction
 * @returns {string}
 */
export function neighbour(layout, from, direction) {
  const here = layout.cells.get(from);
  if (!here) return layout.cells.keys().next().value ?? "";
  const [x, y] = middle(here);
  let [best, least] = [from, Infinity];
  for (const [id, each] of layout.cells) {
    const [dx, dy] = [middle(each)[0] - x, middle(each)[1] - y];
    const along = dx * direction.x + dy * direction.y;
    const across = Math.abs(dx * direction.y) + Math.abs(dy * direction.x);
    if (along > 0.01 && across <= along * 2 && along + 3 * across < least) {
      [best, least] = [id, along + 3 * across];
    }
  }
  return best;
}

/** @param {{cell: Cell, tile: Tile}} place */
function middle({ cell, tile }) {
  return [tile.x + cell.x + cell.width / 2, tile.y + cell.y + cell.height / 2];
}
