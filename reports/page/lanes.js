// The lanes: drawn on canvases, only what is visible, from arrays that are searched by halves.

const byId = (id) => document.getElementById(id);
const box = byId("lanes");
const FONT = '12px system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';
const SMALL = '11px system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';
const EDGE = 12;
/** Within a lane: answers of A, the bar of truth, its height, answers of B. */
const [UP, BAR, TALL, DOWN] = [10.5, 22, 15, 48.5];
const view = { width: 0, height: 0, gutter: 220, hover: null, hits: [], dirty: false, density: null };

const plot = () => view.width - view.gutter - EDGE;
const xOf = (at) => view.gutter + ((at - S.from) / (S.to - S.from)) * plot();
const atOf = (x) => S.from + ((x - view.gutter) / plot()) * (S.to - S.from);

function measure() {
  view.width = box.clientWidth;
  view.height = box.clientHeight;
  view.gutter = view.width < 760 ? 176 : 232;
  byId("spacer").style.height = `${Math.max(V.total, view.height)}px`;
}

/** Draws once before the next frame: everything, or what scrolling changes. */
function draw(scrolled = false) {
  view.still = scrolled && (view.still || !view.dirty);
  if (view.dirty) return;
  view.dirty = true;
  requestAnimationFrame(() => {
    view.dirty = false;
    if (!V.a) return;
    drawLanes();
    if (view.still) return;
    drawMap();
    drawFoot();
  });
}

/** Shows the turns `from` to `to`, as far as there are any, and never less than two. */
function show(from, to) {
  const span = Math.min(Math.max(to - from, 2), V.last - 1);
  S.from = Math.min(Math.max(1, from), V.last - span);
  S.to = S.from + span;
  keepAddress();
  draw();
}

function zoom(factor, at) {
  show(at - (at - S.from) * factor, at + (S.to - at) * factor);
}

/** Row at a height of the scrolled lanes. */
const rowAt = (y) => Math.max(0, firstAt(V.tops, y + 0.001, (top) => top) - 1);

// ---------------------------------------------------------------- lanes

function drawLanes() {
  const g = sized(byId("paper"), view.width, view.height);
  g.textBaseline = "middle";
  const top = box.scrollTop;
  view.hits = [];
  grid(g, view.height);
  for (let place = rowAt(top); place < V.rows.length; place += 1) {
    const y = V.tops[place] - top;
    if (y > view.height) break;
    const row = V.rows[place];
    if (row.unit < 0) drawHead(g, row, y);
    else drawLane(g, row.unit, y);
  }
  drawCursor(g, top);
}

/** Faint lines at round turns. */
function grid(g, height) {
  g.fillStyle = C.rule;
  for (const turn of roundTurns()) g.fillRect(Math.round(xOf(turn)), 0, 1, height);
}

function roundTurns() {
  const rough = ((S.to - S.from) * 84) / Math.max(1, plot());
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? 1;
  const turns = [];
  for (let t = Math.ceil(S.from / step) * step; t <= S.to; t += step) turns.push(t);
  return turns;
}

function drawHead(g, row, y) {
  g.fillStyle = C.band;
  g.fillRect(0, y, view.width, HEAD);
  g.font = `600 ${SMALL}`;
  g.fillStyle = C.quiet;
  g.fillText(`${row.label}  (${row.lanes})`, 12, y + HEAD / 2);
}

function drawLane(g, unit, y) {
  const h = laneHeight();
  const chosen = unit === S.unit && S.line >= 0;
  if (chosen) {
    g.fillStyle = C.band;
    g.fillRect(0, y, view.width, h);
  }
  g.fillStyle = C.rule;
  g.fillRect(0, y + h - 1, view.width, 1);
  label(g, unit, y, h);
  g.save();
  g.beginPath();
  g.rect(view.gutter - 6, y, plot() + 6 + EDGE, h);
  g.clip();
  truth(g, unit, y + BAR);
  answers(g, V.a, unit, y + UP);
  if (V.b) answers(g, V.b, unit, y + DOWN);
  g.restore();
  beyondEdges(g, unit, y + UP);
}

/** Arrowheads where violations lie before or after the turns that are shown. */
function beyondEdges(g, unit, y) {
  if (!V.count[unit]) return;
  const { at } = V.story;
  g.fillStyle = C.quiet;
  if (at[V.first[unit]] < S.from) head(g, view.gutter - 8, y, -5);
  if (at[V.final[unit]] > S.to) head(g, view.width - 7, y, 5);
}

function head(g, x, y, way) {
  g.beginPath();
  g.moveTo(x + way, y);
  g.lineTo(x, y - 4);
  g.lineTo(x, y + 4);
  g.closePath();
  g.fill();
}

function label(g, unit, y, h) {
  const { story } = V;
  const bad = V.count[unit];
  g.font = FONT;
  g.fillStyle = bad ? C.ink : C.quiet;
  const wide = view.gutter - 62;
  g.fillText(shortened(g, story.name(unit), wide), 12, y + h / 2 - 8);
  g.font = SMALL;
  g.fillStyle = C.quiet;
  const from = unit === story.memory ? "what belongs to no unit" : story.units[unit];
  g.fillText(shortened(g, from.family ? `${from.family} · ${from.tenant}` : from, wide), 12, y + h / 2 + 8);
  if (!bad) return;
  g.textAlign = "right";
  g.font = `600 ${SMALL}`;
  g.fillStyle = C.ink;
  g.fillText(bad.toLocaleString("en"), view.gutter - 16, y + h / 2 - 8);
  g.textAlign = "left";
}

const lengths = new Map();

/** A text that is at most `wide`; lengths are kept, since measuring is slow. */
function shortened(g, text, wide) {
  const key = `${g.font}|${wide}|${text}`;
  if (!lengths.has(key)) {
    if (lengths.size > 20000) lengths.clear();
    lengths.set(key, cutTo(g, text.slice(0, 200), wide));
  }
  return lengths.get(key);
}

function cutTo(g, text, wide) {
  if (g.measureText(text).width <= wide) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (g.measureText(`${text.slice(0, middle)}…`).width <= wide) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low).trimEnd()}…` : "";
}

const ENDED = { retracted: "withdrawn", expired: "expired", erased: "erased" };

/** What was true of a unit: a bar for each value, and a word where nothing is set. */
function truth(g, unit, y) {
  const { story } = V;
  const rows = story.changes.of(unit);
  if (!rows.length) return;
  const { line, value, cause } = story.change;
  let place = Math.max(0, firstAt(rows, S.from, (row) => story.at[line[row]]) - 1);
  let drawn = -Infinity;
  for (; place < rows.length; place += 1) {
    const row = rows[place];
    const begin = xOf(story.at[line[row]]);
    if (begin > view.width) break;
    const next = place + 1 < rows.length ? xOf(story.at[line[rows[place + 1]]]) : view.width + 9;
    // what is narrower than a pixel cannot be seen
    if (next - drawn < 1) continue;
    drawn = next;
    if (begin > view.gutter - 6 && story.kinds[line[row]] === "t") view.hits.push({ x: begin, y: y + TALL / 2, line: line[row], unit, run: V.a, weight: 1 });
    segment(g, Math.max(begin, view.gutter - 9), Math.min(next, view.width + 9), y, TALL, {
      begins: begin >= view.gutter - 9, tint: story.tint[row],
      value: value[row] < 0 ? null : story.values[value[row]],
      cause: TOLD.causes[cause[row]], ends: next - begin > 5,
    });
  }
}

function segment(g, begin, end, y, height, { begins, tint, value, cause, ends }) {
  const wide = end - begin;
  if (value === null) {
    g.fillStyle = C.quiet;
    g.fillRect(begin, y + height / 2, wide, 1);
    if (begins) endMark(g, begin, y, height);
    words(g, ENDED[cause] ?? "nothing is set", begin + 7, wide - 12, y + height / 2, true);
    return;
  }
  g.fillStyle = C[`tint${tint}`];
  g.fillRect(begin, y, wide, height);
  if (cause === "review") hatch(g, begin, y, wide, height);
  if (begins && ends) {
    g.fillStyle = C.edge;
    g.fillRect(begin, y - 2, 2, height + 4);
  }
  const told = { derived: "↳ ", corrected: "≠ ", late: "← ", review: "? " }[cause] ?? "";
  words(g, told + value, begin + 7, wide - 12, y + height / 2, false);
}

function words(g, text, x, wide, y, aside) {
  if (wide < 22) return;
  g.font = aside ? `italic ${SMALL}` : SMALL;
  const short = shortened(g, text, Math.round(wide));
  if (aside && short) {
    g.fillStyle = C.paper;
    g.fillRect(x - 3, y - 6, g.measureText(short).width + 6, 13);
  }
  g.fillStyle = aside ? C.quiet : C.ontint;
  g.fillText(short, x, y + 0.5);
}

function endMark(g, x, y, height) {
  g.fillStyle = C.edge;
  g.fillRect(x, y - 2, 2, height + 4);
}

function hatch(g, x, y, wide, height) {
  g.save();
  g.beginPath();
  g.rect(x, y, wide, height);
  g.clip();
  g.strokeStyle = C.edge;
  g.globalAlpha = 0.35;
  g.lineWidth = 1;
  g.beginPath();
  const begin = Math.floor(x / 6) * 6;
  for (let at = begin - height; at < x + wide; at += 6) {
    g.moveTo(at, y + height);
    g.lineTo(at + height, y);
  }
  g.stroke();
  g.restore();
}

/** What a run answered: calm ticks, and violations over them. */
function answers(g, run, unit, y) {
  const { story } = V;
  const asked = run.asked.of(unit);
  const edge = atOf(view.gutter - 6);
  let drawn = -Infinity;
  for (let k = firstAt(asked, edge, (i) => story.at[i]); k < asked.length; k += 1) {
    const x = xOf(story.at[asked[k]]);
    if (x > view.width) break;
    if (x - drawn < 1.5) continue;
    drawn = x;
    if (run.at(asked[k], unit).length) continue;
    drawAnswer(g, run.verdicts[asked[k]], x, y);
    view.hits.push({ x, y, line: asked[k], unit, run, weight: 2 });
  }
  for (const bunch of bunches(run, unit, edge)) drawBunch(g, run, unit, y, bunch);
}

/** Violations that stand too close to be told apart, together: one of each name. */
function bunches(run, unit, edge) {
  const marks = run.marks.of(unit);
  const { at } = V.story;
  const made = [];
  let bunch = null;
  for (let k = firstAt(marks, edge, (m) => at[run.mark.line[m]]); k < marks.length; k += 1) {
    const m = marks[k];
    const x = xOf(at[run.mark.line[m]]);
    if (x > view.width) break;
    if (!bunch || x - bunch.x > 4) made.push(bunch = { x, marks: new Map() });
    const name = run.mark.name[m];
    if (!bunch.marks.has(name)) bunch.marks.set(name, m);
  }
  return made;
}

function drawBunch(g, run, unit, y, bunch) {
  const side = run === V.a ? 0 : 1;
  const marks = [...bunch.marks.values()];
  const kept = marks.filter((m) => passes(run, m) && (!S.differ || !V.unlike || V.unlike[side].has(m)));
  const drawn = (kept.length ? kept : marks.slice(0, 1)).slice(0, 3);
  const radius = [5, 4, 3.2][drawn.length - 1];
  drawn.forEach((m, k) => {
    const up = y + (k - (drawn.length - 1) / 2) * (drawn.length === 2 ? 8.6 : 6.6);
    drawMark(g, NAMES[run.mark.name[m]].condition, bunch.x, up, radius, !kept.length);
    if (kept.length) view.hits.push({ x: bunch.x, y: up, line: run.mark.line[m], unit, run, weight: 0 });
  });
}

/** Line through the selected moment, a ring around its mark, and where its answer came from. */
function drawCursor(g, top) {
  for (const moment of [view.hover, S.line >= 0 ? S : null]) {
    if (!moment) continue;
    const place = V.rowOf.get(moment.unit);
    const at = V.story.at[moment.line];
    const x = xOf(at);
    if (moment === S && x >= view.gutter) {
      g.fillStyle = C.select;
      g.globalAlpha = 0.5;
      g.fillRect(Math.round(x) - 0.5, 0, 1, view.height);
      g.globalAlpha = 1;
    }
    if (place === undefined) continue;
    const y = V.tops[place] - top;
    if (y < -60 || y > view.height) continue;
    g.save();
    g.beginPath();
    g.rect(view.gutter - 6, 0, plot() + 6 + EDGE, view.height);
    g.clip();
    const runs = V.b ? [V.a, V.b] : [V.a];
    runs.forEach((run, side) => arrow(g, run, moment.line, x, y + (side ? DOWN : UP), y + BAR + TALL / 2, side));
    if (moment === S) ring(g, x, y);
    g.restore();
  }
}

function ring(g, x, y) {
  const turn = V.story.kinds[S.line] === "t";
  const sides = turn ? [BAR + TALL / 2] : V.b ? [UP, DOWN] : [UP];
  g.strokeStyle = C.select;
  g.lineWidth = 2;
  for (const side of sides) {
    g.beginPath();
    g.arc(x, y + side, 8.5, 0, 2 * Math.PI);
    g.stroke();
  }
}

/** From an answer back to the turn that wrote it. */
function arrow(g, run, line, x, y, bar, side) {
  const by = run.by[line];
  if (by < 0) return;
  const end = xOf(V.story.at[by]) + 1;
  if (Math.abs(x - end) < 5) return;
  const way = side ? 9 : -9;
  g.strokeStyle = C.select;
  g.fillStyle = C.select;
  g.lineWidth = 1.5;
  g.setLineDash([4, 3]);
  g.beginPath();
  g.moveTo(x, y);
  g.quadraticCurveTo((x + end) / 2, y + way * 1.4, end, bar + way);
  g.stroke();
  g.setLineDash([]);
  g.beginPath();
  g.moveTo(end, bar + way * 0.5);
  g.lineTo(end - 3.5, bar + way * 1.35);
  g.lineTo(end + 3.5, bar + way * 1.35);
  g.closePath();
  g.fill();
}

// ---------------------------------------------------------------- what is under the pointer

/** What is drawn nearest to a point of the lanes, or null; marks come before edges and ticks. */
function under(x, y) {
  let found = null;
  let best = 9;
  for (const hit of view.hits) {
    const far = Math.hypot(hit.x - x, hit.y - y) + hit.weight;
    if (far < best) {
      best = far;
      found = hit;
    }
  }
  return found;
}
