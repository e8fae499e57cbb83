// What is looked at. All of it can be in the address, so that a link leads to a moment.

const S = {
  run: 0, other: -1, // numbers of runs
  condition: "", name: "", family: "", tenant: "", text: "",
  only: false, differ: false, group: "", sort: "",
  from: 1, to: 2, // turns at the left and the right edge
  line: -1, unit: -1, // the step and the lane that are selected
  open: false, // whether the panel shows it
};

/** What is drawn: the runs, and what the filters leave of them. */
const V = { a: null, b: null, story: null, rows: [], heights: null, total: 0, found: [], last: 0 };

/** Key in the address -> [field, what it is when the address says nothing]. */
const WORDS = {
  c: ["condition", ""], n: ["name", ""], f: ["family", ""], t: ["tenant", ""], q: ["text", ""],
  g: ["group", ""], s: ["sort", ""], only: ["only", false], differ: ["differ", false],
};

function address() {
  const words = new URLSearchParams();
  words.set("run", TOLD.runs[S.run].key);
  if (S.other >= 0) words.set("with", TOLD.runs[S.other].key);
  for (const [key, [field, blank]] of Object.entries(WORDS)) {
    if (S[field] !== blank) words.set(key, S[field] === true ? "1" : S[field]);
  }
  if (V.story && (S.from > 1 || S.to < V.last)) words.set("x", `${round(S.from)}-${round(S.to)}`);
  if (S.line >= 0) words.set("at", `${S.line}.${S.unit}${S.open ? ".open" : ""}`);
  return `#${words}`;
}

/** Takes over what an address says; what it says wrongly is left out. */
function takeAddress(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (key) => TOLD.runs.findIndex((run) => run.key === words.get(key));
  S.run = Math.max(0, number("run"));
  S.other = number("with");
  if (S.other === S.run || TOLD.runs[S.other]?.story !== TOLD.runs[S.run].story) S.other = -1;
  for (const [key, [field, blank]] of Object.entries(WORDS)) {
    const said = words.get(key) ?? "";
    S[field] = blank === false ? said === "1" : said;
  }
  if (S.name && !(S.name in CONDITION)) S.name = "";
  if (S.condition && !(S.condition in TOLD.names)) S.condition = "";
  const [from, to] = (words.get("x") ?? "").split("-").map(Number);
  const [line, unit, open] = (words.get("at") ?? "").split(".");
  return { from, to, line: /^\d+$/.test(line) ? +line : -1, unit: /^\d+$/.test(unit) ? +unit : -1, open: open === "open" };
}

let saving = 0;
let saved = "";

/** Writes the state into the address, soon: browsers allow it only so often. */
function keepAddress() {
  clearTimeout(saving);
  saving = setTimeout(() => {
    saved = address();
    history.replaceState(null, "", saved);
  }, 200);
}

const round = (x) => Math.round(x * 100) / 100;

// ---------------------------------------------------------------- filters

/** Whether the filters let a violation of a run through. */
function passes(run, m) {
  const { name, condition } = NAMES[run.mark.name[m]];
  return (!S.name || S.name === name) && (!S.condition || S.condition === condition);
}

/** Whether the filters let a lane through. */
function wanted(story, unit) {
  if (unit === story.memory) return !S.family && !S.tenant && !S.text;
  const { family, tenant, name, id } = story.units[unit];
  if ((S.family && S.family !== family) || (S.tenant && S.tenant !== tenant)) return false;
  const text = S.text.trim().toLowerCase();
  return !text || name.toLowerCase().includes(text) || id.toLowerCase().includes(text);
}

/** What the filters leave: violations in order, and lanes in the order that was asked for. */
function sift() {
  const { a, b, story } = V;
  const runs = b ? [a, b] : [a];
  const lanes = story.memory + 1;
  const keep = Array.from({ length: lanes }, (_, unit) => wanted(story, unit));
  const unlike = b ? differing(a, b) : null;
  const first = new Float64Array(lanes).fill(Infinity);
  const final = new Float64Array(lanes).fill(-1);
  const count = new Int32Array(lanes);
  V.found = [];
  runs.forEach((run, side) => {
    for (const m of run.order) {
      const unit = run.mark.unit[m];
      if (!keep[unit] || !passes(run, m)) continue;
      if (S.differ && unlike && !unlike[side].has(m)) continue;
      count[unit] += 1;
      first[unit] = Math.min(first[unit], run.mark.line[m]);
      final[unit] = Math.max(final[unit], run.mark.line[m]);
      V.found.push({ run, side, m, line: run.mark.line[m], unit });
    }
  });
  if (b) V.found.sort((x, y) => x.line - y.line || x.side - y.side);
  Object.assign(V, { unlike, count, first, final });
  const narrow = S.only || S.name || S.condition || (S.differ && b);
  const shown = [];
  for (let unit = 0; unit < lanes; unit += 1) {
    if (keep[unit] && (count[unit] || (!narrow && unit < story.memory))) shown.push(unit);
  }
  const seen = (unit) => (unit === story.memory ? -1 : unit);
  const by = {
    "": (x, y) => first[x] - first[y] || seen(x) - seen(y),
    most: (x, y) => count[y] - count[x] || seen(x) - seen(y),
    seen: (x, y) => seen(x) - seen(y),
  };
  // Infinity less Infinity is no number, and those lanes keep their order
  shown.sort((x, y) => by[S.sort in by ? S.sort : ""](x, y) || seen(x) - seen(y));
  arrange(shown);
}

/** Violations that only one of two runs has at a step and a unit. */
function differing(a, b) {
  const key = (run, m) => `${run.mark.line[m]} ${run.mark.unit[m]} ${run.mark.name[m]}`;
  const all = [a, b].map((run) => new Set(Array.from(run.order, (m) => key(run, m))));
  return [a, b].map((run, side) =>
    new Set(Array.from(run.order).filter((m) => !all[1 - side].has(key(run, m)))),
  );
}

const HEAD = 26;

/** Lanes one below the other, with a line above each group. */
function arrange(units) {
  const { story } = V;
  const of = {
    tenant: (u) => story.units[u]?.tenant ?? "",
    family: (u) => story.units[u]?.family ?? "",
    topic: (u) => story.topic(u),
  }[S.group];
  const groups = new Map();
  for (const unit of units) {
    const group = of ? of(unit) : "";
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(unit);
  }
  V.rows = [];
  for (const [group, members] of groups) {
    if (of) V.rows.push({ unit: -1, label: group || "everything", lanes: members.length });
    for (const unit of members) V.rows.push({ unit });
  }
  let y = 0;
  V.tops = Float64Array.from(V.rows, (row) => {
    const top = y;
    y += row.unit < 0 ? HEAD : laneHeight();
    return top;
  });
  V.total = y;
  V.rowOf = new Map(V.rows.map((row, place) => [row.unit, place]));
}

const laneHeight = () => (V.b ? 59 : 44);
