// The page: fills tables from the data and ties curve, map and keyboard to one view of time.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

// What part of the time is seen.
class View {
  constructor(first, last) {
    this.first = first;
    this.last = Math.max(last, first + 1);
    this.listeners = [];
    this.from = this.first;
    this.to = this.last;
  }

  listen(act) {
    this.listeners.push(act);
  }

  set(from, to) {
    const least = Math.max((this.last - this.first) * 1e-7, 1e-3);
    this.from = Math.max(this.first, Math.min(from, this.last - least));
    this.to = Math.min(this.last, Math.max(to, this.from + least));
    for (const act of this.listeners) act();
  }

  zoom(factor, centre = 0.5) {
    const width = (this.to - this.from) * factor;
    const at = this.from + (this.to - this.from) * centre;
    this.set(at - width * centre, at + width * (1 - centre));
  }

  move(share) {
    const width = this.to - this.from;
    const from = Math.min(Math.max(this.first, this.from + share * width), this.last - width);
    this.set(from, from + width);
  }

  all() {
    this.set(this.first, this.last);
  }

  key(name) {
    if (name === "ArrowLeft") this.move(-0.2);
    else if (name === "ArrowRight") this.move(0.2);
    else if (name === "+" || name === "=") this.zoom(0.5);
    else if (name === "-") this.zoom(2);
    else if (name === "0" || name === "Home") this.all();
    else return false;
    return true;
  }
}

function cell(kind, content, className = "") {
  const element = document.createElement(kind);
  if (content instanceof Node) element.append(content);
  else element.textContent = content;
  element.className = className;
  return element;
}

function line(cells, className = "") {
  const element = document.createElement("tr");
  element.className = className;
  element.append(...cells);
  return element;
}

function fill(section, rows) {
  const element = document.getElementById(section);
  element.hidden = rows.length === 0;
  element.querySelector("table").replaceChildren(...rows);
}

function valueText(column, value) {
  if (column.unit === "bytes") return bytesText(value);
  if (column.unit === "share") return shareText(value);
  if (column.unit === "ns") return `${(value / 1e6).toFixed(1)} ms`;
  return value.toLocaleString("en");
}

function fillRanks() {
  if (data.pools.length < 2) return;
  // What did not happen needs no column.
  const columns = data.columns.filter((column) => data.summary[column.name] && data.summary[column.name].most !== 0);
  const rows = [line([cell("th", "rank/device"), ...columns.map((column) => cell("th", column.name, "number"))])];
  for (const pool of data.pools) {
    rows.push(line([
      cell("th", pool.name),
      ...columns.map((column) => {
        if (pool[column.name] == null) return cell("td", "-", "number");
        const worst = data.summary[column.name].worst === pool.index && data.summary[column.name].spread > 0;
        return cell("td", valueText(column, pool[column.name]), worst ? "number worst" : "number");
      }),
    ]));
  }
  for (const [name, title] of [["most", "worst"], ["spread", "spread"], ["sum", "sum"]]) {
    rows.push(line([
      cell("th", title),
      ...columns.map((column) => {
        const summary = data.summary[column.name];
        const means = summary && !(name === "sum" && column.unit === "share");
        return cell("td", means ? valueText(column, summary[name]) : "-", "number");
      }),
    ], "sum"));
  }
  fill("ranks", rows);
  fill("cards", [
    line(["host", "card", "uuid"].map((name) => cell("th", name))
             .concat(["processes", "reserved", "live"].map((name) => cell("th", name, "number")))),
    ...data.cards.map((card) => line([
      cell("td", card.host), cell("td", card.card), cell("td", card.uuid), cell("td", card.processes, "number"),
      cell("td", bytesText(card["reserved.peak"]), "number"), cell("td", bytesText(card["live.peak"]), "number"),
    ])),
  ]);
}

function fillWasteAndAdvice() {
  const several = data.pools.length > 1;
  fill("waste", data.waste.length === 0 ? [] : [
    line([cell("th", "bytes", "number"), ...(several ? [cell("th", "rank/device")] : []), cell("th", "what"), cell("th", "to mend")]),
    ...data.waste.slice(0, 10).map((one) => line([
      cell("td", bytesText(one.bytes), "number"), ...(several ? [cell("td", one.rank)] : []), cell("td", one.kind), cell("td", one.mend),
    ])),
  ]);
  fill("advice", data.pools.filter((pool) => pool.advice).map((pool) => line([cell("th", pool.name), cell("td", pool.advice)])));
}

function fillFacts(process) {
  const rows = [];
  for (const pool of data.pools.filter((one) => one.process === process)) {
    if (pool.card === undefined) {
      rows.push(line([cell("td", "passed_live.peak"), cell("td", bytesText(pool["passed_live.peak"]), "number"),
                      cell("td", "what the driver served, at its peak", "small")]));
      continue;
    }
    const head = cell("th", `device ${pool.device}: ${pool.card}`);
    head.colSpan = 3;
    rows.push(line([head]));
    const missing = [];
    for (const row of data.statistics) {
      const value = pool[row.name];
      if (value === null) missing.push(row.name);
      if (!value) continue;
      rows.push(line([cell("td", row.name), cell("td", valueText(row, value), "number"), cell("td", row.sentence, "small")]));
    }
    if (missing.length > 0) {
      const last = cell("td", `not recorded: ${missing.join(", ")}`, "small");
      last.colSpan = 3;
      rows.push(line([last]));
    }
  }
  for (const past of data.processes[process].past) {
    rows.push(line([cell("td", past.api), cell("td", bytesText(past.bytes), "number"),
                    cell("td", `${past.calls.toLocaleString("en")} calls past the pool`, "small")]));
  }
  fill("facts", rows);
}

function fillSizes(process) {
  const sizes = data.processes[process].sizes;
  const most = sizes.reduce((a, [, count]) => Math.max(a, count), 0);
  fill("sizes", sizes.length === 0 ? [] : [
    line([cell("th", "from", "number"), cell("th", "requests", "number"), cell("th", "")]),
    ...sizes.map(([bytes, count]) => {
      const bar = document.createElement("span");
      bar.style.width = `${(100 * count) / most}%`;
      return line([cell("td", bytesText(bytes), "number"), cell("td", count.toLocaleString("en"), "number"), cell("td", bar, "bar")]);
    }),
  ]);
}

function unpacked(timeline) {
  const values = {...timeline};
  for (const name of ["time", "reserved", "live"]) values[name] = unpack(timeline[name]);
  if (timeline.blocks) {
    values.blocks = {};
    for (const name of ["begin", "end", "address", "bytes"]) values.blocks[name] = unpack(timeline.blocks[name]);
    values.blocks.largest = values.blocks.bytes.reduce((a, b) => Math.max(a, b), 512);
  }
  return values;
}

let drawn = [];

function show(process) {
  for (const one of drawn) one.destroy();
  drawn = [];
  document.getElementById("process-name").textContent = data.processes[process].name;
  fillSizes(process);
  fillFacts(process);
  const curve = document.getElementById("curve");
  const map = document.getElementById("map");
  curve.hidden = data.processes[process].timeline.points === 0;
  document.getElementById("help").hidden = curve.hidden;
  map.hidden = !data.processes[process].timeline.blocks;
  if (curve.hidden) return;
  const timeline = unpacked(data.processes[process].timeline);
  curve.querySelector("figcaption").textContent = timeline.unit === "us" ? "Memory over time" : "Memory over the events of the trace";
  const view = new View(timeline.time[0], timeline.time[timeline.time.length - 1]);
  drawn.push(new Curve(curve, timeline, view));
  if (!map.hidden) drawn.push(new AddressMap(map, timeline, view, () => drawn[0].left()));
  curve.querySelector(".plot").onkeydown = (event) => {
    if (view.key(event.key)) event.preventDefault();
  };
  map.querySelector("canvas").onkeydown = (event) => {
    const moved = drawn[1].key(event.key);
    if (view.key(event.key)) event.preventDefault();
    else if (moved) event.preventDefault(), view.set(view.from, view.to);
  };
  view.all();
  window.gpupoolView = view;
}

function redraw() {
  for (const one of drawn) one.draw();
}

document.getElementById("summary").textContent = data.title;
fillRanks();
fillWasteAndAdvice();
const select = document.querySelector("#choose select");
select.append(...data.processes.map((process, i) => new Option(process.name, i)));
select.onchange = () => show(Number(select.value));
document.getElementById("choose").hidden = data.processes.length < 2;
show(0);

window.addEventListener("resize", () => drawn.forEach((one) => one.resize()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
// Paper is light, and has a width of its own.
function printing(on) {
  document.documentElement.toggleAttribute("data-printing", on);
  for (const one of drawn) one.resize();
  redraw();
  // Chromium prints what it has painted of a canvas, which after a change of size is nothing until somebody looks at it.
  const scratch = document.createElement("canvas").getContext("2d");
  for (const canvas of document.querySelectorAll("canvas")) scratch.drawImage(canvas, 0, 0, 1, 1);
}
window.addEventListener("beforeprint", () => printing(true));
window.addEventListener("afterprint", () => printing(false));
