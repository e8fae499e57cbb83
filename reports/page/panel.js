// The panel: one step, what led to it, what was served and answered, and what it cost.

const panel = byId("panel");
let asking = 0;

/** Fills the panel with the selected step. */
async function openPanel() {
  const mine = ++asking;
  const { line, unit } = S;
  const runs = V.b ? [V.a, V.b] : [V.a];
  const { story } = V;
  const [told, ...seen] = await Promise.all([
    story.lines.row(line),
    ...runs.map(async (run) => ({
      run,
      shown: await run.shown.row(line),
      marks: await run.texts.rows(run.at(line, unit === story.memory ? -1 : unit)),
    })),
  ]);
  const parts = await Promise.all([
    headOf(told, line, unit, seen),
    ...seen.map((one) => outcome(told, line, unit, one, seen.length > 1)),
    past(line, unit, seen),
    ...seen.map((one) => served(told, one, seen.length > 1)),
    ...seen.map((one) => witness(one, seen.length > 1)),
    around(line),
    ...seen.map((one) => calls(one, seen.length > 1)),
  ]);
  if (mine !== asking) return;
  panel.replaceChildren(...parts.flat(Infinity).filter(Boolean));
  panel.hidden = false;
  byId("list").hidden = true;
  byId("side").scrollTop = 0;
}

function closePanel() {
  asking += 1;
  S.open = false;
  panel.hidden = true;
  byId("list").hidden = false;
  keepAddress();
}

const WHAT = {
  t: "said", p: "asked", a: "looked up", g: "state measured", z: "pause", e: "erased",
};

function headOf(told, line, unit, seen) {
  const { story } = V;
  const titles = seen.flatMap(({ run, marks }) =>
    marks.map((mark) => e("h2", { class: "title" }, glyph(mark.condition, 6), mark.name,
      seen.length > 1 ? e("span", { class: "note" }, ` ${run.about.label}`) : null)),
  );
  const where = story.units[unit];
  return [
    e("div", { class: "bar" },
      e("button", { type: "button", id: "previous", click: () => walk(-1), title: "Previous violation (p)" }, "← Previous"),
      e("button", { type: "button", id: "next", click: () => walk(1), title: "Next violation (n)" }, "Next →"),
      e("span", { class: "note" }, placeWords(line, unit)),
      e("span", { class: "space" }),
      e("button", { type: "button", id: "close", click: closeAndFocus, title: "Close (Esc)", "aria-label": "Close" }, "✕")),
    titles.length ? titles : e("h2", { class: "title" }, quietTitle(line)),
    e("p", { class: "where" }, e("strong", {}, `Turn ${told.turn.toLocaleString("en")}`), ` · ${when(told.at)} · ${WHAT[story.kinds[line]]}`,
      e("br"), story.name(unit), where ? e("span", { class: "note" }, ` · ${where.family} · ${where.tenant}`) : null),
    [...new Set(seen.flatMap(({ marks }) => marks.map((mark) => mark.name)))].map((name) =>
      e("p", { class: "explained" }, TOLD.explained[name])),
  ];
}

function quietTitle(line) {
  const letter = V.a.verdicts[line];
  if (V.story.kinds[line] === "t") return "A turn";
  return V.story.kinds[line] === "p" && letter !== "-" ? `Answered: ${WORDED[letter]}` : "No violation here";
}

/** `12 of 641` among those that the filters leave. */
function placeWords(line, unit) {
  const place = V.found.findIndex((found) => found.line === line && found.unit === unit);
  return place < 0 ? count(V.found.length, "violation") : `${(place + 1).toLocaleString("en")} of ${V.found.length.toLocaleString("en")}`;
}

// ---------------------------------------------------------------- due and answered

function outcome(told, line, unit, { run, shown, marks }, two) {
  const { story } = V;
  const kind = story.kinds[line];
  const boxes = [];
  const due = kind === "p" ? told.due || marks[0]?.expected || "" : "";
  const got = kind === "p" ? shown.answer ?? "" : "";
  const wrong = !"c-".includes(run.verdicts[line]);
  if (kind === "p" && told.ask !== "rank" && (due || got)) {
    boxes.push(pair("Due", due || "nothing"), pair("Answered", got || "not judged", wrong ? "bad" : run.verdicts[line] === "c" ? "good" : "",
      source(run, shown, line, unit)));
  }
  for (const mark of marks) {
    if (kind === "p" && mark.observed === got && mark.expected === due) continue;
    if (mark.expected && mark.expected !== due) boxes.push(pair("Expected", mark.expected));
    if (mark.observed) boxes.push(pair(mark.name === "exposed-history" ? "Served beside it" : "Seen", mark.observed, "bad"));
  }
  const beside = (shown.exposed ?? []).filter((value) => value !== got && !marks.some((mark) => mark.observed?.includes(value)));
  if (beside.length) boxes.push(pair("Served unmarked beside it", beside.join(", "), "bad"));
  if (shown.type && shown.type !== "ok") {
    boxes.push(pair(shown.type === "fail" ? "The step failed" : "Nobody knows whether it was done", shown.error || "no reason given", "bad"));
  }
  if (kind === "a" && !marks.length && told.due) boxes.push(pair("True history", told.due));
  if (!boxes.length) return null;
  return e("div", { class: "outcome" }, two ? e("h3", {}, run.about.label) : null, e("dl", {}, ...boxes));
}

function pair(name, value, kind = "", more = null) {
  return e("div", { class: `pair ${kind}` }, e("dt", {}, name), e("dd", { dir: "auto" }, value, more));
}

/** Which turn the answered value was said in. */
function source(run, shown, line, unit) {
  const by = run.by[line];
  if (by < 0) return null;
  const { story } = V;
  const age = story.turn[line] - story.turn[by];
  const row = story.ops.of(unit).find((said) => story.said.line[said] === by);
  const op = row === undefined ? "said" : story.opNames[story.said.op[row]];
  return e("span", { class: "note" }, `from `, e("b", {}, op), ` in `, stepOf(story, by, unit), age ? `, ${count(age, "turn")} before` : "");
}

// ---------------------------------------------------------------- what led to it

const MOST = 24; // steps before this one that are told, beside the first two and those that are named

/** What was said of the unit, and the turns that a violation names, up to this step. */
async function past(line, unit, seen) {
  const { story } = V;
  const ids = new Set(seen.flatMap(({ marks }) => marks.flatMap((mark) => mark.witness ?? [])));
  const began = new Set(seen.flatMap(({ run }) => run.at(line, unit).map((m) => run.mark.began[m])));
  const key = new Set([...began, ...seen.map(({ run }) => run.by[line]), lastRight(seen[0].run, line, unit)]);
  const all = linesOf(unit, line, key);
  const kept = all.filter((i, k) => k < 2 || k >= all.length - MOST || key.has(i));
  const known = await story.lines.rows(kept);
  const steps = known.map((told, k) => ({ told, line: kept[k], began: began.has(kept[k]) }));
  steps.push(...(await named(ids, line, steps)));
  steps.sort((x, y) => x.line - y.line);
  if (!steps.length) return null;
  const now = await story.lines.row(line);
  const here = story.kinds[line] === "p" ? asked(now, line, unit, seen) : spoken({ told: now, line }, ids, unit, true);
  const left = all.length - kept.length;
  return section(unit < story.memory ? "What was said of it" : "What led to it",
    left ? e("p", { class: "note" }, `${count(left, "step")} between are left out.`) : null,
    e("ol", { class: "talk" }, folded(steps, ids, unit, seen[0].run), here));
}

/** Steps before `line` that speak of a unit or change it, and those of `key`, in order. */
function linesOf(unit, line, key) {
  const { story } = V;
  const lines = new Set(key);
  if (unit < story.memory) {
    for (const row of story.ops.of(unit)) lines.add(story.said.line[row]);
    for (const row of story.changes.of(unit)) lines.add(story.change.line[row]);
  }
  return [...lines].filter((i) => i >= 0 && i < line).sort((x, y) => x - y);
}

/** The turns among `ids` that are not there yet. */
async function named(ids, line, steps) {
  const there = new Set(steps.map(({ told }) => told.id));
  const found = [];
  for (const id of ids) {
    const guess = V.story.turnLine[Number(/^t0*(\d+)$/.exec(id)?.[1] ?? -1)];
    if (guess === undefined || guess > line || there.has(id)) continue;
    const told = await V.story.lines.row(guess);
    if (told.id === id) found.push({ told, line: guess });
  }
  return found;
}

/** The last step before this one at which the unit was answered right. */
function lastRight(run, line, unit) {
  const asked = run.asked.of(unit);
  for (let k = firstAt(asked, line, (i) => i) - 1; k >= 0; k -= 1) {
    if (run.verdicts[asked[k]] === "c") return asked[k];
  }
  return -1;
}

/** Long histories keep their beginning, their end, and what the violation names. */
function folded(steps, ids, unit, run) {
  const keep = steps.map(({ told }, k) => k < 2 || k >= steps.length - 5 || ids.has(told.id));
  const made = [];
  let hidden = [];
  const flush = () => {
    if (!hidden.length) return;
    const rest = hidden.map((one) => spoken(one, ids, unit));
    const more = e("li", { class: "gap" });
    more.append(e("button", { type: "button", class: "link", click: () => more.replaceWith(...rest) }, `… ${count(rest.length, "more step")}`));
    made.push(more);
    hidden = [];
  };
  steps.forEach((one, k) => {
    if (!keep[k]) return hidden.push(one);
    flush();
    return made.push(V.story.kinds[one.line] === "p" ? earlier(one, unit, run) : spoken(one, ids, unit));
  });
  flush();
  return made;
}

function earlier({ told, line }, unit, run) {
  return e("li", { class: "asked" }, e("span", { class: "who" }, "asked"), stepOf(V.story, line, unit),
    e("p", { class: "then" }, `It answered right: ${told.due || "nothing is set"}.`));
}

/** A step of the script: who said what, what it means, and what became true. */
function spoken({ told, line, began = false }, ids, unit, here = false) {
  const { story } = V;
  const who = told.kind === "turn" ? told.role || "user" : WHAT[story.kinds[line]];
  const changes = (told.changes ?? []).map((change) => e("p", { class: `became ${change.unit === unit ? "own" : ""}` },
    `→ ${story.name(change.unit)} `,
    change.value === undefined || change.value === null ? e("em", {}, ENDED[change.cause] ?? "is not set any more") : e("b", { dir: "auto" }, change.value),
    ["told"].includes(change.cause) ? "" : ` (${change.cause}${change.via !== undefined && change.via !== null ? ` from ${story.name(change.via)}` : ""})`));
  const ops = (told.ops ?? []).map((op) => badge(op.op, "op"));
  return e("li", { class: `${told.kind === "turn" ? "turn" : "aside"} ${ids.has(told.id) ? "named" : ""} ${here ? "here" : ""}` },
    e("span", { class: "who" }, who), here ? e("span", { class: "link" }, `turn ${told.turn}`) : stepOf(story, line, unit), ops,
    began ? badge("it began here", "began") : null,
    told.text ? said(told.text, told.chars) : null,
    shortList(changes, 4));
}

/** A question, and what each run made of it. */
function asked(told, line, unit, seen) {
  return [
    e("li", { class: "asked here" }, e("span", { class: "who" }, told.in_script ? "asked" : "asked, to measure"), `turn ${told.turn}`,
      told.text ? said(told.text, told.chars) : null),
    ...seen.filter(({ shown }) => shown.answer).map(({ run, shown }) => {
      const right = run.verdicts[line] === "c";
      const beside = right && shown.exposed?.length ? e("p", { class: "bad", dir: "auto" }, `served beside it, unmarked: ${shown.exposed.join(", ")}`) : null;
      return e("li", { class: `answer ${right ? "good" : "bad"}` }, e("span", { class: "who" }, run.about.label),
        e("p", { class: "said", dir: "auto" }, shown.answer), beside);
    }),
  ];
}

// ---------------------------------------------------------------- what was served

const VIA = {
  fork: "asked of a copy", "in-script": "asked in the conversation", listing: "read from a listing",
};

async function served(told, { run, shown }, two) {
  if (!shown.items?.length) {
    return told.kind === "probe" ? section(titled("Served", run, two), e("p", { class: "note" }, "Nothing was served.")) : null;
  }
  const items = await run.items.rows(shown.items);
  const rows = items.map((item, k) => {
    const place = shown.places[k];
    const claims = (shown.claims ?? []).filter((claim) => claim.place === place);
    return e("li", { class: claims.length ? "speaks" : "" }, e("span", { class: "place" }, String(place)),
      e("div", {}, said(item.text, item.chars, "text"), e("p", { class: "marks" }, marksOf(item),
        claims.map((claim) => claimed(claim)))));
  });
  const more = shown.given > rows.length ? e("p", { class: "note" }, `${count(shown.given - rows.length, "more item")} not kept on this page.`) : null;
  const given = `${count(shown.given ?? rows.length, "item")}${shown.tokens ? `, ${count(shown.tokens, "token")}` : ""}${VIA[shown.via] ? `, ${VIA[shown.via]}` : ""}`;
  return section(titled("Served", run, two), e("p", { class: "note" }, given), e("ol", { class: "served" }, shortList(rows, 6)), more);
}

const titled = (title, run, two) => (two ? `${title} by ${run.about.label}` : title);

function marksOf(item) {
  return [
    item.valid_from ? badge(`valid from ${when(item.valid_from)}`) : null,
    item.valid_to ? badge(`valid until ${when(item.valid_to)}`) : null,
    item.review ? badge("marked for review") : null,
    item.sources ? badge(item.sources.length ? `source ${item.sources.slice(0, 6).join(", ")}${item.sources.length > 6 ? " …" : ""}` : "names no source") : null,
  ];
}

function claimed(claim) {
  const open = claim.open ?? true;
  return e("span", { class: `claim ${open ? "open" : "closed"}` }, `read as: ${claim.meaning}`, claim.value ? [" ", e("b", { dir: "auto" }, claim.value)] : "",
    open ? ", holds" : ", closed", claim.review ? ", for review" : "");
}

// ---------------------------------------------------------------- the witness, the turns around, the cost

async function witness({ run, marks }, two) {
  if (!marks.length) return null;
  const kept = await run.witnesses();
  return marks.map((mark) => {
    const found = kept.find((one) => one.name === mark.name);
    const unit = mark.unit === undefined || mark.unit === null ? "" : `@${V.story.units[mark.unit].id}`;
    const title = titled(`Shortest conversation that shows ${mark.name}`, run, two);
    if (!found) return section(title, e("p", { class: "note" }, "Not looked for yet. This command finds it:"), command(`steeltrap shrink ${quoted(run.about.folder)} ${quoted(mark.name + unit)}`));
    const lines = found.story.lines.filter((line) => line.text);
    return section(title, e("ol", { class: "talk small" }, lines.map((line) =>
      e("li", { class: line.kind === "turn" ? "turn" : "asked" }, e("span", { class: "who" }, line.kind === "turn" ? line.role || "user" : "asked"),
        (line.ops ?? []).map((op) => badge(op.op, "op")), said(line.text, line.chars), line.due ? e("p", { class: "became" }, `due: ${line.due}`) : null)),
    ), found.observed ? e("p", { class: "pair bad" }, `Seen: ${found.observed}`) : null, e("p", { class: "note" }, `${found.file}, run by `, e("code", {}, "steeltrap check"), found.limit ? `; at most ${found.limit} item${found.limit > 1 ? "s" : ""} a query` : ""));
  });
}

/** A word of a command line, as a shell wants it. */
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

function command(text) {
  const copy = e("button", { type: "button", class: "copy" }, "Copy");
  copy.addEventListener("click", () => navigator.clipboard?.writeText(text).then(() => { copy.textContent = "Copied"; }, () => {}));
  return e("div", { class: "command" }, e("code", {}, text), copy);
}

async function around(line) {
  const { story } = V;
  const turn = story.turn[line];
  const lines = story.turnLine.slice(Math.max(1, turn - 4), turn + 4).filter((i) => i >= 0);
  const told = await story.lines.rows(lines);
  const nobody = new Set();
  const made = told.map((one, k) => spoken({ told: one, line: lines[k] }, nobody, S.unit, lines[k] === story.turnLine[turn]));
  return section("The turns around it", e("ol", { class: "talk small" }, made));
}

const PHASES = ["chat calls", "failed", "embeddings", "prompt", "completion", "cached"];

function calls({ run, shown }, two) {
  const phases = Object.entries(shown.models ?? {});
  const time = e("p", { class: "note" }, `The step took ${(shown.ms ?? 0).toLocaleString("en")} ms, the models' time included.`);
  if (!phases.length) return section(titled("Model calls", run, two), e("p", { class: "note" }, "None in this step."), shown.ms ? time : null);
  const used = PHASES.map((_, k) => phases.some(([, row]) => row[k]));
  const heads = PHASES.filter((_, k) => used[k]).map((name) => e("th", { scope: "col" }, name));
  const rows = phases.map(([phase, row]) => e("tr", {}, e("th", { scope: "row" }, phase), row.filter((_, k) => used[k]).map((n) => e("td", {}, n.toLocaleString("en")))));
  return section(titled("Model calls", run, two), e("table", {}, e("thead", {}, e("tr", {}, e("th", { scope: "col" }, "phase"), heads)), e("tbody", {}, rows)),
    e("p", { class: "note" }, "Prompt, completion and cached are tokens."), time);
}
