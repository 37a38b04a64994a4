// What mice and fingers do to the map: drag, wheel, pinch and tap.

/** A movement that is shorter was meant as a tap. */
const TAP_PIXELS_MAX = 5;

export class Gestures {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {{
   *   pan: (dx: number, dy: number) => void,
   *   zoom: (factor: number, x: number, y: number) => void,
   *   tap: (x: number, y: number) => void,
   *   point: (x: number, y: number) => void,
   * }} target
   */
  constructor(canvas, target) {
    this.canvas = canvas;
    this.target = target;
    /** @type {Map<number, {x: number, y: number}>} */
    this._fingers = new Map();
    this._moved = 0;
    canvas.addEventListener("pointerdown", (event) => this._down(event));
    canvas.addEventListener("pointermove", (event) => this._move(event));
    canvas.addEventListener("pointerup", (event) => this._up(event));
    canvas.addEventListener("pointercancel", (event) => this._fingers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => target.point(-1, -1));
    canvas.addEventListener("wheel", (event) => this._wheel(event), { passive: false });
  }

  /** @param {PointerEvent} event */
  _down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this._fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (this._fingers.size === 1) this._moved = 0;
  }

  /** @param {PointerEvent} event */
  _move(event) {
    const before = this._fingers.get(event.pointerId);
    if (!before) {
      this.target.point(event.offsetX, event.offsetY);
      return;
    }
    const after = { x: event.offsetX, y: event.offsetY };
    const [dx, dy] = [after.x - before.x, after.y - before.y];
    this._moved += Math.abs(dx) + Math.abs(dy);
    const other = [...this._fingers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) this._pinch(before, after, other);
    else if (this._moved > TAP_PIXELS_MAX) this.target.pan(dx, dy);
    this._fingers.set(event.pointerId, after);
  }

  /**
   * @param {{x: number, y: number}} before @param {{x: number, y: number}} after
   * @param {{x: number, y: number}} other the finger that stays
   */
  _pinch(before, after, other) {
    const apart = (/** @type {{x: number, y: number}} */ each) =>
      Math.hypot(each.x - other.x, each.y - other.y);
    this.target.pan((after.x - before.x) / 2, (after.y - before.y) / 2);
    const [x, y] = [(after.x + other.x) / 2, (after.y + other.y) / 2];
    this.target.zoom(apart(after) / Math.max(1, apart(before)), x, y);
  }

  /** @param {PointerEvent} event */
  _up(event) {
    const isTap = this._fingers.delete(event.pointerId) && this._moved <= TAP_PIXELS_MAX;
    if (isTap && !this._fingers.size) this.target.tap(event.offsetX, event.offsetY);
  }

  /** @param {WheelEvent} event */
  _wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    const amount = Math.max(-240, Math.min(240, event.deltaY * lines));
    this.target.zoom(Math.exp(-amount / 320), event.offsetX, event.offsetY);
  }
}
