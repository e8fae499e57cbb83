// What stands above and below the lanes: the map of all turns, and the footprint.

const map = byId("map");
const foot = byId("foot");
const MAP = 34; // height of the map; the ruler is below it

/** Violations by column of the map and condition, as the filters leave them. */
function countDensity() {
  const wide = Math.max(1, Math.floor(plot()));
  const names = Object.keys(TOLD.names);
  const counts = names.map(() => new Uint32Array(wide));
  const sums = new Uint32Array(wide);
  let most = 1;
  for (const { run, m, line } of V.found) {
    const column = Math.min(wide - 1, Math.floor(((V.story.at[line] - 1) / (V.last - 1)) * wide));
    if (column < 0) continue;
    counts[names.indexOf(NAMES[run.mark.name[m]].condition)][column] += 1;
    sums[column] += 1;
    most = Math.max(most, sums[column]);
  }
  view.density = { names, counts, most, wide };
}

const xOfMap = (at) => view.gutter + ((at - 1) / (V.last - 1)) * plot();
const atOfMap = (x) => 1 + ((x - view.gutter) / plot()) * (V.last - 1);

/** The bars of the map are drawn once and then copied. */
const bars = document.createElement("canvas");

function paintBars() {
  countDensity();
  const g = sized(bars, view.width, MAP);
  const { names, counts, most, wide } = view.density;
  for (let column = 0; column < wide; column += 1) {
    let y = MAP - 2;
    names.forEach((name, n) => {
      const count = counts[n][column];
      if (!count) return;
      // by the root, so that one violation is seen beside a thousand
      const height = Math.max(1.5, (MAP - 6) * Math.sqrt(count / most));
      g.fillStyle = C[name];
      g.fillRect(view.gutter + column, Math.max(2, y - height), 1.2, height);
      y -= height;
    });
  }
}

function drawMap() {
  const g = sized(map, view.width, MAP + 24);
  g.fillStyle = C.band;
  g.fillRect(view.gutter, 0, plot(), MAP);
  if (!view.density) paintBars();
  if (bars.width && bars.height) g.drawImage(bars, 0, 0, view.width, MAP);
  const [begin, end] = [xOfMap(S.from), xOfMap(S.to)];
  g.fillStyle = C.window;
  g.fillRect(view.gutter, 0, begin - view.gutter, MAP);
  g.fillRect(end, 0, view.gutter + plot() - end, MAP);
  g.strokeStyle = C.select;
  g.lineWidth = 1.5;
  g.strokeRect(begin, 0.75, Math.max(2, end - begin), MAP - 1.5);
  g.font = SMALL;
  g.textBaseline = "middle";
  g.fillStyle = C.quiet;
  g.fillText("violations over all turns", 12, MAP / 2);
  g.fillText(`turns ${Math.ceil(S.from)} to ${Math.min(V.story.turns, Math.floor(S.to))}`, 12, MAP + 13);
  g.textAlign = "center";
  for (const turn of roundTurns()) {
    const x = xOf(turn);
    g.fillStyle = C.rule;
    g.fillRect(Math.round(x), MAP + 19, 1, 5);
    g.fillStyle = C.quiet;
    if (x > view.gutter + 4 && x < view.width - 16) g.fillText(turn.toLocaleString("en"), x, MAP + 11);
  }
  g.textAlign = "left";
}

// ---------------------------------------------------------------- footprint

/** Active tokens against what is true and the bound, at each gauge. */
function drawFoot() {
  const high = window.innerHeight < 760 ? 62 : 86;
  const g = sized(foot, view.width, high);
  g.font = SMALL;
  g.textBaseline = "middle";
  const runs = V.b ? [V.a, V.b] : [V.a];
  const curve = V.a.about.footprint;
  g.fillStyle = C.quiet;
  g.fillText("tokens kept active", 12, 14);
  if (!curve.length) {
    g.fillText("the state was not measured", view.gutter, high / 2);
    return;
  }
  const [begin, end] = visible(curve);
  let top = 1;
  for (let k = begin; k < end; k += 1) top = Math.max(top, curve[k][3], curve[k][4]);
  for (const run of runs) {
    const [from, to] = visible(run.about.footprint);
    for (let k = from; k < to; k += 1) top = Math.max(top, run.about.footprint[k][2]);
  }
  const yOf = (tokens) => high - 18 - (tokens / top) * (high - 30);
  g.save();
  g.beginPath();
  g.rect(view.gutter, 0, plot() + EDGE, high);
  g.clip();
  path(g, curve, begin, end, 3, yOf);
  g.lineTo(xOf(curve[end - 1][0]), yOf(0));
  g.lineTo(xOf(curve[begin][0]), yOf(0));
  g.fillStyle = C.area;
  g.fill();
  line(g, curve, begin, end, 4, yOf, C.quiet, [2, 3]);
  runs.forEach((run, side) => {
    const [from, to] = visible(run.about.footprint);
    if (to > from) line(g, run.about.footprint, from, to, 2, yOf, side ? C.sideB : C.sideA, side ? [7, 3] : []);
  });
  g.restore();
  g.fillStyle = C.rule;
  g.fillRect(view.gutter, yOf(0), plot(), 1);
  g.fillStyle = C.quiet;
  g.fillText(`up to ${Math.round(top).toLocaleString("en")}`, 12, 30);
  footKey(g, runs, high);
}

function footKey(g, runs, high) {
  const y = high - 8;
  let x = view.gutter;
  const items = [
    ...runs.map((run, side) => [run.about.label, side ? C.sideB : C.sideA, side ? [7, 3] : []]),
    ["bound beta", C.quiet, [2, 3]], ["what is true", C.area, null],
  ];
  for (const [text, colour, dash] of items) {
    g.strokeStyle = g.fillStyle = colour;
    if (dash) {
      g.lineWidth = 2;
      g.setLineDash(dash);
      g.beginPath();
      g.moveTo(x, y);
      g.lineTo(x + 20, y);
      g.stroke();
      g.setLineDash([]);
    } else g.fillRect(x, y - 4, 20, 8);
    g.fillStyle = C.quiet;
    const short = shortened(g, text, 160);
    g.fillText(short, x + 26, y);
    x += 26 + g.measureText(short).width + 18;
  }
}

/** The gauges that are seen, and one on each side. */
function visible(curve) {
  const begin = Math.max(0, firstAt(curve, S.from, (point) => point[0]) - 1);
  return [begin, Math.min(curve.length, firstAt(curve, S.to, (point) => point[0]) + 1)];
}

function path(g, curve, begin, end, column, yOf) {
  g.beginPath();
  for (let k = begin; k < end; k += 1) {
    const [x, y] = [xOf(curve[k][0]), yOf(curve[k][column])];
    if (k === begin) g.moveTo(x, y);
    else g.lineTo(x, y);
  }
}

function line(g, curve, begin, end, column, yOf, colour, dash) {
  path(g, curve, begin, end, column, yOf);
  g.strokeStyle = colour;
  g.lineWidth = 1.8;
  g.setLineDash(dash);
  g.stroke();
  g.setLineDash([]);
}
