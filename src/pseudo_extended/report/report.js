"use strict";
// Light, dark, or as the system is.
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  draw();
});

// Tables sort by a click on a column, or by Enter on it.
for (const table of document.querySelectorAll("table.sorts")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.tabIndex = 0;
    const sort = () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const key = (row) => {
        const cell = row.cells[column];
        const value = Number(cell.dataset.value ?? NaN);
        return cell.dataset.value === undefined ? cell.textContent : value;
      };
      const order = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (typeof x === "string") return x.localeCompare(y, undefined, { numeric: true });
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return x - y;
      };
      const body = table.tBodies[0];
      const rows = [...body.rows].sort(order);
      if (descending) rows.reverse();
      body.append(...rows);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  });
}

// The summary shows the rows whose name has the text.
const filter = document.getElementById("filter");
if (filter) filter.addEventListener("input", () => {
  const wanted = filter.value.toLowerCase();
  let count = 0;
  for (const row of document.querySelectorAll("#summary-table tbody tr")) {
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    count += !row.hidden;
  }
  document.getElementById("filtered").textContent = `${count} shown`;
});

// Two coordinates of the draws, chosen by the reader; the nearest draw is told in full.
const stored = document.getElementById("points");
const canvas = document.getElementById("explorer");
const data = stored ? JSON.parse(stored.textContent) : null;
const chosen = { x: document.getElementById("across"), y: document.getElementById("up") };
let nearest = -1;

function scale(values, low, high) {
  let least = Infinity, most = -Infinity;
  for (const value of values) { if (value < least) least = value; if (value > most) most = value; }
  const room = 0.04 * (most - least) || 1;
  least -= room; most += room;
  return { to: (value) => low + (value - least) / (most - least) * (high - low), least, most };
}

function ticks(from, to) {
  const step = 10 ** Math.floor(Math.log10((to - from) / 3));
  const size = [5, 2, 1].map((m) => m * step).find((s) => (to - from) / s >= 3) ?? step;
  const found = [];
  for (let tick = Math.ceil(from / size) * size; tick <= to; tick += size) found.push(Number(tick.toPrecision(6)));
  return found;
}

function draw() {
  if (!data) return;
  const ratio = devicePixelRatio || 1, box = canvas.getBoundingClientRect();
  canvas.width = box.width * ratio; canvas.height = box.height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const style = getComputedStyle(document.documentElement);
  const [ink, line] = ["--soft", "--line"].map((name) => style.getPropertyValue(name));
  const [xs, ys] = [data.values[chosen.x.value], data.values[chosen.y.value]];
  const x = scale(xs, 52, box.width - 10), y = scale(ys, box.height - 30, 10);
  pen.font = "12px system-ui, sans-serif"; pen.fillStyle = ink; pen.strokeStyle = line;
  pen.textAlign = "center";
  for (const tick of ticks(x.least, x.most)) {
    pen.beginPath(); pen.moveTo(x.to(tick), 10); pen.lineTo(x.to(tick), box.height - 30); pen.stroke();
    pen.fillText(tick, x.to(tick), box.height - 12);
  }
  pen.textAlign = "right";
  for (const tick of ticks(y.least, y.most)) {
    pen.beginPath(); pen.moveTo(52, y.to(tick)); pen.lineTo(box.width - 10, y.to(tick)); pen.stroke();
    pen.fillText(tick, 46, y.to(tick) + 4);
  }
  for (let i = 0; i < xs.length; i++) {
    pen.globalAlpha = i === nearest ? 1 : 0.6;
    pen.fillStyle = data.colours[data.modes[i]] ?? "#8b949e";
    pen.beginPath(); pen.arc(x.to(xs[i]), y.to(ys[i]), i === nearest ? 6 : 2.2, 0, 7); pen.fill();
  }
  pen.globalAlpha = 1;
  draw.places = xs.map((value, i) => [x.to(value), y.to(ys[i])]);
}

if (data) {
  data.names.forEach((name, i) => {
    chosen.x.add(new Option(name, i, i === 0, i === 0));
    const second = i === Math.min(1, data.names.length - 1);
    chosen.y.add(new Option(name, i, second, second));
  });
  for (const select of Object.values(chosen)) select.addEventListener("change", draw);
  const told = document.getElementById("told");
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const [left, top] = [event.clientX - box.left, event.clientY - box.top];
    let best = 400;
    nearest = -1;
    draw.places.forEach(([a, b], i) => {
      const away = (a - left) ** 2 + (b - top) ** 2;
      if (away < best) { best = away; nearest = i; }
    });
    if (nearest >= 0) {
      const mode = data.modes[nearest] >= 0 && data.colours.length > 1 ? `mode ${data.modes[nearest]}, ` : "";
      const values = data.names.slice(0, 12).map((name, k) => `${name} = ${data.values[k][nearest]}`).join(", ");
      told.textContent = `chain ${data.chain[nearest]}, draw ${data.draw[nearest]}, ${mode}${values}`;
    } else told.textContent = "Point at a draw to see its values.";
    draw();
  });
  addEventListener("resize", draw);
  draw();
}
document.documentElement.dataset.ready = "yes";
