// The charts: marks against a diagonal, curves over time, stacked bars.

const MOST_LABELS = 4; // deadlines that are written out; the others have only their line
const whole = (share) => `${Math.round(100 * share)} %`;

function mark(source, x, y, size) {
  if (source === "simulated") {
    return svg("path", { class: "mark simulated", d: `M${x} ${y - size * 1.25}L${x + size * 1.25} ${y}L${x} ${y + size * 1.25}L${x - size * 1.25} ${y}Z` });
  }
  return svg("circle", { class: `mark ${source}`, cx: x, cy: y, r: size });
}

// points: [{x, y, xError, yError, label, index}], shares of 0 to 1
function scatter(width, { points, source, xLabel, yLabel, title, pick, chosen }) {
  const height = Math.min(width, 420);
  const lowest = Math.min(...points.map((point) => Math.min(point.x, point.y)), 0.9);
  const domain = [Math.max(0, Math.floor((lowest - 0.02) * 20) / 20), 1];
  const axis = { make: linear, domain, format: whole };
  const { root, x, y } = frame({
    width, height, title, x: { ...axis, label: xLabel }, y: { ...axis, label: yLabel },
  });
  root.append(svg("line", {
    class: "diagonal", x1: x(domain[0]), y1: y(domain[0]), x2: x(1), y2: y(1),
  }));
  const inside = (value) => Math.min(1, Math.max(domain[0], value));
  if (points.length <= 500) {
    for (const point of points) {
      const path = [];
      if (point.xError) path.push(`M${x(inside(point.x - 2 * point.xError))} ${y(point.y)}H${x(inside(point.x + 2 * point.xError))}`);
      if (point.yError) path.push(`M${x(point.x)} ${y(inside(point.y - 2 * point.yError))}V${y(inside(point.y + 2 * point.yError))}`);
      if (path.length) root.append(svg("path", { class: `bar ${source}`, d: path.join("") }));
    }
  }
  const size = points.length > 400 ? 3 : 4.5;
  for (const point of points) {
    const dot = mark(source, x(point.x), y(point.y), size);
    dot.dataset.index = point.index;
    if (point.index === chosen) dot.classList.add("chosen");
    root.append(pickable(withTip(dot, point.label), point.label, () => pick(point.index)));
  }
  return [root];
}

// curves: [{source, times, shares, onTime}], deadlines: [[seconds, share, random]]
function delayCurves(width, { curves, deadlines, title }) {
  const height = Math.min(400, Math.max(300, width * 0.55));
  const limits = deadlines.map(([limit]) => limit).filter((limit) => limit > 0 && limit < ENDLESS);
  const middle = curves.flatMap(({ times, shares }) => {
    const last = shares[shares.length - 1];
    const from = times.filter((time, i) => time > 0 && shares[i] >= 0.005 * last);
    return from.length ? [from[0], times[times.length - 1]] : [];
  });
  const low = Math.min(...middle, ...limits) / 1.5;
  const high = Math.max(...middle, ...limits) * 1.3;
  const { root, x, y } = frame({
    width, height, title,
    x: { make: logarithmic, domain: [low, high], format: seconds, label: "delay (logarithmic)" },
    y: { make: linear, domain: [0, 1], format: whole, label: "arrived" },
  });
  const right = x.range[1];
  const labels = []; // drawn last, so that no line or curve crosses them
  deadlines.forEach(([limit, share, random], i) => {
    if (!limits.includes(limit)) return;
    const words = `lifetime ${seconds(limit)}${random ? " on average" : ""}`;
    const part = deadlines.length > 1 ? ` for ${whole(share)}` : "";
    const beyond = x(limit) > (x.range[0] + right) / 2;
    const line = svg("line", { class: "deadline", x1: x(limit), x2: x(limit), y1: y.range[1], y2: y.range[0] });
    root.append(withTip(line, words + part));
    if (i >= MOST_LABELS) return;
    labels.push(svg("text", {
      class: "small bad halo", x: x(limit) + (beyond ? -5 : 5), y: y.range[1] + 12 + 14 * i,
      "text-anchor": beyond ? "end" : "start",
    }, words + part));
  });
  for (const { source, times, shares } of curves) {
    const path = times.map((time, i) => `${x(time).toFixed(1)} ${y(shares[i]).toFixed(1)}`);
    const last = y(shares[shares.length - 1]).toFixed(1);
    root.append(svg("path", { class: `curve ${source}`, d: `M${path.join("L")}H${right}L${right} ${last}` }));
  }
  root.append(...labels);
  // With one deadline the on-time share is where the curve crosses it.
  if (limits.length === 1 && deadlines.length === 1 && !deadlines[0][2]) {
    for (const { source, onTime } of curves.filter((curve) => known(curve.onTime))) {
      const dot = mark(source, x(limits[0]), y(onTime), 5);
      root.append(withTip(dot, `${source}: ${percent(onTime)} on time`));
    }
    const main = curves[curves.length - 1];
    const late = x(limits[0]) > (x.range[0] + right) / 2; // no room to its right
    if (known(main.onTime)) {
      root.append(svg("text", {
        class: "strong halo", x: x(limits[0]) + (late ? -10 : 10), y: y(main.onTime) + 18, "text-anchor": late ? "end" : "start",
      }, `${percent(main.onTime)} on time`));
    }
  }
  return [root];
}

// rows: [{label, note, segments: [{value, colour, text}], pick, strong}]; all bars share one scale;
// labels: the part of the width that names may take
function stackedBars(width, { rows, most, format, title, labels: part = 0.34 }) {
  const height = 24;
  const longest = Math.max(...rows.map((row) => row.label.length), 4);
  const labels = Math.min(600 * part, width * part, 14 + 7 * longest);
  const tail = Math.max(26, ...rows.map((row) => 12 + 6.1 * (row.note || "").length));
  const scale = linear([0, most], [labels + 8, Math.max(labels + 48, width - tail)]);
  const bottom = rows.length * height + 6;
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${bottom + 20}`, width, height: bottom + 20, role: "group", "aria-label": title,
  });
  const room = scale.range[1] - scale.range[0];
  for (const tick of most > 0 ? scale.ticks(Math.max(2, Math.floor(room / 80))) : []) {
    root.append(
      svg("line", { class: "grid", x1: scale(tick), x2: scale(tick), y1: 0, y2: bottom }),
      svg("text", { class: "small", x: scale(tick), y: bottom + 14, "text-anchor": "middle" }, format(tick)),
    );
  }
  rows.forEach((row, i) => {
    const top = i * height + 4;
    const line = svg("g", {});
    line.append(svg("text", {
      class: row.strong ? "row-label strong" : "row-label", x: labels, y: top + 12, "text-anchor": "end",
    }, shortened(row.label, Math.floor(labels / 7.2))));
    let from = 0;
    for (const { value, colour, text } of row.segments) {
      if (!(value > 0)) continue;
      const to = Math.min(most, from + value);
      const bar = svg("rect", {
        class: "segment", x: scale(from), y: top, height: height - 8,
        width: Math.max(0.5, scale(to) - scale(from)), style: `fill: ${colour}`,
      });
      line.append(withTip(bar, `${row.label}\n${text}`));
      from = to;
    }
    if (row.note) {
      line.append(svg("text", { class: "small halo", x: scale(from) + 6, y: top + 12 }, row.note));
    }
    const words = row.segments.filter(({ value }) => value > 0).map(({ text }) => text).join(", ");
    if (row.pick) pickable(line, `${row.label}: ${words}`, row.pick);
    else fill(line, { role: "img", "aria-label": `${row.label}: ${words}` }, []);
    root.append(line);
  });
  return [root];
}
