// Scales, and a frame with axes, grid and labels that every chart with two axes stands in.

function linear([low, high], [start, end]) {
  const scale = (value) => start + ((value - low) / (high - low || 1)) * (end - start);
  scale.domain = [low, high];
  scale.range = [start, end];
  scale.ticks = (count) => {
    const rough = (high - low) / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough * 0.7);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); i += 1) {
      ticks.push(i * step);
    }
    return ticks;
  };
  return scale;
}

function logarithmic([low, high], [start, end]) {
  const inner = linear([Math.log10(low), Math.log10(high)], [start, end]);
  const scale = (value) => inner(Math.log10(Math.max(value, low)));
  scale.domain = [low, high];
  scale.range = [start, end];
  scale.ticks = (count) => {
    const decades = Math.log10(high / low);
    const factors = decades * 3 <= count ? [1, 2, 5] : [1];
    const skip = Math.max(1, Math.ceil(decades / Math.max(1, count)));
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      if (factors.length === 1 && power % skip !== 0) continue;
      for (const factor of factors) {
        const tick = Number(`${factor}e${power}`);
        if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
      }
    }
    return ticks;
  };
  return scale;
}

// {width, height, title, x: {make, domain, label, format}, y: {...}} -> {root, x, y}
function frame({ width, height, title, x, y }) {
  const margin = { left: 52, right: 26, top: 10, bottom: 42 };
  const across = x.make(x.domain, [margin.left, width - margin.right]);
  const up = y.make(y.domain, [height - margin.bottom, margin.top]);
  const bottom = height - margin.bottom;
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": title,
  });
  for (const tick of across.ticks(Math.floor(width / 90))) {
    const at = across(tick);
    root.append(
      svg("line", { class: "grid", x1: at, x2: at, y1: margin.top, y2: bottom }),
      svg("text", { class: "small", x: at, y: bottom + 16, "text-anchor": "middle" }, x.format(tick)),
    );
  }
  for (const tick of up.ticks(Math.floor(height / 55))) {
    const at = up(tick);
    root.append(
      svg("line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: at, y2: at }),
      svg("text", { class: "small", x: margin.left - 6, y: at + 4, "text-anchor": "end" }, y.format(tick)),
    );
  }
  root.append(
    svg("line", { class: "axis", x1: margin.left, x2: width - margin.right, y1: bottom, y2: bottom }),
    svg("line", { class: "axis", x1: margin.left, x2: margin.left, y1: margin.top, y2: bottom }),
    svg("text", { x: (margin.left + width - margin.right) / 2, y: height - 6, "text-anchor": "middle" }, x.label),
    svg("text", {
      transform: `translate(12 ${(margin.top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle",
    }, y.label),
  );
  return { root, x: across, y: up };
}

// [{key, text, draw: (svg) => mark}] -> a list with a small picture before each text
function legend(entries) {
  const items = entries.map(({ text, swatch }) =>
    html("li", {}, svg("svg", { width: 22, height: 12, "aria-hidden": "true" }, swatch), text));
  return html("ul", { class: "legend" }, ...items);
}
const boxSwatch = (colour) => svg("rect", { x: 4, y: 0, width: 12, height: 12, rx: 2, style: `fill: ${colour}` });
const lineSwatch = (source) => svg("path", { class: `curve ${source}`, d: "M0 6H22" });
