// Where everything is on the map: groups of nodes, nodes of devices, devices of partitions. Pure;
// the unit is the side of a device.

/**
 * @typedef {import("./fleet.js").Device} Device
 * @typedef {import("./fleet.js").Fleet} Fleet
 * @typedef {{x: number, y: number, size: number, device: Device}} Cell
 * @typedef {{x: number, y: number, size: number, name: string}} Frame a device with partitions
 * @typedef {{
 *   x: number, y: number, width: number, height: number, node: string,
 *   cells: Cell[], frames: Frame[],
 * }} Tile a node, or the part of it that is in a group
 * @typedef {{
 *   x: number, y: number, width: number, height: number, name: string, tiles: Tile[],
 *   devices: number,
 * }} Group
 * @typedef {{
 *   width: number, height: number, groups: Group[], cells: Map<string, {cell: Cell, tile: Tile}>,
 * }} Layout
 */

export const TITLE = 1.5;
const LABEL = 0.85;
const PADDING = 0.3;
/** So that there is room for a name. */
const TILE_WIDTH_MIN = 3;
const GAP = 0.5;
const GROUP_PADDING = 0.5;
const GROUP_GAP = 1;
/** Widths that are tried, as parts of the one that would do if nothing were left over. */
const WIDTHS = [1, 0.85, 1.1, 1.25, 1.5, 2];

/**
 * @param {Fleet} fleet
 * @param {(device: Device) => string} groupOf
 * @param {number} aspect of the place for it, width by height
 * @returns {Layout}
 */
export function arrange(fleet, groupOf, aspect) {
  const groups = [...grouped(fleet, groupOf)]
    .sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }))
    .map(([name, nodes]) => group(name, nodes, aspect));
  const { width, height } = packed(groups, GROUP_GAP, aspect);
  const cells = new Map();
  for (const each of groups) for (const tile of each.tiles) place(each, tile, cells);
  return { width, height, groups, cells };
}

/** @param {Fleet} fleet @param {(device: Device) => string} groupOf */
function grouped(fleet, groupOf) {
  /** @type {Map<string, Map<string, Device[]>>} */
  const groups = new Map();
  for (const device of fleet.devices.values()) {
    const name = groupOf(device);
    let nodes = groups.get(name);
    if (!nodes) groups.set(name, (nodes = new Map()));
    const devices = nodes.get(device.node);
    if (devices) devices.push(device);
    else nodes.set(device.node, [device]);
  }
  return groups;
}

/** @param {string} name @param {Map<string, Device[]>} nodes @param {number} aspect @returns {Group} */
function group(name, nodes, aspect) {
  const tiles = [...nodes]
    .sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }))
    .map(([node, devices]) => tile(node, devices));
  const { width, height } = packed(tiles, GAP, aspect);
  const count = tiles.reduce((sum, each) => sum + each.cells.length, 0);
  return {
    x: 0,
    y: 0,
    width: width + 2 * GROUP_PADDING,
    height: height + titleOf(name) + GROUP_PADDING,
    name,
    tiles,
    devices: count,
  };
}

/** What is above the nodes of a group. @param {string} name */
function titleOf(name) {
  return name ? TITLE : GROUP_PADDING;
}

/** From places in the group and in the tile to places on the map. */
function place(
  /** @type {Group} */ within,
  /** @type {Tile} */ tile,
  /** @type {Map<string, {cell: Cell, tile: Tile}>} */ cells,
) {
  tile.x += within.x + GROUP_PADDING;
  tile.y += within.y + titleOf(within.name);
  for (const each of tile.frames) {
    each.x += tile.x;
    each.y += tile.y;
  }
  for (const cell of tile.cells) {
    cell.x += tile.x;
    cell.y += tile.y;
    cells.set(cell.device.id, { cell, tile });
  }
}

/** The devices of a node: a block of rows for each driver. */
function tile(/** @type {string} */ node, /** @type {Device[]} */ devices) {
  /** @type {Map<string, Map<string, Device[]>>} */
  const drivers = new Map();
  devices.forEach((device, n) => {
    let whole = drivers.get(device.driver);
    if (!whole) drivers.set(device.driver, (whole = new Map()));
    const name = device.counterSet ? `${device.pool}/${device.counterSet}` : `\n${n}`;
    const parts = whole.get(name);
    if (parts) parts.push(device);
    else whole.set(name, [device]);
  });
  /** @type {Tile} */
  const made = { x: 0, y: 0, width: 0, height: LABEL, node, cells: [], frames: [] };
  for (const whole of drivers.values()) addBlock(made, [...whole.values()]);
  made.width = Math.max(made.width + 2 * PADDING, TILE_WIDTH_MIN);
  made.height += PADDING;
  return made;
}

/** @param {Tile} made @param {Device[][]} whole physical devices, with their partitions */
function addBlock(made, whole) {
  const parts = Math.max(...whole.map((each) => each.length));
  const size = parts > 9 ? 3 : parts > 1 ? 2 : 1;
  const columns = columnsOf(whole.length);
  whole.forEach((devices, n) => {
    const x = PADDING + (n % columns) * size;
    const y = made.height + Math.floor(n / columns) * size;
    if (devices.length > 1) made.frames.push({ x, y, size, name: devices[0].counterSet });
    made.cells.push(...partitions(devices, x, y, size));
  });
  made.width = Math.max(made.width, Math.min(columns, whole.length) * size);
  made.height += Math.ceil(whole.length / columns) * size;
}

/** @param {Device[]} devices @param {number} x @param {number} y @param {number} size */
function partitions(devices, x, y, size) {
  if (devices.length === 1) return [{ x, y, size, device: devices[0] }];
  const columns = Math.ceil(Math.sqrt(devices.length));
  const margin = 0.08 * size;
  const step = (size - 2 * margin) / columns;
  return devices.map((device, n) => ({
    x: x + margin + (n % columns) * step,
    y: y + margin + Math.floor(n / columns) * step,
    size: step,
    device,
  }));
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

/**
 * The cell at a place; the smallest, where partitions are inside a device.
 * @param {Layout} layout @param {number} x @param {number} y
 */
export function cellAt(layout, x, y) {
  const tile = tileAt(layout, x, y);
  return tile?.cells.find((each) => isIn({ ...each, width: each.size, height: each.size }, x, y));
}

/** @param {Layout} layout @param {number} x @param {number} y */
export function tileAt(layout, x, y) {
  const within = layout.groups.find((each) => isIn(each, x, y));
  return within?.tiles.find((each) => isIn(each, x, y));
}

/**
 * @param {{x: number, y: number, width: number, height: number}} box
 * @param {number} x @param {number} y
 */
function isIn(box, x, y) {
  return x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
}

/**
 * The next device from one in a direction, or the first.
 * @param {Layout} layout
 * @param {string} from
 * @param {{x: number, y: number}} direction
 * @returns {string}
 */
export function neighbour(layout, from, direction) {
  const here = layout.cells.get(from)?.cell;
  if (!here) return layout.cells.keys().next().value ?? "";
  const [x, y] = middle(here);
  let [best, least] = [from, Infinity];
  for (const [id, { cell }] of layout.cells) {
    const [dx, dy] = [middle(cell)[0] - x, middle(cell)[1] - y];
    const along = dx * direction.x + dy * direction.y;
    const across = Math.abs(dx * direction.y) + Math.abs(dy * direction.x);
    if (along > 0.01 && across <= along * 2 && along + 3 * across < least) {
      [best, least] = [id, along + 3 * across];
    }
  }
  return best;
}

/** @param {Cell} cell */
function middle(cell) {
  return [cell.x + cell.size / 2, cell.y + cell.size / 2];
}
