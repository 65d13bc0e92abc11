// Numbers: unpacking, decimation, and how they are written. Nothing here touches the page.
"use strict";

// {scale, u32}: base64 of little-endian 32-bit numbers, each times the scale.
function unpack(packed) {
  const text = atob(packed.u32);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return Float64Array.from(new Uint32Array(bytes.buffer), (value) => value * packed.scale);
}

// The index of the first value above `wanted`, in a sorted array.
function firstAbove(values, wanted) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Which points of sorted `time` show all that [from, to] has on `columns` columns of pixels: of each column the first, the
// last, and the least and greatest of every series. The ends of the whole are always among them.
function decimate(time, series, from, to, columns) {
  const count = time.length;
  const begin = Math.max(0, firstAbove(time, from) - 2);
  const end = Math.min(count, firstAbove(time, to) + 1);
  const kept = new Set([0, count - 1]);
  if (end - begin <= 4 * columns) {
    for (let i = begin; i < end; ++i) kept.add(i);
  } else {
    const width = (to - from) / columns;
    for (let i = begin; i < end;) {
      const edge = time[i] + width;
      const first = i;
      for (; i < end && (time[i] < edge || i === first); ++i) {}
      kept.add(first).add(i - 1);
      for (const values of series) {
        let least = first;
        let most = first;
        for (let k = first; k < i; ++k) {
          if (values[k] < values[least]) least = k;
          if (values[k] > values[most]) most = k;
        }
        kept.add(least).add(most);
      }
    }
  }
  return [...kept].sort((a, b) => a - b);
}

function bytesText(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  let value = bytes;
  while (Math.abs(value) >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    ++unit;
  }
  return `${unit === 0 ? value : +value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}

function timeText(value, unit) {
  if (unit !== "us") return `${Math.round(value).toLocaleString("en")}`;
  const seconds = value / 1e6;
  if (seconds >= 120) return `${Math.floor(seconds / 60)} min ${(seconds % 60).toFixed(seconds >= 3600 ? 0 : 1)} s`;
  if (seconds >= 1) return `${+seconds.toFixed(3)} s`;
  return seconds >= 1e-3 ? `${+(seconds * 1e3).toFixed(3)} ms` : `${+value.toFixed(1)} us`;
}

function shareText(share) {
  return `${(share * 100).toFixed(1)}%`;
}
