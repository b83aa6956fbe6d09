// The network: its map, what costs most in it, and tables of its brokers and links.

const CAUSE_COLOURS = {
  overload: "lost-overload", deadline: "late", bursts: "lost-expired", waiting: "wait", service: "service",
  travel: "link", loss: "lost-link", outages: "lost-broker_down", away: "lost-disconnected",
  "own queue": "lost-overflow", overflow: "lost-overflow", network: "lost-link", batches: "late",
  "back-pressure": "wait", "slow member": "lost-overflow", "hot partition": "lost-overflow",
  redelivery: "lost-expired", crashes: "lost-broker_down", churn: "lost-not_known",
};
const MOST_BARS = 20;

function showMap() {
  const redraw = responsive(find("#topology .chart"), (width) =>
    topology(width, (broker) => list(`at:${broker.name}`)));
  watch("only", () => {
    const focused = document.activeElement.closest?.(".broker");
    redraw();
    // Drawing again must not take the keyboard's focus away.
    const again = focused && [...document.querySelectorAll("#topology .broker")]
      .find(({ dataset }) => dataset.name === focused.dataset.name);
    if (again) again.focus({ preventScroll: true });
  });
}

// Both ways of every link that carries something.
const waysOfLinks = data.links.flatMap(({ ends, ways }) => ways.map((way, i) => {
  const [from, to] = (i ? [ends[1], ends[0]] : ends).map((end) => data.brokers[end].name);
  return { ...way, from, to };
}));

const sure = (error) => (known(error) ? ` ± ${points(error)}` : "");

function barsOfCauses() {
  const rows = data.costs.slice(0, MOST_BARS).map(([kind, words, cost, error]) => ({
    label: words, note: `+${points(cost)}${sure(error)}`,
    segments: [{ value: cost, colour: colourOf(CAUSE_COLOURS[kind]), text: `without it ${points(cost)}${sure(error)} more on time` }],
  }));
  const kinds = [...new Set(data.costs.slice(0, MOST_BARS).map(([kind]) => kind))];
  return {
    rows, format: points, labels: 0.5, left: data.costs.length - rows.length,
    keys: kinds.map((kind) => [kind, colourOf(CAUSE_COLOURS[kind])]),
  };
}

function barsOfTimes() {
  const brokers = data.brokers.map((broker) => ({ broker, load: loadOf(broker) }))
    .filter(({ load }) => known(load.wait_mean_s) || known(load.service_mean_s))
    .map(({ broker, load }) => ({
      label: broker.name,
      note: [known(load.utilisation) ? `${Math.round(100 * load.utilisation)} % busy` : "",
        known(broker.late_through) ? `${Math.round(100 * broker.late_through)} % of late` : ""].filter(Boolean).join(" · "),
      segments: [
        { value: load.wait_mean_s, colour: colourOf("wait"), text: `waits ${seconds(load.wait_mean_s)}` },
        { value: load.service_mean_s, colour: colourOf("service"), text: `is served ${seconds(load.service_mean_s)}` },
      ],
    }));
  const links = waysOfLinks.filter((way) => way.delay_mean_s > 0 && way.events_per_s !== 0).map((way) => ({
    label: `${way.from} → ${way.to}`, note: way.lost >= LOSSY ? `${percent(way.lost)} lost` : "",
    segments: [{ value: way.delay_mean_s, colour: colourOf("link"), text: `travels ${seconds(way.delay_mean_s)}` }],
  }));
  const timeOf = ({ segments }) => segments.reduce((sum, { value }) => sum + (value || 0), 0);
  const all = [...brokers, ...links].sort((a, b) => timeOf(b) - timeOf(a));
  const rows = all.slice(0, MOST_BARS);
  const keys = [["waiting", "wait"], ["service", "service"], ["on a link", "link"]];
  return {
    rows, format: seconds, labels: 0.42, left: all.length - MOST_BARS,
    keys: keys.filter(([, kind]) => rows.some(({ segments }) => segments.some((part) => part.value > 0 && part.colour === colourOf(kind))))
      .map(([words, kind]) => [words, colourOf(kind)]),
  };
}

function showCosts() {
  const views = { ...(data.costs.length ? { causes: "What each cause costs" } : {}), times: "Mean time at each place" };
  const hints = {
    causes: "How much more would be on time if the cause were gone and all else as it is. Causes overlap, so gains do not add up.",
    times: "Mean time of an event at each broker and on each link, and the share of all late events that pass a broker.",
  };
  const bars = { causes: barsOfCauses, times: barsOfTimes };
  const current = switchOf(find("#costs .control"), "costs", views, () => redraw());
  const redraw = responsive(find("#costs .chart"), (width) => {
    const { rows, keys, left, ...shape } = bars[current()]();
    find("#costs .hint").textContent = hints[current()];
    if (!rows.length) return [html("p", { class: "hint" }, "Nothing is known of times at brokers and on links.")];
    const sums = rows.map(({ segments }) => segments.reduce((sum, { value }) => sum + (value || 0), 0));
    const most = Math.max(...sums.filter((sum) => sum < ENDLESS), 1e-9) * 1.02;
    const more = left > 0 ? [html("p", { class: "hint" }, `The first ${rows.length} of ${rows.length + left}; all are in the tables.`)] : [];
    return [legend(keys.map(([text, colour]) => ({ text, swatch: boxSwatch(colour) }))),
      ...stackedBars(width, { rows, most, ...shape, title: views[current()] }), ...more];
  });
}

function showPlaces() {
  const number = (title, column, format, unit) => ({
    title, unit, highFirst: true, value: (row) => row[column], text: (row) => format(row[column]),
  });
  const name = (title, column, pick) => ({
    title, kind: "text", pick, value: (row) => row[column], text: (row) => row[column],
  });
  sortedTable(find("#places .brokers"), {
    name: "brokers", caption: `Brokers, ${reference}`, size: 10, searchable: data.brokers.length > 10,
    rows: data.brokers.map((broker) => ({ ...broker, ...loadOf(broker) })),
    columns: [name("broker", "name", true),
      number("on time", "on_time", percent, "share"), number("busy", "utilisation", percent, "share"),
      number("arrivals", "arrivals_per_s", rate, "1/s"), number("mean wait", "wait_mean_s", seconds, "s"),
      number("service", "service_mean_s", seconds, "s"), number("of late events", "late_through", percent, "share"),
      number("publishers", "publishers", String), number("subscribers", "subscribers", String)],
    sort: { title: "busy", down: true }, onPick: (row) => list(`at:${row.name}`),
  });
  if (!waysOfLinks.length) return;
  sortedTable(find("#places .links"), {
    name: "links", caption: `Links, ${reference}`, size: 10, searchable: waysOfLinks.length > 10, rows: waysOfLinks,
    columns: [name("from", "from"), name("to", "to"), number("events", "events_per_s", rate, "1/s"),
      number("lost", "lost", percent, "share"), number("mean delay", "delay_mean_s", seconds, "s"),
      ...(waysOfLinks.some((way) => known(way.utilisation)) ? [number("busy", "utilisation", percent, "share")] : [])],
    sort: { title: "mean delay", down: true },
  });
}
