// What stands above the lanes: the runs, the conditions, the names; and the list of violations.

function fillHead() {
  const { a, b } = V;
  fillRuns();
  byId("about").textContent = `${count(V.story.turns, "turn")} · reader ${a.about.reader}`;
  byId("about").title = [["items served to a question, at most", a.about.limit], ...Object.entries(a.about.facts)].map(([key, value]) => `${key}: ${value}`).join("\n");
  byId("chips").replaceChildren(...Object.keys(TOLD.names).map((condition) => chip(condition, b ? [a, b] : [a])));
  byId("pick-differ").hidden = !b;
  fillNames();
  fillLegend();
}

/** Name and seed; those that share both are told apart by their length, or else by their sha256. */
function scriptWords(story) {
  const alike = TOLD.stories.filter((other) => other.name === story.name && other.seed === story.seed);
  const long = new Set(alike.map((other) => other.turns)).size === alike.length ? `${story.turns} turns` : story.sha256.slice(0, 8);
  return `${story.name}, seed ${story.seed}${alike.length > 1 ? ` (${long})` : ""}`;
}

function fillRuns() {
  const here = TOLD.runs[S.run].story;
  const same = TOLD.runs.map((run, n) => [n, run]).filter(([, run]) => run.story === here);
  fill("script", TOLD.stories.map((story, n) => [n, scriptWords(story)]), here);
  fill("system", same.map(([n, run]) => [n, run.label]), S.run);
  fill("other", [[-1, "nothing"], ...same.filter(([n]) => n !== S.run).map(([n, run]) => [n, run.label])], S.other);
  byId("pick-other").hidden = same.length < 2;
}

function fill(id, options, chosen) {
  byId(id).replaceChildren(...options.map(([value, text]) => e("option", { value: String(value) }, text)));
  byId(id).value = String(chosen);
}

/** A condition: how it stands, and a filter. */
function chip(condition, runs) {
  const verdicts = runs.map((run) => run.about.verdicts[condition]);
  const worst = ["violated", "unknown", "held"].find((how) => verdicts.some((v) => v?.validity === how)) ?? "unknown";
  return e("button", {
    type: "button", class: `chip ${worst}`, "data-condition": condition, title: TOLD.asks[condition],
    "aria-pressed": String(S.condition === condition),
    click: () => change({ condition: S.condition === condition ? "" : condition, name: "" }),
  }, e("span", { class: "chip-name" }, glyph(condition), condition === "beyond" ? "Beyond" : condition,
    e("span", { class: "note" }, TOLD.asks[condition].split(":")[0].replace("beyond the six", "the six"))),
  runs.map((run, side) => {
    const [line, more] = verdictLines(verdicts[side], runs.length > 1 ? run.about.label : "");
    if (runs.length < 2) return [line, more];
    line.title = more?.textContent ?? "";
    return line;
  }));
}

/** How a condition stands, and more on it. */
function verdictLines(verdict, label) {
  const system = label ? e("span", { class: "note" }, `${label} `) : null;
  if (!verdict || verdict.validity === "unknown") {
    return [e("span", { class: "verdict" }, system, e("b", {}, "unknown")), e("span", { class: "verdict note reason", title: verdict?.note ?? "" }, verdict?.note || "no opportunity")];
  }
  if (verdict.validity === "held") {
    return [e("span", { class: "verdict" }, system, e("b", { class: "good" }, "held")), e("span", { class: "verdict note" }, `in ${count(verdict.opportunities, "test")}`)];
  }
  const first = verdict.first_turn ?? null;
  return [
    e("span", { class: "verdict" }, system, e("b", { class: "bad" }, percent(verdict.violations, verdict.opportunities)),
      e("span", { class: "note" }, ` ${verdict.violations.toLocaleString("en")}/${verdict.opportunities.toLocaleString("en")}`)),
    first === null ? null : e("span", { class: "verdict note" }, `first at turn ${first.toLocaleString("en")}`),
  ];
}

/** A button for each name that was found: it filters, and stands at the first. */
function fillNames() {
  const runs = V.b ? [V.a, V.b] : [V.a];
  const made = [];
  for (const { name, condition } of NAMES) {
    if (S.condition && S.condition !== condition) continue;
    const counts = runs.map((run) => run.about.counts[name] ?? 0);
    if (counts.some(Boolean)) made.push(nameButton(name, condition, counts));
    else if (!V.b) made.push(...elsewhere(name, condition));
  }
  byId("names-title").hidden = !made.length;
  byId("names").replaceChildren(...(made.length ? made : [e("span", { class: "note" }, S.condition ? "No violation of this condition was found." : "No violation was found.")]));
}

function nameButton(name, condition, counts) {
  return e("button", {
    type: "button", class: "name", "data-name": name, "aria-pressed": String(S.name === name), title: TOLD.explained[name],
    click: () => toFirst(name),
  }, glyph(condition), name, e("span", { class: "note" }, counts.map((n) => n.toLocaleString("en")).join(" | ")));
}

/** The same system on another script, where that shows what this one does not. */
function elsewhere(name, condition) {
  const { label } = V.a.about;
  const n = TOLD.runs.findIndex((run) => run.label === label && (run.counts[name] ?? 0) > 0);
  if (n < 0) return [];
  const story = TOLD.stories[TOLD.runs[n].story];
  return [e("button", {
    type: "button", class: "name far", "data-name": name, title: `${TOLD.explained[name]} Not here, but in ${scriptWords(story)}.`,
    click: () => toFirst(name, n),
  }, glyph(condition), name, e("span", { class: "note" }, `in ${scriptWords(story)}`))];
}

function fillFilters() {
  const { units } = V.story;
  const each = (field) => [["", "all"], ...[...new Set(units.map((unit) => unit[field]))].sort().map((value) => [value, value || "none"])];
  fill("family", each("family"), S.family);
  fill("tenant", each("tenant"), S.tenant);
  for (const field of ["group", "sort", "text"]) byId(field).value = S[field];
  for (const field of ["only", "differ"]) byId(field).checked = S[field];
}

// ---------------------------------------------------------------- the list

const PAGE = 100;

/** Violations as a list of buttons: for everybody who does not look at a canvas. */
function fillList(most = PAGE) {
  const rows = V.found.slice(0, most).map((found) => listed(found));
  const left = V.found.length - rows.length;
  const more = left > 0 ? e("button", { type: "button", class: "link more", click: () => fillList(most + 4 * PAGE) }, `Show more (${left.toLocaleString("en")} left)`) : null;
  const note = V.found.length ? "In order of turns. The buttons above filter; a click opens one." : quietWords();
  byId("list").replaceChildren(...[
    e("h2", {}, count(V.found.length, "violation"), filterWords()),
    e("p", { class: "note" }, note),
    e("ol", { class: "rows" }, rows), more,
  ].filter(Boolean));
}

function quietWords() {
  if (S.name || S.condition || S.family || S.tenant || S.text || S.differ) return "None passes the filters.";
  return "This run shows none. A click on a mark opens what was asked and answered.";
}

function filterWords() {
  const on = [S.name || S.condition, S.family, S.tenant, S.text && `“${S.text}”`, S.differ && "only where they differ"].filter(Boolean);
  if (!on.length) return null;
  return e("span", { class: "note" }, ` of ${on.join(", ")} `, e("button", { type: "button", class: "link", id: "clear", click: clearFilters }, "show all"));
}

const clearFilters = () => change({ name: "", condition: "", family: "", tenant: "", text: "", differ: false, only: false });

function listed({ run, m, line, unit, side }) {
  const { name, condition } = NAMES[run.mark.name[m]];
  return e("li", {}, e("button", { type: "button", class: "row", click: () => select(line, unit, { open: true, move: true }) },
    glyph(condition), e("span", { class: "row-turn" }, `turn ${V.story.turn[line].toLocaleString("en")}`),
    e("span", { class: "row-name" }, name, V.b ? e("span", { class: "note" }, ` ${run.about.label}`) : null),
    e("span", { class: "row-unit", dir: "auto" }, V.story.name(unit))));
}

// ---------------------------------------------------------------- legend and help

function fillLegend() {
  const key = (paint, text) => e("span", { class: "key" }, picture(22, 16, paint), text);
  const sides = V.b ? `above the bar ${V.a.about.label}, below it ${V.b.about.label}` : "";
  byId("legend").replaceChildren(
    sides ? e("b", { class: "key" }, sides) : "",
    key((g) => drawAnswer(g, "c", 11, 8), "right"),
    key((g) => drawAnswer(g, "m", 11, 8), "nothing answered"),
    key((g) => drawAnswer(g, "i", 11, 8), "wrong by its source, or in doubt"),
    key((g) => {
      ["C1", "C2", "C3"].forEach((condition, k) => drawMark(g, condition, 4 + 7 * k, 8, 3.6, false));
    }, "violation, by condition"),
    key((g) => {
      g.fillStyle = C.tint1;
      g.fillRect(1, 2, 20, 12);
      g.fillStyle = C.edge;
      g.fillRect(9, 0, 2, 16);
    }, "truth (↳ derived  ≠ corrected  ← late  ? for review)"),
    key((g) => {
      g.strokeStyle = C.select;
      g.lineWidth = 1.5;
      g.setLineDash([4, 3]);
      g.beginPath();
      g.moveTo(1, 13);
      g.quadraticCurveTo(10, -2, 21, 12);
      g.stroke();
    }, "where the answer came from"),
  );
}

const KEYS = [
  ["← →", "to the mark before or after, in this lane"], ["↑ ↓", "to the lane above or below"],
  ["Enter", "open the mark"], ["Esc", "close"], ["n  p", "next, previous violation"],
  ["+  −  0", "zoom in, zoom out, all turns"], ["Shift ← →", "move along the turns"],
  ["/", "search units"], ["d", "light or dark"], ["?", "this help"],
];

function fillHelp() {
  byId("keys").replaceChildren(
    e("div", { class: "bar" }, e("h2", { id: "keys-title" }, "How to look at a run"), e("span", { class: "space" }),
      e("button", { type: "button", click: () => byId("keys").close() }, "Close")),
    e("p", {}, "Each lane is one thing that has one value at a time. The bar is what was true; the marks above it are the questions and what was answered, those below it what the compared system answered. Click a name, such as resurrection, to stand at its first violation."),
    e("dl", { class: "keys" }, KEYS.map(([key, what]) => [e("dt", {}, e("kbd", {}, key)), e("dd", {}, what)])),
    e("p", {}, "Drag moves, Ctrl and the wheel zoom, Shift and the wheel move along. In the map above the lanes the wheel zooms, and the frame can be dragged. The address holds what you look at: copy it to show somebody a moment."),
    e("h3", {}, "Violations"),
    e("dl", { class: "names-told" }, NAMES.map(({ name, condition }) => [e("dt", {}, glyph(condition), name), e("dd", {}, TOLD.explained[name])])),
  );
}
