// Events: what people do, and what is drawn anew then.

/** Sets fields of the state, and draws what depends on them. */
function change(fields) {
  Object.assign(S, fields);
  sift();
  view.density = null;
  fillNames();
  for (const chip of byId("chips").children) chip.setAttribute("aria-pressed", String(chip.dataset.condition === S.condition));
  fillFilters();
  fillList();
  measure();
  const none = !V.rows.length;
  byId("empty").hidden = !none;
  byId("empty").textContent = none ? "No lane passes the filters." : "";
  if (S.open && S.line >= 0) openPanel();
  keepAddress();
  draw();
}

/** Opens the runs of the state and shows them. */
async function load(fresh) {
  const [a, b] = await Promise.all([openRun(S.run), S.other >= 0 ? openRun(S.other) : null]);
  Object.assign(V, { a, b, story: a.story, last: a.story.turns + 1 });
  if (fresh) Object.assign(S, { from: 1, to: V.last, line: -1, unit: -1, open: false });
  const { units } = V.story;
  if (!units.some((unit) => unit.family === S.family)) S.family = "";
  if (!units.some((unit) => unit.tenant === S.tenant)) S.tenant = "";
  closePanel();
  fillHead();
  change({});
}

/** Chooses another run; a script that it did not run is left with its selection. */
async function choose(run, other = -1) {
  const fresh = TOLD.runs[run].story !== TOLD.runs[S.run].story;
  S.run = run;
  S.other = other === run ? -1 : other;
  await load(fresh);
}

/** Selects a step in a lane. */
function select(line, unit, { open = false, move = false } = {}) {
  Object.assign(S, { line, unit });
  if (move) goTo(line, unit);
  if (open) S.open = true;
  if (S.open) openPanel();
  say(line, unit);
  keepAddress();
  draw();
}

/** Brings a step into view, with the turn that its answer came from. */
function goTo(line, unit) {
  const { story } = V;
  const at = story.at[line];
  const by = V.a.by[line] >= 0 ? story.at[V.a.by[line]] : at;
  const far = Math.min(at - by, 400);
  const wide = Math.max(40, far * 1.5);
  const near = xOf(at) > view.gutter + 20 && xOf(at) < view.width - 30;
  if (!near || S.to - S.from > 6 * wide) show(at - far - (wide - far) / 2, at + (wide - far) / 2);
  const place = V.rowOf.get(unit);
  if (place === undefined) return;
  const top = V.tops[place];
  if (top < box.scrollTop || top + laneHeight() > box.scrollTop + view.height) {
    box.scrollTop = Math.max(0, top - view.height / 3);
  }
}

function say(line, unit) {
  const names = V.a.at(line, unit).map((m) => NAMES[V.a.mark.name[m]].name);
  const what = names.length ? names.join(", ") : V.story.kinds[line] === "t" ? "a turn" : WORDED[V.a.verdicts[line]];
  byId("live").textContent = `Turn ${V.story.turn[line]}, ${V.story.name(unit)}: ${what}`;
}

/** Filters by a name, and opens its first violation; a second click lets all through again. */
async function toFirst(name, run = S.run) {
  if (S.name === name && run === S.run) return change({ name: "" });
  if (run !== S.run) await choose(run);
  change({ name, condition: S.condition && S.condition !== CONDITION[name] ? "" : S.condition });
  const first = V.found[0];
  if (first) select(first.line, first.unit, { open: true, move: true });
  return undefined;
}

/** To the next violation (1) or the previous one (-1) that the filters leave. */
function walk(way) {
  const { found } = V;
  if (!found.length) return;
  let place = found.findIndex((one) => one.line === S.line && one.unit === S.unit);
  if (place < 0) {
    const after = firstAt(found, S.line < 0 ? V.story.turnLine[Math.ceil(S.from)] ?? 0 : S.line, (one) => one.line);
    place = way > 0 ? after : after - 1;
  } else {
    const here = found[place];
    do place += way; while (found[place]?.line === here.line && found[place]?.unit === here.unit);
  }
  const next = found[(place + found.length) % found.length];
  select(next.line, next.unit, { open: true, move: true });
}

/** To the mark before or after, in the lane. */
function along(way) {
  if (S.unit < 0) return walk(way);
  const lines = stops(S.unit);
  const after = firstAt(lines, S.line, (i) => i);
  const there = lines[after] === S.line;
  const place = way > 0 ? after + (there ? 1 : 0) : after - 1;
  if (lines[place] !== undefined) select(lines[place], S.unit, { move: true });
  return undefined;
}

/** To the nearest mark of the lane above or below. */
function across(way) {
  let place = V.rowOf.get(S.unit);
  place = place === undefined ? (way > 0 ? -1 : V.rows.length) : place;
  do place += way; while (V.rows[place] && (V.rows[place].unit < 0 || !stops(V.rows[place].unit).length));
  const row = V.rows[place];
  if (!row) return;
  const lines = stops(row.unit);
  const wish = S.line >= 0 ? V.story.at[S.line] : S.from;
  const after = firstAt(lines, wish, (i) => V.story.at[i]);
  const [left, right] = [lines[after - 1], lines[after]];
  const nearer = right === undefined || (left !== undefined && wish - V.story.at[left] < V.story.at[right] - wish);
  select(nearer ? left : right, row.unit, { move: true });
}

/** The steps of a lane at which there is something to look at, in order. */
function stops(unit) {
  const lines = new Set(V.a.asked.of(unit));
  for (const run of V.b ? [V.a, V.b] : [V.a]) for (const m of run.marks.of(unit)) lines.add(run.mark.line[m]);
  return [...lines].sort((x, y) => x - y);
}

function closeAndFocus() {
  closePanel();
  box.focus({ preventScroll: true });
}

// ---------------------------------------------------------------- keys

const SHORT = {
  ArrowLeft: (event) => (event.shiftKey ? pan(-0.2) : along(-1)),
  ArrowRight: (event) => (event.shiftKey ? pan(0.2) : along(1)),
  ArrowUp: () => across(-1),
  ArrowDown: () => across(1),
  Enter: () => S.line >= 0 && select(S.line, S.unit, { open: true, move: true }),
  Home: () => show(1, 1 + S.to - S.from),
  End: () => show(V.last - (S.to - S.from), V.last),
};
const EVERYWHERE = {
  n: () => walk(1), p: () => walk(-1), "+": () => zoom(0.6, middle()), "=": () => zoom(0.6, middle()),
  "-": () => zoom(1 / 0.6, middle()), 0: () => show(1, V.last), d: () => setTheme(), "?": () => byId("keys").showModal(),
  "/": () => byId("text").focus(), Escape: () => (S.open ? closeAndFocus() : undefined),
};

const middle = () => (S.line >= 0 && S.line < V.story.at.length && V.story.at[S.line] > S.from && V.story.at[S.line] < S.to ? V.story.at[S.line] : (S.from + S.to) / 2);
const pan = (share) => show(S.from + share * (S.to - S.from), S.to + share * (S.to - S.from));

document.addEventListener("keydown", (event) => {
  if (!V.a || event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  const inside = event.target.closest?.("input[type=search], select, textarea");
  if (inside) {
    if (event.key === "Escape") box.focus();
    return;
  }
  const act = EVERYWHERE[event.key] ?? (event.target === box ? SHORT[event.key] : undefined);
  if (!act) return;
  event.preventDefault();
  act(event);
});

// ---------------------------------------------------------------- pointer

let drag = null;

function onDrag(element, begin, go, end) {
  element.addEventListener("pointerdown", (event) => {
    if (event.button || !V.a) return;
    drag = { x: event.offsetX, y: event.offsetY, far: false, from: S.from, to: S.to, top: box.scrollTop, ...begin(event) };
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    if (!drag) return;
    if (Math.hypot(event.offsetX - drag.x, event.offsetY - drag.y) > 4) drag.far = true;
    if (drag.far) go(event);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    element.addEventListener(name, (event) => {
      const was = drag;
      drag = null;
      if (was && name === "pointerup") end(event, was);
    });
  }
}

const paper = byId("paper");
onDrag(paper, () => ({}), (event) => {
  const turns = ((event.offsetX - drag.x) / plot()) * (drag.to - drag.from);
  show(drag.from - turns, drag.to - turns);
  box.scrollTop = drag.top - (event.offsetY - drag.y);
  hover(null);
}, (event, was) => {
  if (was.far) return;
  box.focus({ preventScroll: true });
  const found = under(event.offsetX, event.offsetY);
  if (found) select(found.line, found.unit, { open: true });
});
paper.addEventListener("pointermove", (event) => !drag && V.a && hover(under(event.offsetX, event.offsetY), event));
paper.addEventListener("pointerleave", () => hover(null));

onDrag(map, (event) => {
  const [begin, end] = [xOfMap(S.from), xOfMap(S.to)];
  const x = event.offsetX;
  const edge = Math.abs(x - begin) < 7 ? "from" : Math.abs(x - end) < 7 ? "to" : "";
  if (!edge && (x < begin || x > end)) {
    const half = (S.to - S.from) / 2;
    show(atOfMap(x) - half, atOfMap(x) + half);
  }
  return { edge, from: S.from, to: S.to };
}, (event) => {
  const moved = atOfMap(event.offsetX) - atOfMap(drag.x);
  if (drag.edge === "from") show(Math.min(drag.from + moved, drag.to - 2), drag.to);
  else if (drag.edge === "to") show(drag.from, Math.max(drag.to + moved, drag.from + 2));
  else show(drag.from + moved, drag.to + moved);
}, () => {});

function onWheel(element, always) {
  element.addEventListener("wheel", (event) => {
    if (!V.a) return;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || (always && !event.shiftKey && event.deltaY)) zoom(1.0015 ** event.deltaY, atOf(Math.max(event.offsetX, view.gutter)));
    else if (sideways) show(S.from + (sideways / plot()) * (S.to - S.from), S.to + (sideways / plot()) * (S.to - S.from));
    else return;
    event.preventDefault();
  }, { passive: false });
}
onWheel(paper, false);
onWheel(map, true);
onWheel(foot, true);

let telling = 0;

/** A word on what is under the pointer. */
async function hover(found, event) {
  const tip = byId("tip");
  const mine = ++telling;
  const same = found && view.hover && found.line === view.hover.line && found.unit === view.hover.unit;
  view.hover = found;
  paper.classList.toggle("over", Boolean(found));
  if (!same) draw();
  if (!found) {
    tip.hidden = true;
    return;
  }
  const x = Math.min(event.clientX + 14, window.innerWidth - 330);
  tip.style.left = `${x}px`;
  tip.style.top = `${Math.min(event.clientY + 16, window.innerHeight - 110)}px`;
  if (same && !tip.hidden) return;
  const [told, shown] = await Promise.all([V.story.lines.row(found.line), found.run.shown.row(found.line)]);
  if (mine !== telling && !(view.hover?.line === found.line)) return;
  const names = found.run.at(found.line, found.unit).map((m) => NAMES[found.run.mark.name[m]].name);
  const turn = told.kind === "turn";
  tip.replaceChildren(
    e("b", {}, names.join(", ") || (turn ? "said" : WORDED[found.run.verdicts[found.line]])),
    e("span", { class: "note" }, ` turn ${told.turn.toLocaleString("en")}${V.b ? ` · ${found.run.about.label}` : ""}`),
    ...(turn ? [said(told.text.slice(0, 160), 0)] : [told.due ? e("div", {}, `due: ${told.due.slice(0, 120)}`) : "", shown.answer ? e("div", {}, `answered: ${shown.answer.slice(0, 120)}`) : ""]),
  );
  tip.hidden = false;
}

// ---------------------------------------------------------------- controls

const on = (id, name, act) => byId(id).addEventListener(name, act);
on("script", "change", () => {
  const story = +byId("script").value;
  const { label } = V.a.about;
  const fits = TOLD.runs.map((run, n) => [run, n]).filter(([run]) => run.story === story);
  const [, n] = fits.find(([run]) => run.label === label) ?? fits[0] ?? [];
  if (n !== undefined) choose(n);
});
on("system", "change", () => choose(+byId("system").value, S.other));
on("other", "change", () => choose(S.run, +byId("other").value));
for (const field of ["family", "tenant", "group", "sort"]) on(field, "change", () => change({ [field]: byId(field).value }));
for (const field of ["only", "differ"]) on(field, "change", () => change({ [field]: byId(field).checked }));
on("text", "input", () => change({ text: byId("text").value }));
on("in", "click", () => zoom(0.6, middle()));
on("out", "click", () => zoom(1 / 0.6, middle()));
on("all", "click", () => show(1, V.last));
on("help", "click", () => byId("keys").showModal());
on("theme", "click", () => setTheme());
box.addEventListener("scroll", () => draw(true), { passive: true });
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("list").focus();
});
new ResizeObserver(() => {
  if (!V.a) return;
  measure();
  view.density = null;
  draw();
}).observe(box);

const dark = matchMedia("(prefers-color-scheme: dark)");

/** The other theme, or the one that the system wishes. */
function setTheme(to) {
  const root = document.documentElement;
  const now = root.dataset.theme ?? (dark.matches ? "dark" : "light");
  const next = to ?? (now === "dark" ? "light" : "dark");
  if (to !== null) root.dataset.theme = next;
  byId("theme").textContent = (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark" ? "Light" : "Dark";
  readColours();
  view.density = null;
  for (const canvas of document.querySelectorAll("canvas.glyph")) canvas.repaint();
  draw();
}
dark.addEventListener("change", () => setTheme(null));

/** Shows what an address says. */
async function restore() {
  const wish = takeAddress(location.hash);
  await load(true);
  if (Number.isFinite(wish.from) && wish.to > wish.from) show(wish.from, wish.to);
  const fits = wish.line >= 0 && wish.line < V.story.kinds.length && wish.unit >= 0 && wish.unit <= V.story.memory;
  if (fits) {
    select(wish.line, wish.unit, { open: wish.open });
    const place = V.rowOf.get(wish.unit);
    if (place !== undefined) box.scrollTop = Math.max(0, V.tops[place] - view.height / 3);
  }
}
window.addEventListener("hashchange", () => location.hash !== saved && restore());

setTheme(null);
fillHelp();
await restore();
byId("wait").remove();
document.documentElement.dataset.ready = "yes";
