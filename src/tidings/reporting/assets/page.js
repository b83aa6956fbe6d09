// What stands where on the page.

const data = JSON.parse(find("#data").textContent);
const reference = data.main;
const outcome = (source, column, index) => (data.outcomes[source][column] || [])[index];
const everybody = data.subscribers.map((subscriber, index) => ({ ...subscriber, index }));
const causesSeen = Object.keys(data.causes).filter((cause) =>
  data.sources.some((source) => `lost_${cause}` in data.outcomes[source]));
const colourOf = (kind) => `var(--${kind})`;
const FATES = [["on_time", "on-time", "on time"], ["late", "late", "late"],
  ...causesSeen.map((cause) => [`lost_${cause}`, `lost-${cause}`, data.causes[cause]])];
const worstFirst = everybody
  .map(({ index }) => index)
  .filter((index) => known(outcome(reference, "on_time", index)))
  .sort((a, b) => outcome(reference, "on_time", a) - outcome(reference, "on_time", b));
const lostOf = (source, index) => causesSeen.reduce(
  (sum, cause) => sum + (outcome(source, `lost_${cause}`, index) || 0), 0);

function markChosen(container, selector, index) {
  for (const each of container.querySelectorAll(selector)) {
    each.classList.toggle("chosen", Number(each.dataset.index) === index);
  }
}

function go(index) {
  choose(index);
  find("#subscriber").scrollIntoView({ block: "nearest", behavior: "smooth" });
}

// ---- brokers --------------------------------------------------------------------------------

function showBrokers(list) {
  responsive(find("#topology .chart"), (width) => topology(width, data, (broker) => {
    list.filter(broker.name);
    find("#everybody").scrollIntoView({ block: "start", behavior: "smooth" });
  }));
  const loads = data.brokers
    .map((broker) => ({ broker, load: broker.load[reference] || {} }))
    .filter(({ load }) => known(load.wait_mean_s) || known(load.service_mean_s))
    .map((each) => ({ ...each, time: (each.load.wait_mean_s || 0) + (each.load.service_mean_s || 0) }))
    .sort((a, b) => b.time - a.time).slice(0, 30);
  if (!loads.length) {
    find("#waits .chart").append(html("p", { class: "hint" }, "Nothing is known of waits at brokers."));
    return;
  }
  const finite = loads.map(({ time }) => time).filter((time) => time < ENDLESS);
  const most = Math.max(...finite, 1e-9) * 1.02;
  const rows = loads.map(({ broker, load }) => ({
    label: broker.name,
    note: [known(load.utilisation) ? `${Math.round(100 * load.utilisation)} % busy` : "",
      known(broker.late_through) ? `${Math.round(100 * broker.late_through)} % of late` : ""]
      .filter(Boolean).join(" · "),
    segments: [
      { value: load.wait_mean_s, colour: colourOf("wait"), text: `waits ${seconds(load.wait_mean_s)}` },
      { value: load.service_mean_s, colour: colourOf("service"), text: `is served ${seconds(load.service_mean_s)}` },
    ],
  }));
  responsive(find("#waits .chart"), (width) => [
    legend([{ text: "waiting", swatch: boxSwatch(colourOf("wait")) },
      { text: "service", swatch: boxSwatch(colourOf("service")) }]),
    ...stackedBars(width, { rows, most, format: seconds, title: "Mean time at each broker" }),
  ]);
}

// ---- agreement --------------------------------------------------------------------------------

function showAgreement() {
  const others = data.sources.filter((source) => source !== reference);
  if (!others.length) {
    find("#agreement").remove();
    return;
  }
  for (const source of others) {
    const found = data.agreement.find((each) => each.source === source) || {};
    const marks = everybody.map(({ index, name, broker }) => {
      const [x, y] = [outcome(reference, "on_time", index), outcome(source, "on_time", index)];
      const [xError, yError] = [outcome(reference, "on_time_se", index), outcome(source, "on_time_se", index)];
      const label = `${name} at ${broker}\n${source} ${percent(y, yError)}\n${reference} ${percent(x, xError)}`;
      return { x, y, xError, yError, index, label };
    }).filter(({ x, y }) => known(x) && known(y))
      .sort((a, b) => Math.abs(a.x - a.y) - Math.abs(b.x - b.y)).slice(-2000);
    const box = html("div", { class: "chart" });
    const within = known(found.within_2se) ? `; ${percent(found.within_2se)} within two standard errors` : "";
    find("#agreement .charts").append(html("div", { "data-source": source },
      html("h3", { class: "chart-title" }, html("span", { class: `source ${source}` }, `${capital(source)} against ${reference}`)),
      html("p", { class: "hint" }, `Mean absolute error ${points(found.mean_absolute)}, largest ${points(found.maximum)}${within}.`),
      box));
    responsive(box, (width) => scatter(width, {
      points: marks, source, xLabel: `${reference}, on time`, yLabel: `${source}, on time`,
      title: `${source} against ${reference} on-time share of ${marks.length} subscribers`,
      pick: go, chosen: choice.index,
    }));
    // Marks change in place: drawing again would take the keyboard's focus away.
    choice.listeners.push((index) => markChosen(box, ".mark", index));
  }
}

// ---- one subscriber -----------------------------------------------------------------------------

function showSubscriber() {
  const select = find("#chosen");
  const ranked = new Set(worstFirst);
  const unknown = everybody.map(({ index }) => index).filter((index) => !ranked.has(index));
  const options = worstFirst.length > 1000 ? worstFirst.slice(0, 1000) : [...worstFirst, ...unknown];
  for (const index of options) {
    select.append(html("option", { value: index },
      `${everybody[index].name} at ${everybody[index].broker}: ${percent(outcome(reference, "on_time", index))}`));
  }
  select.addEventListener("change", () => choose(Number(select.value)));
  const drawCurves = responsive(find("#subscriber .curves"), (width) => curvesOf(choice.index, width));
  const drawParts = responsive(find("#subscriber .parts"), (width) => partsOf(choice.index, width));
  choice.listeners.push((index) => {
    if (![...select.options].some((option) => option.value === String(index))) {
      select.prepend(html("option", { value: index }, everybody[index].name));
    }
    select.value = index;
    drawCurves();
    drawParts();
    find("#subscriber .details").replaceChildren(...detailsOf(index));
  });
}

function curvesOf(index, width) {
  const curves = data.sources.map((source) => {
    const [times, shares] = data.delays[source][index] || [[], []];
    return { source, times, shares, onTime: outcome(source, "on_time", index) };
  }).filter(({ times }) => times.length);
  const name = everybody[index].name;
  if (!curves.length) {
    return [html("p", { class: "hint" }, `No delay curve is kept for ${name}.`)];
  }
  const entries = data.sources.map((source) => ({
    text: `${source}: ${percent(outcome(source, "on_time", index), outcome(source, "on_time_se", index))} on time`,
    swatch: lineSwatch(source),
  }));
  return [legend(entries), ...delayCurves(width, {
    curves, deadlines: everybody[index].deadlines, title: `Delays of ${name}`,
  })];
}

function partsOf(index, width) {
  const parts = everybody[index].parts || [];
  if (!parts.length) return [html("p", { class: "hint" }, "Its path through the network is not known.")];
  const places = new Map();
  for (const [kind, place, value] of parts) {
    if (!places.has(place)) places.set(place, []);
    places.get(place).push({ value, colour: colourOf(kind), text: `${kind} ${seconds(value)} on average` });
  }
  const rows = [...places].map(([label, segments]) => {
    segments.sort((a, b) => b.value - a.value);
    const total = segments.reduce((sum, { value }) => sum + value, 0);
    return { label, segments, total, note: seconds(total) };
  }).sort((a, b) => b.total - a.total).slice(0, 8);
  const finite = rows.map(({ total }) => total).filter((total) => total < ENDLESS);
  const kinds = ["wait", "service", "link"].filter((kind) => parts.some(([each]) => each === kind));
  const words = { wait: "waiting", service: "service", link: "on a link" };
  return [
    legend(kinds.map((kind) => ({ text: words[kind], swatch: boxSwatch(colourOf(kind)) }))),
    ...stackedBars(width, {
      rows, most: Math.max(...finite, 1e-9) * 1.02, format: seconds, title: "Parts of the mean delay",
    }),
  ];
}

function detailsOf(index) {
  const subscriber = everybody[index];
  const limits = subscriber.deadlines.map(([limit, share, random]) =>
    seconds(limit) + (random ? " on average" : "") +
    (subscriber.deadlines.length > 1 ? ` (${percent(share)})` : ""));
  const facts = [
    ["at broker", subscriber.broker], ["wants", subscriber.wants],
    ["lifetime", limits.join(", ") || "none"],
    ["wanted", rate(outcome(reference, "wanted_per_s", index))],
    ["late", percent(outcome(reference, "late", index))],
    ["lost", percent(lostOf(reference, index))],
    ["mean delay", seconds(outcome(reference, "delay_mean_s", index))],
    ["95 % within", seconds(outcome(reference, "delay_p95_s", index))],
    ["mostly", subscriber.reason],
  ];
  return facts.filter(([, text]) => text).map(([name, text]) =>
    html("div", {}, html("dt", {}, name), html("dd", {}, text)));
}

// ---- what becomes of the events -------------------------------------------------------------------

function overall(source) {
  const sums = Object.fromEntries(FATES.map(([column]) => [column, 0]));
  let total = 0;
  for (const { index, count } of everybody) {
    const weight = count * (outcome(source, "wanted_per_s", index) || 0);
    if (!known(outcome(source, "on_time", index))) continue;
    total += weight;
    for (const [column] of FATES) sums[column] += weight * (outcome(source, column, index) || 0);
  }
  return Object.fromEntries(Object.entries(sums).map(([column, sum]) => [column, total ? sum / total : null]));
}

const fates = (value) => FATES.map(([column, kind, words]) =>
  ({ value: value(column), colour: colourOf(kind), text: `${percent(value(column))} ${words}` }));

function together(source, label) {
  const shares = overall(source);
  return { label, strong: true, segments: fates((column) => shares[column]) };
}

const LOSS_VIEWS = {
  "By source": () => data.sources.map((source) => together(source, source)),
  "By home broker": () => [together(reference, "all together"), ...data.brokers.filter(({ shares }) => known(shares.on_time))
    .sort((a, b) => a.shares.on_time - b.shares.on_time).slice(0, 60)
    .map(({ name, shares }) => ({ label: name, segments: fates((column) => shares[column]) }))],
  "Worst 30 subscribers": () => worstFirst.slice(0, 30).map((index) => ({
    label: everybody[index].name, segments: fates((column) => outcome(reference, column, index)),
    pick: () => go(index),
  })),
};

function showLosses() {
  let view = "By home broker";
  const seen = FATES.map(([, kind, words]) => ({ text: words, swatch: boxSwatch(colourOf(kind)) }));
  const redraw = responsive(find("#losses .chart"), (width) => [
    legend(seen),
    ...stackedBars(width, { rows: LOSS_VIEWS[view](), most: 1, format: whole, title: `What happens to wanted events: ${view}` }),
  ]);
  const buttons = Object.keys(LOSS_VIEWS).map((name) => html("button", {
    type: "button", "aria-pressed": String(name === view),
    onclick: () => {
      view = name;
      buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.textContent === view)));
      redraw();
    },
  }, name));
  find("#losses .control").append(...buttons);
}

// ---- tables ---------------------------------------------------------------------------------------

function showEverybody() {
  const shares = data.sources.map((source) => ({
    title: source, hint: `on-time share, ${source}`,
    value: ({ index }) => outcome(source, "on_time", index),
    text: ({ index }) => percent(outcome(source, "on_time", index), outcome(source, "on_time_se", index)),
  }));
  const number = (title, column, format, hint) => ({
    title, hint, highFirst: true,
    value: ({ index }) => outcome(reference, column, index),
    text: ({ index }) => format(outcome(reference, column, index)),
  });
  // Who answered each row of a prediction, and how far that can be off.
  const answer = (name) => ({ index }) => (data.answers.predicted || {})[name][index];
  const answers = "predicted" in data.answers ? [
    { title: "error", hint: "half-width (95 %) of the error of the predicted share", highFirst: true,
      value: ({ index }) => outcome("predicted", "error", index),
      text: ({ index }) => `± ${points(outcome("predicted", "error", index))}` },
    { title: "by", kind: "text", value: answer("by"), text: answer("by") },
    { title: "why", kind: "text", value: answer("why"), text: answer("why") },
  ] : [];
  const columns = [
    { title: "subscriber", kind: "text", pick: true, value: ({ name }) => name, text: ({ name }) => name },
    { title: "broker", kind: "text", value: ({ broker }) => broker, text: ({ broker }) => broker },
    ...shares,
    number("late", "late", percent, `share that arrived late, ${reference}`),
    { title: "lost", hint: `share that never arrived, ${reference}`, highFirst: true,
      value: ({ index }) => lostOf(reference, index), text: ({ index }) => percent(lostOf(reference, index)) },
    number("mean delay", "delay_mean_s", seconds, `of delivered events, ${reference}`),
    number("p95", "delay_p95_s", seconds, `95 % of delivered events arrive within, ${reference}`),
    { title: "lifetime", kind: "list", value: ({ deadlines }) => (deadlines.length ? deadlines[0][0] : null),
      text: ({ deadlines }) => deadlines.map(([limit]) => seconds(limit)).join(", ") || "–" },
    number("wanted", "wanted_per_s", rate, "events wanted"),
    { title: "main cause", kind: "text", value: ({ reason }) => reason, text: ({ reason }) => reason },
    ...answers,
  ];
  const table = sortedTable(find("#everybody .table"), {
    caption: `On-time shares by source; late, lost and delays as ${reference}.`, columns, rows: everybody,
    sort: { column: 1 + data.sources.indexOf(reference) + 1, down: false },
    onPick: ({ index }) => go(index), chosen: ({ index }) => index === choice.index, searchable: true,
  });
  choice.listeners.push((index) => markChosen(find("#everybody"), "tbody tr", index));
  return table;
}

function showParameters() {
  const container = find("#parameters .table");
  if (!container) return;
  const rows = data.parameters;
  const plain = (title, column, hint) => ({
    title, hint, value: (row) => row[column],
    text: (row) => (known(row[column]) ? significant(row[column], 4) : "–"),
  });
  const columns = [
    { title: "parameter", kind: "text", value: ({ path }) => path, text: ({ path }) => path },
    { title: "estimate ± standard error", value: ({ estimate }) => estimate,
      text: (row) => quantity(row.estimate, row.unit, row.standard_error) },
    ...(rows.some((row) => "truth" in row) ? [
      { title: "truth", value: ({ truth }) => truth, text: (row) => quantity(row.truth, row.unit) },
      { title: "z", hint: "standard errors from the truth", value: ({ z }) => z,
        text: ({ z }) => (known(z) ? (z > 0 ? "+" : "") + z.toFixed(1) : "–") },
    ] : []),
    { title: "family", kind: "text", value: ({ family }) => family, text: ({ family }) => family },
    plain("observations", "count"),
    plain("misfit", "goodness", "largest distance between the fitted distribution and the data"),
  ];
  sortedTable(container, {
    caption: "Fitted to the traces.", columns, rows, sort: { column: 0, down: false },
    searchable: rows.length > 10,
  });
}

// ---- everything -------------------------------------------------------------------------------------

choice.index = worstFirst.length ? worstFirst[0] : 0;
const list = showEverybody();
showBrokers(list);
showAgreement();
showLosses();
showParameters();
if (everybody.length) {
  showSubscriber();
  choose(choice.index);
} else {
  find("#subscriber").remove();
}
