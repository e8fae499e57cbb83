// The marks: a shape and a colour for each condition, so that neither is needed alone.

/** Outlines within a circle of radius 1. */
const SHAPES = {
  C1: [["arc"]],
  C2: polygon([[0, -1.15], [1.05, 0.75], [-1.05, 0.75]]),
  C3: polygon([[0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]]),
  C4: polygon([[-0.88, -0.88], [0.88, -0.88], [0.88, 0.88], [-0.88, 0.88]]),
  C5: polygon(regular(5, 1.12, -90)),
  C6: polygon(star(5, 1.3, 0.56)),
  beyond: polygon(cross(1.1, 0.36)),
};

function polygon(points) {
  return points.map(([x, y], i) => [i ? "line" : "move", x, y]);
}

function regular(n, radius, turn) {
  return Array.from({ length: n }, (_, i) => {
    const angle = ((turn + (360 * i) / n) * Math.PI) / 180;
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
}

function star(n, outer, inner) {
  return Array.from({ length: 2 * n }, (_, i) => {
    const angle = ((-90 + (180 * i) / n) * Math.PI) / 180;
    const radius = i % 2 ? inner : outer;
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
}

/** An X with arms of half width `w`. */
function cross(r, w) {
  const plus = [[-w, -r], [w, -r], [w, -w], [r, -w], [r, w], [w, w], [w, r], [-w, r], [-w, w], [-r, w], [-r, -w], [-w, -w]];
  const c = Math.SQRT1_2;
  return plus.map(([x, y]) => [c * (x - y), c * (x + y)]);
}

function trace(g, condition, x, y, r) {
  g.beginPath();
  for (const [how, dx, dy] of SHAPES[condition]) {
    if (how === "arc") g.arc(x, y, r, 0, 2 * Math.PI);
    else if (how === "move") g.moveTo(x + r * dx, y + r * dy);
    else g.lineTo(x + r * dx, y + r * dy);
  }
  g.closePath();
}

const STAMP = 18; // width of a stamp: the widest mark with its rim
const stamps = new Map();

/** A violation, with a rim that keeps it apart from its neighbours. Drawn once, then stamped. */
function drawMark(g, condition, x, y, r, faint) {
  const key = `${condition} ${r} ${faint}`;
  if (!stamps.has(key)) stamps.set(key, stamp(condition, r, faint));
  g.drawImage(stamps.get(key), x - STAMP / 2, y - STAMP / 2, STAMP, STAMP);
}

function stamp(condition, r, faint) {
  const canvas = document.createElement("canvas");
  const g = sized(canvas, STAMP, STAMP);
  g.globalAlpha = faint ? 0.18 : 1;
  trace(g, condition, STAMP / 2, STAMP / 2, r);
  g.lineWidth = 2;
  g.strokeStyle = C.paper;
  g.stroke();
  g.fillStyle = C[condition];
  g.fill();
  return canvas;
}

/** What became of a question that showed no violation. */
function drawAnswer(g, letter, x, y) {
  g.lineWidth = 1.4;
  switch (letter) {
    case "c":
      g.fillStyle = C.right;
      g.fillRect(x - 0.75, y - 4, 1.5, 8);
      break;
    case "m":
      g.strokeStyle = C.missing;
      g.beginPath();
      g.arc(x, y, 3.4, 0, 2 * Math.PI);
      g.stroke();
      break;
    case "x":
      g.strokeStyle = C.missing;
      g.beginPath();
      g.moveTo(x - 3, y - 3);
      g.lineTo(x + 3, y + 3);
      g.moveTo(x + 3, y - 3);
      g.lineTo(x - 3, y + 3);
      g.stroke();
      break;
    case "-":
      g.fillStyle = C.right;
      g.fillRect(x - 1, y - 1, 2, 2);
      break;
    default: // inherited, flagged, unknown, or wrong where its violation is not shown
      g.strokeStyle = C.missing;
      trace(g, "C3", x, y, 3);
      g.stroke();
  }
}

const WORDED = {
  c: "right", s: "stale", a: "ambiguous", w: "wrong", m: "nothing answered", f: "marked for review",
  i: "wrong because its source was", u: "in doubt", x: "the step failed", "-": "looked up",
};

/** A drawing of `paint(g)` for text around it, sharp on any screen. */
function picture(width, height, paint) {
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  canvas.className = "glyph";
  canvas.repaint = () => paint(sized(canvas, width, height));
  canvas.repaint();
  return canvas;
}

const glyph = (condition, r = 5) =>
  picture(16, 16, (g) => drawMark(g, condition, 8, 8, r, false));

/** The context of a canvas in CSS pixels, cleared. */
function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  return g;
}

/** Colours of the style sheet, for canvases. */
const C = {};

function readColours() {
  stamps.clear();
  const style = getComputedStyle(document.documentElement);
  for (const name of [
    "paper", "ink", "quiet", "rule", "right", "missing", "edge", "select", "C1", "C2", "C3", "C4",
    "C5", "C6", "beyond", "tint0", "tint1", "tint2", "tint3", "ontint", "band", "window", "sideA",
    "sideB", "area",
  ]) C[name] = style.getPropertyValue(`--${name}`).trim();
}
