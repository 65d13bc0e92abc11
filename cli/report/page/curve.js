// The curve: reserved, live and limit over time, drawn by Dygraphs from as many points as there are pixels, and under it
// the marks of what happened. The view (from, to) is shared with the map.
"use strict";

const kMarks = {
  growth_steps: {name: "growth", colour: "--growth", sign: "▲"},
  migrations: {name: "migration", colour: "--migration", sign: "◆"},
  fences: {name: "fence", colour: "--fence", sign: "|"},
  oom: {name: "out of memory", colour: "--oom", sign: "✕"},
};

function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

class Curve {
  constructor(figure, timeline, view) {
    this.figure = figure;
    this.timeline = timeline;
    this.view = view;
    this.plot = figure.querySelector(".plot");
    this.legend = figure.querySelector(".legend");
    const most = Math.max(...[timeline.reserved, timeline.live].map((values) => values.reduce((a, b) => Math.max(a, b), 0)));
    // A limit far above everything would press the rest flat; it is told in the legend then.
    this.showsLimit = timeline.limit > 0 && timeline.limit <= 2 * most;
    this.top = 1.05 * Math.max(most, this.showsLimit ? timeline.limit : 0) || 1;
    this.describeMarks();
    view.listen(() => this.draw());
  }

  describeMarks() {
    const counts = {};
    for (const [, kind, count] of this.timeline.marks) counts[kind] = (counts[kind] || 0) + count;
    this.figure.querySelector(".keys").replaceChildren(...Object.entries(kMarks).flatMap(([kind, mark]) => {
      const sign = document.createElement("b");
      sign.textContent = `${mark.sign} `;
      sign.style.color = `var(${mark.colour})`;
      return [sign, `${mark.name}: ${(counts[kind] || 0).toLocaleString("en")}   `];
    }));
  }

  rows() {
    const {time, reserved, live, limit} = this.timeline;
    const columns = Math.max(200, this.plot.clientWidth);
    const kept = decimate(time, [reserved, live], this.view.from, this.view.to, columns);
    return kept.map((i) => (this.showsLimit ? [time[i], reserved[i], live[i], limit] : [time[i], reserved[i], live[i]]));
  }

  options() {
    const unit = this.timeline.unit;
    return {
      file: this.rows(),
      labels: this.showsLimit ? ["time", "reserved", "live", "limit"] : ["time", "reserved", "live"],
      colors: ["--reserved", "--live", "--limit"].slice(0, this.showsLimit ? 3 : 2).map(colourOf),
      dateWindow: [this.view.from, this.view.to],
      valueRange: [0, this.top],
      axisLineColor: colourOf("--line"),
      gridLineColor: colourOf("--grid"),
      axes: {
        x: {axisLabelFormatter: (value) => timeText(value, unit), valueFormatter: (value) => timeText(value, unit), pixelsPerLabel: 110},
        y: {axisLabelFormatter: bytesText, valueFormatter: bytesText, axisLabelWidth: 75, pixelsPerLabel: 40, labelsKMG2: true},
      },
    };
  }

  draw() {
    if (typeof Dygraph === "undefined") {
      this.plot.textContent = "The library that draws this curve was not there when gpupool was built.";
      return;
    }
    if (this.graph) {
      this.graph.updateOptions(this.options());
      return;
    }
    const options = this.options();
    const file = options.file;
    delete options.file;
    this.graph = new Dygraph(this.plot, file, {
      ...options,
      stepPlot: true,
      strokeWidth: 1.5,
      fillGraph: true,
      fillAlpha: 0.12,
      series: {limit: {strokePattern: [6, 4], fillGraph: false}},
      labelsDiv: this.legend,
      legend: "always",
      legendFormatter: (data) => this.legendText(data),
      ticker: Dygraph.numericTicks,
      xRangePad: 0,
      zoomCallback: (from, to) => this.view.set(from, to),
      underlayCallback: (context, area, graph) => this.drawMarks(context, area, graph),
    });
  }

  // Built as text for innerHTML by Dygraphs: numbers and fixed words only.
  legendText(data) {
    const {limit, unit} = this.timeline;
    const parts = data.series.map((one) => `<b style="color:${one.color}">${one.label}</b> ${data.x === undefined ? "" : one.yHTML}`);
    if (!this.showsLimit && limit > 0) parts.push(`<b>limit</b> ${bytesText(limit)}, above this picture`);
    if (data.x !== undefined) parts.unshift(unit === "us" ? timeText(data.x, unit) : `event ${timeText(data.x, unit)}`);
    return parts.join(" &ensp; ");
  }

  drawMarks(context, area, graph) {
    const last = {};
    for (const [time, kind] of this.timeline.marks) {
      const x = Math.round(graph.toDomXCoord(time));
      if (x < area.x || x > area.x + area.w || last[kind] === x) continue;
      last[kind] = x;
      const mark = kMarks[kind];
      context.strokeStyle = context.fillStyle = colourOf(mark.colour);
      if (kind === "fences") {
        context.fillRect(x, area.y + area.h - 6, 1, 6);
        continue;
      }
      context.globalAlpha = 0.35;
      context.fillRect(x, area.y, 1, area.h);
      context.globalAlpha = 1;
      context.textAlign = "center";
      context.font = "10px system-ui, sans-serif";
      context.fillText(mark.sign, x, area.y + 10);
    }
  }

  // Where time begins, from the left of the figure: the map begins there, too.
  left() {
    return this.graph ? this.graph.getArea().x : 0;
  }

  resize() {
    if (this.graph) this.graph.resize();
  }

  destroy() {
    if (this.graph) this.graph.destroy();
    this.plot.textContent = this.legend.textContent = "";
  }
}
