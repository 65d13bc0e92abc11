// The map: every block a rectangle, time to the right, addresses upwards, darker the larger it is. Live blocks never share
// an address, so filling pixels costs no more than the picture has, however many blocks there are.
"use strict";

const kShades = 32;

function mixed(from, to, share) {
  const part = (text, i) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
  return [0, 1, 2].map((i) => Math.round(part(from, i) * (1 - share) + part(to, i) * share));
}

class AddressMap {
  constructor(figure, timeline, view, left) {
    this.canvas = figure.querySelector("canvas");
    this.left = left;
    this.legend = figure.querySelector(".legend");
    this.places = figure.querySelectorAll(".places span");
    this.blocks = timeline.blocks;
    this.unit = timeline.unit;
    this.view = view;
    this.top = 0;
    for (let i = 0; i < this.blocks.address.length; ++i)
      this.top = Math.max(this.top, this.blocks.address[i] + this.blocks.bytes[i]);
    this.low = 0;
    this.high = this.top;
    const keys = figure.querySelector(".keys");
    keys.textContent = `${this.blocks.address.length.toLocaleString("en")} blocks over ${bytesText(this.top)} of addresses; ` +
        "colour: from 512 bytes to the largest block. " + timeline.note;
    this.listeners = new AbortController();
    const on = (name, act) => this.canvas.addEventListener(name, act, {signal: this.listeners.signal});
    on("wheel", (event) => this.wheel(event));
    on("mousemove", (event) => this.tell(event));
    on("dblclick", () => this.all());
    view.listen(() => this.draw());
  }

  all() {
    this.low = 0;
    this.high = this.top;
    this.view.all();
  }

  // Zooms addresses around `centre`, a share of what is seen.
  zoom(factor, centre = 0.5) {
    const height = (this.high - this.low) * factor;
    const at = this.low + (this.high - this.low) * centre;
    this.low = Math.max(0, at - height * centre);
    this.high = Math.min(this.top, this.low + Math.max(height, 512));
  }

  move(share) {
    const height = this.high - this.low;
    this.low = Math.min(Math.max(0, this.low + share * height), Math.max(0, this.top - height));
    this.high = this.low + height;
  }

  key(name) {
    if (name === "ArrowUp") this.move(0.2);
    else if (name === "ArrowDown") this.move(-0.2);
    else if (name === "+" || name === "=") this.zoom(0.5);
    else if (name === "-") this.zoom(2);
    else if (name === "0" || name === "Home") this.low = 0, this.high = this.top;
    else return false;
    return true;
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height];
  }

  wheel(event) {
    event.preventDefault();
    const [x, y] = this.place(event);
    const factor = event.deltaY > 0 ? 1.25 : 0.8;
    this.zoom(factor, y);
    this.view.zoom(factor, x);
  }

  tell(event) {
    const [x, y] = this.place(event);
    const time = this.view.from + x * (this.view.to - this.view.from);
    const address = this.low + y * (this.high - this.low);
    const {begin, end, address: low, bytes} = this.blocks;
    for (let i = 0; i < begin.length; ++i) {
      if (begin[i] <= time && time < end[i] && low[i] <= address && address < low[i] + bytes[i]) {
        this.legend.textContent = `${bytesText(bytes[i])} at +${bytesText(low[i])}, from ${timeText(begin[i], this.unit)} to ` +
            timeText(end[i], this.unit);
        return;
      }
    }
    this.legend.textContent = `+${bytesText(Math.round(address))} at ${timeText(time, this.unit)}: free`;
  }

  palette() {
    const small = colourOf("--small-block");
    const large = colourOf("--large-block");
    return Uint32Array.from({length: kShades}, (_, shade) => {
      const [red, green, blue] = mixed(small, large, shade / (kShades - 1));
      return (255 << 24) | (blue << 16) | (green << 8) | red;
    });
  }

  draw() {
    this.canvas.style.marginLeft = `${this.left()}px`;
    this.canvas.style.width = `calc(100% - ${this.left()}px)`;
    this.legend.textContent = `addresses +${bytesText(Math.round(this.low))} to +${bytesText(Math.round(this.high))}`;
    this.places.forEach((place, i) => {
      const share = i / (this.places.length - 1);
      place.style.top = `${share * this.canvas.clientHeight}px`;
      place.textContent = `+${bytesText(Math.round(this.high - share * (this.high - this.low)))}`;
    });
    const scale = window.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(this.canvas.clientWidth * scale));
    const height = Math.max(1, Math.round(this.canvas.clientHeight * scale));
    this.canvas.width = width;
    this.canvas.height = height;
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const palette = this.palette();
    const {begin, end, address, bytes, largest} = this.blocks;
    const perColumn = width / (this.view.to - this.view.from);
    const perRow = height / (this.high - this.low);
    const perShade = (kShades - 1) / Math.max(1, Math.log2(largest / 512));
    for (let i = 0; i < begin.length; ++i) {
      if (end[i] < this.view.from || begin[i] > this.view.to || address[i] > this.high || address[i] + bytes[i] < this.low) continue;
      const left = Math.max(0, Math.floor((begin[i] - this.view.from) * perColumn));
      const right = Math.min(width, Math.max(left + 1, Math.floor((end[i] - this.view.from) * perColumn)));
      const bottom = Math.min(height, height - Math.max(0, Math.floor((address[i] - this.low) * perRow)));
      // A line stays free between neighbours where there is room for it.
      let rows = Math.floor((address[i] + bytes[i] - this.low) * perRow) - (height - bottom);
      if (rows > 4) --rows;
      const upper = Math.max(0, Math.min(bottom - 1, bottom - rows));
      const shade = palette[Math.max(0, Math.min(kShades - 1, Math.round(Math.log2(Math.max(512, bytes[i]) / 512) * perShade)))];
      for (let y = upper; y < bottom; ++y) pixels.fill(shade, y * width + left, y * width + right);
    }
    context.putImageData(image, 0, 0);
  }

  resize() {
    this.draw();
  }

  destroy() {
    this.listeners.abort();
    this.legend.textContent = "";
  }
}
