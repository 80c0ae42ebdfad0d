// The map: every row a point. WebGL2 draws them in one call; where there is none, a canvas does, more slowly.
// What moves (lasso, hover, the row that is asked) is drawn on a second canvas, so that points are drawn only if they
// change. A grid of cells finds the point under the pointer.

import { NOBODY, colour, colours, dark, rgb } from "./palette.js";

const VERTEX = `#version 300 es
in vec2 place; in vec4 data;
uniform vec2 scale, offset; uniform float size; uniform int mode; uniform bool labelled;
uniform vec3 palette[8]; uniform vec3 nobody, ground, accent;
out vec4 tint; flat out int form; out float edge; out float extent;
void main() {
  int code = int(data.x), given = int(data.z), flags = int(data.w);
  float doubt = data.y / 255.0;
  bool own = given != 255;
  bool chosen = (flags & 128) != 0;
  vec3 base = code == 255 ? nobody : palette[code % 8];
  float alpha = code == 255 ? 0.75 : mix(0.95, 0.25, doubt), grow = 1.0;
  edge = own ? 1.0 : 0.0;
  form = code == 255 ? 0 : (code + code / 8) % 8;
  if (mode == 1) { base = own ? nobody : mix(nobody, accent, smoothstep(0.02, 0.8, doubt)); alpha = mix(0.3, 1.0, doubt); grow = mix(0.8, 1.7, doubt); if (own) { alpha = 0.5; grow = 0.8; edge = 0.0; } }
  if (mode == 2 && !own) { base = nobody; alpha = 0.45; form = 0; }
  if (mode == 3) { bool against = (flags & 3) != 0; if (!against) { base = nobody; alpha = 0.35; form = 0; edge = 0.0; } else { alpha = 1.0; grow = 2.0; edge = 1.0; } }
  bool top = mode == 1 ? doubt > 0.5 && !own : mode == 3 ? (flags & 3) != 0 : own;
  if (own && mode != 1 && mode != 3) grow *= 1.75;
  if (chosen) { alpha = 1.0; edge = 1.0; grow *= 1.35; top = true; }
  gl_Position = top == labelled ? vec4(place * scale + offset, 0.0, 1.0) : vec4(3.0, 3.0, 0.0, 1.0);
  tint = vec4(base, alpha);
  extent = max(size * grow, 1.5);
  gl_PointSize = extent;
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
in vec4 tint; flat in int form; in float edge; in float extent; out vec4 colour;
uniform vec3 ground, line;
float inside(vec2 p) {
  vec2 a = abs(p);
  if (form == 1) return 0.74 - max(a.x, a.y);
  if (form == 2) return min(0.7 - p.y, (p.y + 0.85 - 1.9 * a.x) * 0.5);
  if (form == 3) return (0.95 - a.x - a.y) * 0.75;
  if (form == 4) return min(p.y + 0.7, (0.85 - p.y - 1.9 * a.x) * 0.5);
  if (form == 5) return max(min(0.32 - a.x, 0.88 - a.y), min(0.32 - a.y, 0.88 - a.x));
  if (form == 6) { vec2 q = abs(vec2(p.x + p.y, p.x - p.y)) * 0.7071; return max(min(0.3 - q.x, 0.95 - q.y), min(0.3 - q.y, 0.95 - q.x)); }
  if (form == 7) return min(0.86 - length(p), length(p) - 0.34);
  return 0.84 - length(p);
}
void main() {
  vec2 p = gl_PointCoord * 2.0 - 1.0;
  float soft = 2.0 / extent;
  if (extent < 4.0) { colour = vec4(tint.rgb, tint.a); return; }
  float depth = inside(p);
  float body = smoothstep(-soft * 0.5, soft * 0.5, depth);
  if (body <= 0.0) discard;
  float rim = edge * (1.0 - smoothstep(soft * 0.7, soft * 1.6, depth));
  colour = vec4(mix(tint.rgb, line, rim), mix(tint.a, 1.0, rim) * body);
}`;

const MODES = ["class", "doubt", "given", "against"];

export class PointMap {
  constructor(box, points, overlay, on) {
    Object.assign(this, { box, points, overlay, on });
    this.n = 0;
    this.view = "class";
    this.zoom = 1;
    this.centre = [0, 0];
    this.current = -1;
    this.hovered = -1;
    this.selected = new Set();
    this.polygon = null;
    this.lassoing = false;
    this.frames = [];
    this.gl = points.getContext("webgl2", { antialias: false, alpha: false, preserveDrawingBuffer: false });
    this.kind = this.gl ? "webgl" : "canvas";
    if (this.gl) this.prepare();
    else this.flat = points.getContext("2d");
    this.top = overlay.getContext("2d");
    new ResizeObserver(() => this.resize()).observe(box);
    this.listen();
    this.resize();
  }

  prepare() {
    const gl = this.gl;
    const compiled = [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]].map(([kind, text]) => {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      return shader;
    });
    this.program = gl.createProgram();
    compiled.forEach((shader) => gl.attachShader(this.program, shader));
    gl.bindAttribLocation(this.program, 0, "place");
    gl.bindAttribLocation(this.program, 1, "data");
    gl.linkProgram(this.program);
    this.at = (name) => gl.getUniformLocation(this.program, name);
    this.places = gl.createBuffer();
    this.data = gl.createBuffer();
    this.points.addEventListener("webglcontextlost", (event) => { event.preventDefault(); });
    this.points.addEventListener("webglcontextrestored", () => { this.prepare(); if (this.xy) { this.upload(); this.draw(); } });
  }

  setPlaces(xy) {
    const before = this.xy;
    this.n = xy.length / 2;
    this.goal = xy;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches || !before || before.length !== xy.length;
    if (!this.bytes || this.bytes.length !== this.n * 4) this.bytes = new Uint8Array(this.n * 4).fill(NOBODY).map((v, k) => (k % 4 === 3 ? 0 : v));
    if (still || this.n > 30000) { this.xy = xy; this.index(); this.upload(); this.draw(); return; }
    const started = performance.now();
    const from = before.slice();
    const move = (now) => {
      const t = Math.min(1, (now - started) / 700);
      const ease = t * t * (3 - 2 * t);
      this.xy = t === 1 ? xy : from.map((value, k) => value + (xy[k] - value) * ease);
      this.upload();
      this.draw();
      if (t < 1) requestAnimationFrame(move);
      else this.index();
    };
    requestAnimationFrame(move);
  }

  setColours(bytes) {
    this.bytes = bytes;
    this.selected.forEach((row) => { bytes[4 * row + 3] |= 128; });
    this.upload(true);
    this.draw();
  }

  setSelected(rows) {
    this.selected.forEach((row) => { this.bytes[4 * row + 3] &= 127; });
    this.selected = new Set(rows);
    this.selected.forEach((row) => { this.bytes[4 * row + 3] |= 128; });
    this.upload(true);
    this.draw();
  }

  upload(only = false) {
    const gl = this.gl;
    if (!gl || !this.xy) return;
    if (!only) {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.places);
      gl.bufferData(gl.ARRAY_BUFFER, this.xy, gl.STATIC_DRAW);
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, this.data);
    gl.bufferData(gl.ARRAY_BUFFER, this.bytes, gl.DYNAMIC_DRAW);
  }

  index() {
    const side = this.side = Math.max(8, Math.ceil(Math.sqrt(this.n / 4)));
    const cell = (k) => Math.min(side - 1, Math.max(0, Math.floor(((this.xy[k] + 1) / 2) * side)));
    const heads = new Int32Array(side * side).fill(-1);
    const nexts = new Int32Array(this.n);
    for (let row = 0; row < this.n; row++) {
      const at = cell(2 * row) + side * cell(2 * row + 1);
      nexts[row] = heads[at];
      heads[at] = row;
    }
    Object.assign(this, { heads, nexts });
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = Math.max(1, this.box.clientWidth);
    this.height = Math.max(1, this.box.clientHeight);
    for (const canvas of [this.points, this.overlay]) {
      canvas.width = Math.round(this.width * ratio);
      canvas.height = Math.round(this.height * ratio);
    }
    this.ratio = ratio;
    this.draw();
  }

  // Places in the unit square -> pixels of the page.
  get unit() { return 0.5 * Math.max(40, Math.min(this.width - 60, this.height - 110)) * this.zoom; }
  toScreen(row) {
    return [this.width / 2 + (this.xy[2 * row] - this.centre[0]) * this.unit, this.height / 2 - (this.xy[2 * row + 1] - this.centre[1]) * this.unit];
  }
  toPlace([x, y]) {
    return [this.centre[0] + (x - this.width / 2) / this.unit, this.centre[1] - (y - this.height / 2) / this.unit];
  }
  get size() {
    const base = this.n > 50000 ? 2.2 : this.n > 8000 ? 3.4 : this.n > 1500 ? 5.2 : 7.5;
    return Math.min(16, base * Math.pow(this.zoom, 0.45)) * this.ratio;
  }

  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame((now) => {
      this.pending = false;
      this.frames.push(now);
      if (this.frames.length > 240) this.frames.shift();
      if (this.xy) (this.gl ? this.drawPoints() : this.drawFlat());
      this.drawTop();
    });
  }

  drawPoints() {
    const gl = this.gl;
    const ground = rgb(dark() ? "#14181d" : "#fbfbfa");
    gl.viewport(0, 0, this.points.width, this.points.height);
    gl.clearColor(...ground, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    gl.useProgram(this.program);
    const scale = [(2 * this.unit) / this.width, (2 * this.unit) / this.height];
    gl.uniform2f(this.at("scale"), ...scale);
    gl.uniform2f(this.at("offset"), -this.centre[0] * scale[0], -this.centre[1] * scale[1]);
    gl.uniform1f(this.at("size"), this.size);
    gl.uniform1i(this.at("mode"), MODES.indexOf(this.view));
    gl.uniform3fv(this.at("palette"), colours().flatMap(rgb));
    gl.uniform3f(this.at("nobody"), ...rgb(colour(NOBODY)));
    gl.uniform3f(this.at("ground"), ...ground);
    gl.uniform3f(this.at("line"), ...rgb(dark() ? "#ffffff" : "#111418"));
    gl.uniform3f(this.at("accent"), ...rgb(dark() ? "#f0813c" : "#c2410c"));
    gl.bindBuffer(gl.ARRAY_BUFFER, this.places);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.data);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, false, 0, 0);
    for (const labelled of [0, 1]) {
      gl.uniform1i(this.at("labelled"), labelled);
      gl.drawArrays(gl.POINTS, 0, this.n);
    }
  }

  drawFlat() {
    const pen = this.flat;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.fillStyle = dark() ? "#14181d" : "#fbfbfa";
    pen.fillRect(0, 0, this.width, this.height);
    const size = Math.max(2, this.size / this.ratio);
    for (const turn of [0, 1]) {
      for (let row = 0; row < this.n; row++) {
        const [code, doubt, given, flags] = this.bytes.subarray(4 * row, 4 * row + 4);
        const top = this.view === "against" ? (flags & 3) !== 0 : given !== NOBODY;
        if (top !== Boolean(turn)) continue;
        const [x, y] = this.toScreen(row);
        if (x < -9 || y < -9 || x > this.width + 9 || y > this.height + 9) continue;
        const plain = (this.view === "given" && given === NOBODY) || (this.view === "against" && !top);
        pen.globalAlpha = plain ? 0.4 : this.view === "doubt" ? 0.25 + (0.75 * doubt) / 255 : 0.95 - (0.65 * doubt) / 255;
        pen.fillStyle = plain ? colour(NOBODY) : this.view === "doubt" ? "#c2410c" : colour(code);
        const side = (top ? 1.75 : 1) * size;
        pen.fillRect(x - side / 2, y - side / 2, side, side);
        if (top || flags & 128) { pen.globalAlpha = 1; pen.strokeStyle = dark() ? "#fff" : "#111418"; pen.strokeRect(x - side / 2, y - side / 2, side, side); }
      }
    }
    pen.globalAlpha = 1;
  }

  drawTop() {
    const pen = this.top;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    const line = dark() ? "#ffffff" : "#111418";
    const ground = dark() ? "#14181d" : "#fbfbfa";
    if (this.xy && this.current >= 0 && this.current < this.n) {
      const [x, y] = this.toScreen(this.current);
      for (const [width, style] of [[5, ground], [2, line]]) {
        pen.lineWidth = width;
        pen.strokeStyle = style;
        pen.beginPath();
        pen.arc(x, y, 11, 0, 7);
        for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) { pen.moveTo(x + 11 * dx, y + 11 * dy); pen.lineTo(x + 18 * dx, y + 18 * dy); }
        pen.stroke();
      }
    }
    if (this.xy && this.hovered >= 0) {
      const [x, y] = this.toScreen(this.hovered);
      pen.lineWidth = 1.5;
      pen.strokeStyle = line;
      pen.beginPath();
      pen.arc(x, y, 8, 0, 7);
      pen.stroke();
    }
    if (this.polygon && this.polygon.length > 1) {
      pen.beginPath();
      this.polygon.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.closePath();
      pen.fillStyle = dark() ? "rgba(255,255,255,.08)" : "rgba(20,30,50,.07)";
      pen.fill();
      pen.setLineDash([6, 4]);
      pen.lineWidth = 1.5;
      pen.strokeStyle = line;
      pen.stroke();
      pen.setLineDash([]);
    }
  }

  nearest([x, y], reach = 12) {
    if (!this.xy || !this.heads) return -1;
    const [u, v] = this.toPlace([x, y]);
    const radius = reach / this.unit;
    const cell = (value) => Math.min(this.side - 1, Math.max(0, Math.floor(((value + 1) / 2) * this.side)));
    let best = -1, least = radius * radius;
    for (let i = cell(u - radius); i <= cell(u + radius); i++) {
      for (let j = cell(v - radius); j <= cell(v + radius); j++) {
        for (let row = this.heads[i + this.side * j]; row >= 0; row = this.nexts[row]) {
          const gap = (this.xy[2 * row] - u) ** 2 + (this.xy[2 * row + 1] - v) ** 2;
          if (gap < least) { least = gap; best = row; }
        }
      }
    }
    return best;
  }

  within(polygon) {
    const corners = polygon.map((corner) => this.toPlace(corner));
    const found = [];
    for (let row = 0; row < this.n; row++) {
      const x = this.xy[2 * row], y = this.xy[2 * row + 1];
      let inside = false;
      for (let i = 0, j = corners.length - 1; i < corners.length; j = i++) {
        const [xi, yi] = corners[i], [xj, yj] = corners[j];
        if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
      }
      if (inside) found.push(row);
    }
    return found;
  }

  zoomBy(factor, about = [this.width / 2, this.height / 2]) {
    const before = this.toPlace(about);
    this.zoom = Math.min(200, Math.max(0.5, this.zoom * factor));
    const after = this.toPlace(about);
    this.centre = [this.centre[0] + before[0] - after[0], this.centre[1] + before[1] - after[1]];
    this.draw();
  }

  fit() {
    this.zoom = 1;
    this.centre = [0, 0];
    this.draw();
  }

  setLasso(wanted) {
    this.lassoing = wanted;
    this.polygon = null;
    this.box.classList.toggle("lassoing", wanted);
    this.draw();
  }

  listen() {
    const spot = (event) => { const box = this.overlay.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const down = new Map();
    let moved = 0, pinch = 0;
    this.overlay.addEventListener("wheel", (event) => { event.preventDefault(); this.zoomBy(Math.exp(-event.deltaY * 0.0016), spot(event)); }, { passive: false });
    this.overlay.addEventListener("pointerdown", (event) => {
      this.overlay.setPointerCapture(event.pointerId);
      down.set(event.pointerId, spot(event));
      moved = 0;
      if (this.lassoing && down.size === 1) this.polygon = [spot(event)];
    });
    this.overlay.addEventListener("pointermove", (event) => {
      const at = spot(event), before = down.get(event.pointerId);
      if (!before) { this.hover(this.nearest(at), at); return; }
      const step = [at[0] - before[0], at[1] - before[1]];
      moved += Math.hypot(...step);
      down.set(event.pointerId, at);
      if (down.size === 2) {
        const [a, b] = [...down.values()];
        const apart = Math.hypot(a[0] - b[0], a[1] - b[1]);
        if (pinch) this.zoomBy(apart / pinch, [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2]);
        pinch = apart;
      } else if (this.lassoing) {
        this.polygon?.push(at);
      } else {
        this.centre = [this.centre[0] - step[0] / this.unit, this.centre[1] + step[1] / this.unit];
      }
      this.draw();
    });
    const up = (event) => {
      if (!down.delete(event.pointerId)) return;
      pinch = 0;
      if (this.lassoing && this.polygon) {
        const polygon = this.polygon;
        this.setLasso(false);
        if (polygon.length > 2) this.on.select(this.within(polygon));
      } else if (moved < 4) {
        const row = this.nearest(spot(event));
        if (row >= 0) this.on.pick(row);
      }
    };
    this.overlay.addEventListener("pointerup", up);
    this.overlay.addEventListener("pointercancel", up);
    this.overlay.addEventListener("pointerleave", () => this.hover(-1));
    this.overlay.addEventListener("dblclick", () => this.fit());
  }

  hover(row, at) {
    if (row === this.hovered) return;
    this.hovered = row;
    this.on.hover(row, at);
    this.draw();
  }
}
