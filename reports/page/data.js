// The data: lines of base64 in the page. The first is the directory, the others are found through
// it (pack.py). Indexes become typed arrays by unit; shelves are read when something is opened.

const BLOCKS = document.getElementById("data").textContent.split("\n");
const NOTHING = Object.freeze([]);

/** What block number `n` holds. */
async function unpack(n) {
  const bytes = Uint8Array.fromBase64
    ? Uint8Array.fromBase64(BLOCKS[n])
    : Uint8Array.from(atob(BLOCKS[n]), (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(plain).json();
}

const TOLD = await unpack(0);

/** Name of a violation by number, and its condition. */
const NAMES = Object.entries(TOLD.names).flatMap(([condition, names]) =>
  names.map((name) => ({ name, condition })),
);
const CONDITION = Object.fromEntries(NAMES.map(({ name, condition }) => [name, condition]));

/** Rows that are read only when they are asked for. */
class Shelf {
  constructor(first) {
    this.first = first;
    this.open = new Map();
  }

  async row(i) {
    const n = Math.floor(i / TOLD.shelf);
    if (!this.open.has(n)) this.open.set(n, unpack(this.first + n));
    return (await this.open.get(n))[i % TOLD.shelf];
  }

  rows(numbers) {
    return Promise.all(numbers.map((i) => this.row(i)));
  }
}

/** Rows by group: `of(group)` is a view of one array. Rows keep their order. */
class Grouped {
  constructor(groups, column, rows = column.map((_, row) => row)) {
    const start = new Int32Array(groups + 1);
    for (const group of column) start[group + 1] += 1;
    for (let g = 0; g < groups; g += 1) start[g + 1] += start[g];
    const next = start.slice();
    this.rows = new Int32Array(column.length);
    column.forEach((group, row) => {
      this.rows[next[group]] = rows[row];
      next[group] += 1;
    });
    this.start = start;
  }

  of(group) {
    return this.rows.subarray(this.start[group], this.start[group + 1]);
  }
}

/** The first place in a sorted array of rows whose `key` is not below `wanted`. */
function firstAt(rows, wanted, key) {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(rows[middle]) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A script: units, steps and truth. */
class Story {
  constructor(about, index) {
    Object.assign(this, { about, units: index.units, kinds: index.kinds, times: index.at });
    this.lines = new Shelf(about.lines);
    this.values = index.values;
    this.opNames = index.ops;
    this.unit = Int32Array.from(index.unit);
    this.memory = this.units.length; // the lane of what belongs to no unit
    this._place();
    const [line, unit, value, cause] = index.changes.map((column) => Int32Array.from(column));
    this.change = { line, unit, value, cause };
    this.changes = new Grouped(this.memory + 1, unit);
    const [saidLine, saidUnit, op] = index.said.map((column) => Int32Array.from(column));
    this.said = { line: saidLine, unit: saidUnit, op };
    this.ops = new Grouped(this.memory + 1, saidUnit);
    this._tint();
  }

  /** Where each step stands on the axis of turns: turn n and what follows it fill n to n + 1. */
  _place() {
    const n = this.kinds.length;
    this.turn = new Int32Array(n);
    this.turnLine = [-1];
    for (let i = 0; i < n; i += 1) {
      if (this.kinds[i] === "t") this.turnLine.push(i);
      this.turn[i] = this.turnLine.length - 1;
    }
    this.turns = this.turnLine.length - 1;
    this.at = new Float64Array(n);
    for (let t = 0; t <= this.turns; t += 1) {
      const begin = Math.max(0, this.turnLine[t]);
      const end = t < this.turns ? this.turnLine[t + 1] : n;
      for (let i = begin; i < end; i += 1) this.at[i] = t + (i - begin) / (end - begin);
    }
  }

  /** A tint for each value of a unit, so that one that returns is seen to. */
  _tint() {
    this.tint = new Uint8Array(this.change.line.length);
    for (let u = 0; u < this.memory; u += 1) {
      const seen = new Map();
      for (const row of this.changes.of(u)) {
        const value = this.change.value[row];
        if (value >= 0 && !seen.has(value)) seen.set(value, seen.size);
        this.tint[row] = (seen.get(value) ?? 0) % 4;
      }
    }
  }

  name(unit) {
    return unit === this.memory ? "the memory as a whole" : this.units[unit].name;
  }

  topic(unit) {
    return unit === this.memory ? "" : this.units[unit].id.split("/").slice(1, -1).join("/");
  }
}

/** What one system made of a script. */
class Run {
  constructor(about, story, index) {
    Object.assign(this, { about, story, verdicts: index.verdicts });
    this.by = Int32Array.from(index.by);
    const [line, unit, name, began] = index.marks.map((column) => Int32Array.from(column));
    for (let m = 0; m < unit.length; m += 1) if (unit[m] < 0) unit[m] = story.memory;
    this.mark = { line, unit, name, began };
    this.order = Int32Array.from(line.keys()).sort((a, b) => line[a] - line[b] || a - b);
    this.rank = new Int32Array(line.length);
    this.order.forEach((m, place) => { this.rank[m] = place; });
    this.marks = new Grouped(story.memory + 1, this.order.map((m) => unit[m]), this.order);
    this._asked();
    this.shown = new Shelf(about.shown);
    this.items = new Shelf(about.items);
    this.texts = new Shelf(about.marks);
  }

  /** Questions and audits by unit, in order. */
  _asked() {
    const { kinds, unit, memory } = this.story;
    const lines = [];
    for (let i = 0; i < kinds.length; i += 1) {
      if ((kinds[i] === "p" || kinds[i] === "a") && unit[i] >= 0) lines.push(i);
    }
    this.asked = new Grouped(memory + 1, lines.map((i) => unit[i]), lines);
  }

  /** Violations at a step; of one unit, where it is given. */
  at(line, unit = -1) {
    const begin = firstAt(this.order, line, (m) => this.mark.line[m]);
    const found = [];
    for (let place = begin; place < this.order.length; place += 1) {
      const m = this.order[place];
      if (this.mark.line[m] !== line) break;
      if (unit < 0 || this.mark.unit[m] === unit) found.push(m);
    }
    return found;
  }

  witnesses() {
    this._witnesses ??= unpack(this.about.witnesses);
    return this._witnesses;
  }
}

const opened = { stories: new Map(), runs: new Map() };

function openStory(n) {
  const about = TOLD.stories[n];
  if (!opened.stories.has(n)) {
    opened.stories.set(n, unpack(about.index).then((index) => new Story(about, index)));
  }
  return opened.stories.get(n);
}

/** The run number `n` of the directory, ready to be drawn. */
function openRun(n) {
  const about = TOLD.runs[n];
  if (!opened.runs.has(n)) {
    const both = Promise.all([openStory(about.story), unpack(about.index)]);
    opened.runs.set(n, both.then(([story, index]) => new Run(about, story, index)));
  }
  return opened.runs.get(n);
}
