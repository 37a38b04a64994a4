// A picture of columns of boxes, and lines between boxes: how one thing came to another.

import { h } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {{key: string, content: any, tone?: string}} Box
 * @typedef {{title: string, boxes: Box[], nothing: string}} PictureColumn
 * @typedef {{from: string, to: string, tone?: string}} Line
 */

/**
 * @param {string} label what the picture says, for those who do not see it
 * @param {PictureColumn[]} columns
 * @param {Line[]} lines
 */
export function picture(label, columns, lines) {
  /** @type {Map<string, HTMLElement>} */
  const places = new Map();
  const shown = columns.map((column) =>
    h(
      "div",
      { class: "column" },
      h("h3", null, column.title),
      h(
        "ul",
        { "aria-label": column.title },
        column.boxes.map((box) => {
          const made = h("li", { class: `box ${box.tone ?? ""}` }, box.content);
          places.set(box.key, made);
          return made;
        }),
      ),
      column.boxes.length ? null : h("p", { class: "quiet" }, column.nothing),
    ),
  );
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("aria-hidden", "true");
  const element = h("div", { class: "picture", role: "group", "aria-label": label }, svg, shown);
  const boxes = columns.map((column) => column.boxes.map((box) => [box.key, box.tone]));
  // The same picture stays in its place when the view shows itself again.
  Object.assign(element, { patchKey: JSON.stringify([element.textContent, boxes, lines]) });
  new ResizeObserver(() => draw(element, svg, places, lines)).observe(element);
  return element;
}

/**
 * @param {HTMLElement} element @param {SVGElement} svg
 * @param {Map<string, HTMLElement>} places @param {Line[]} lines
 */
function draw(element, svg, places, lines) {
  const origin = element.getBoundingClientRect();
  svg.setAttribute("viewBox", `0 0 ${origin.width} ${origin.height}`);
  svg.replaceChildren();
  for (const each of lines) {
    const from = places.get(each.from)?.getBoundingClientRect();
    const to = places.get(each.to)?.getBoundingClientRect();
    // Where columns are below each other, their order says the same.
    if (!from || !to || from.right > to.left) continue;
    const [x, y] = [from.right - origin.left, from.top + from.height / 2 - origin.top];
    const [toX, toY] = [to.left - origin.left, to.top + to.height / 2 - origin.top];
    const half = (x + toX) / 2;
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("d", `M ${x} ${y} C ${half} ${y}, ${half} ${toY}, ${toX} ${toY}`);
    line.setAttribute("class", each.tone ?? "");
    svg.append(line);
  }
}
