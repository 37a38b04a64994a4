// The map: a canvas with a row for each node and a square for each device.

const SIZE = 14;
const GAP = 3;
const LABEL = 160;

export const COLOURS = {
  free: "#2e7d32",
  shared: "#7cb342",
  allocated: "#1565c0",
  prepared: "#4527a0",
  blocked: "#8d6e63",
  tainted: "#ef6c00",
  unhealthy: "#c62828",
  incomplete: "#757575",
  withdrawn: "#ad1457",
};

export class FleetMap {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {(device: any) => void} selected
   */
  constructor(canvas, selected) {
    this.canvas = canvas;
    /** @type {{x: number, y: number, device: any}[]} */
    this.places = [];
    canvas.addEventListener("click", (event) => {
      const place = this.at(event.offsetX, event.offsetY);
      if (place) selected(place.device);
    });
  }

  /** @param {number} x @param {number} y */
  at(x, y) {
    return this.places.find(
      (each) => x >= each.x && x < each.x + SIZE && y >= each.y && y < each.y + SIZE,
    );
  }

  /** @param {Map<string, any[]>} nodes */
  draw(nodes) {
    const ratio = window.devicePixelRatio || 1;
    const widest = Math.max(1, ...[...nodes.values()].map((each) => each.length));
    const width = LABEL + widest * (SIZE + GAP);
    const height = nodes.size * (SIZE + GAP) + GAP;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.places = [];
    let y = GAP;
    for (const [node, devices] of nodes) {
      context.fillStyle = getComputedStyle(this.canvas).color;
      context.fillText(node || "withdrawn", 0, y + SIZE / 2, LABEL - 8);
      devices.forEach((device, n) => {
        const x = LABEL + n * (SIZE + GAP);
        context.fillStyle = COLOURS[device.state];
        context.fillRect(x, y, SIZE, SIZE);
        this.places.push({ x, y, device });
      });
      y += SIZE + GAP;
    }
  }
}
