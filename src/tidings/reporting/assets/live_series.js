// Shares on time as they were: promised, measured and predicted, with their intervals.

const LINES = ["promised", "measured", "low", "high", "predicted", "predicted_low", "predicted_high"];
const MOST_POINTS = 2000;
let past = { name: "", columns: start.past };

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const seriesData = () => [past.columns.at_s || [], ...LINES.map((line) => past.columns[line] || [])];

// The latest state is one more point of the series.
function extendPast() {
  const row = view.known && rowOf(past.name);
  const times = past.columns.at_s;
  if (!row || !times || (times.length && times.at(-1) >= view.at_s - 1e-6)) return;
  const [measured, predicted] = [row.measured || [null, null, null], row.predicted || [null, null, null]];
  [view.at_s, row.promised, ...measured, ...predicted].forEach((value, i) => {
    const column = past.columns[["at_s", ...LINES][i]];
    column.push(value);
    if (column.length > MOST_POINTS) column.shift();
  });
}

function shareRange(plot, low, high) {
  if (!known(low)) return [0, 1];
  const room = Math.max(0.002, 0.1 * (high - low));
  return [Math.max(0, low - room), Math.min(1, high + room)];
}

function timeLabels(_, times, __, ___, step_s) {
  const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(step_s < 60 ? { second: "2-digit" } : {}) };
  const form = step_s < 86400 ? clock : { month: "short", day: "numeric" };
  return times.map((at_s) => new Date(1000 * at_s).toLocaleString(undefined, form));
}

function chartOptions(width, readout) {
  const line = (name, options) => ({ label: name, stroke: colour(name), width: 2, points: { size: 5 }, ...options });
  const edge = (label) => ({ label, stroke: "transparent", width: 0, points: { show: false } });
  const axis = { stroke: colour("muted"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid") } };
  const band = (series, name) => ({ series, fill: `color-mix(in srgb, ${colour(name)} 18%, transparent)` });
  return {
    width, height: Math.round(Math.min(320, Math.max(200, width / 2.4))),
    legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
    scales: { y: { range: shareRange } },
    axes: [{ ...axis, space: 70, values: timeLabels }, { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => `${significant(100 * tick, 5)} %`) }],
    series: [{}, line("bad", { width: 1.5, dash: [6, 4], points: { show: false } }), line("measured"), edge("low"), edge("high"),
      line("predicted"), edge("predicted_low"), edge("predicted_high")],
    bands: [band([4, 3], "measured"), band([7, 6], "predicted")],
    hooks: { setCursor: [(plot) => readout(plot.cursor.idx)] },
  };
}

function reading(index) {
  const at = (line) => (past.columns[line] || [])[index];
  if (!known(index) || !known(at("at_s"))) return "";
  const parts = [["promised"], ["measured", "low", "high"], ["predicted", "predicted_low", "predicted_high"]]
    .filter(([line]) => known(at(line)))
    .map(([line, low, high]) => `${line} ${low ? span([at(line), at(low), at(high)]) : percent(at(line))}`);
  return `${when(at("at_s"))}: ${parts.join(", ")}`;
}

function showSeries() {
  const container = find("#series .chart");
  let plot = null;
  const draw = (width) => {
    plot?.destroy();
    const swatch = (name, dash) => svg("path", { d: "M0 6H22", style: `stroke: ${colour(name)}; stroke-width: 2; stroke-dasharray: ${dash}` });
    const keys = legend([{ text: "promised", swatch: swatch("bad", "6 4") }, { text: "measured", swatch: swatch("measured", "none") },
      { text: "predicted", swatch: swatch("predicted", "none") }]);
    const words = html("p", { class: "hint readout" });
    const box = html("div", {});
    plot = new uPlot(chartOptions(width, (index) => { words.textContent = reading(index); }), seriesData(), box);
    return [keys, box, words];
  };
  const redraw = responsive(container, draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  const renew = () => { if (plot) plot.setData(seriesData()); };
  const choose = async () => {
    const name = chosenName();
    if (name === past.name) return;
    if (!start.live) past = { name, columns: Object.fromEntries(["at_s", ...LINES].map((line) => [line, []])) };
    else {
      try {
        const columns = await ask("past", { name });
        if (name !== chosenName()) return;
        past = { name, columns };
      } catch { return; } // the page says that the connection is lost
    }
    extendPast();
    renew();
  };
  watch("subscriber", choose);
  extendPast();
  renew();
  choose();
  return () => { extendPast(); renew(); };
}
