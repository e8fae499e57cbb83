// Small parts of the page. Text goes in as text nodes and nothing else, whatever it holds.

/** An element. `how` sets attributes, properties that are functions, and `class`. */
function e(tag, how = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(how)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...inside.flat(Infinity).filter((part) => part !== null && part !== undefined && part !== ""));
  return made;
}

const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** A rate in percent; what is not nought or all is never written so. */
function percent(part, whole) {
  const share = part / whole;
  if (share > 0 && share < 0.0005) return "<0.1%";
  if (share >= 0.9995 && share < 1) return ">99.9%";
  return `${(100 * share).toFixed(1)}%`;
}

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/** `5 Jan 2026, 09:19`; what is no such time stays as it is. */
function when(at) {
  const found = /^(\d{4})-(\d\d)-(\d\d)T(\d\d:\d\d)/.exec(at);
  return found ? `${+found[3]} ${MONTHS[found[2] - 1] ?? found[2]} ${found[1]}, ${found[4]}` : at;
}

/** A text as it was said; says so where the page holds only its beginning. */
function said(text, chars, kind = "said") {
  const more = chars ? e("span", { class: "note" }, ` … ${count(chars, "character")} in all`) : null;
  return e("p", { class: kind, dir: "auto" }, text, more);
}

const badge = (text, kind = "") => e("span", { class: `badge ${kind}` }, text);

/** A button that goes to a step. */
const step = (line, unit, text) =>
  e("button", { type: "button", class: "link", click: () => select(line, unit, { open: true, move: true }) }, text);

const stepOf = (story, line, unit) => step(line, unit, `turn ${story.turn[line].toLocaleString("en")}`);

function section(title, ...inside) {
  return e("section", {}, e("h3", {}, title), ...inside);
}

/** Inside, all of what a list makes; beyond `most`, a button that shows the rest. */
function shortList(made, most) {
  if (made.length <= most + 1) return made;
  const rest = made.slice(most);
  const more = e("button", { type: "button", class: "link more" }, `show ${rest.length} more`);
  more.addEventListener("click", () => more.replaceWith(...rest));
  return [...made.slice(0, most), more];
}
