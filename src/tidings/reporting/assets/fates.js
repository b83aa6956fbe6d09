// What becomes of the events, and the tables of everybody and of what was fitted.

const fates = (shares) => FATES.map(([column, kind, words]) =>
  ({ value: shares(column), colour: colourOf(kind), text: `${percent(shares(column))} ${words}` }));

function barOf(label, shares, more) {
  return { label, segments: fates((column) => shares[column]), ...more };
}

const MOST_GROUPS = 60;
const MOST_WORST = 30;

function barsOfGroups([kind, , of]) {
  const groups = groupedBy(of);
  return [barOf("all together", together(reference, everybody), { strong: true }),
    ...groups.slice(0, MOST_GROUPS).map(([value, members, shares]) =>
      barOf(value, shares, { pick: () => list(`${kind}:${value}`), note: headcount(members) }))];
}
const headcount = (members) => members.reduce((sum, each) => sum + each.count, 0).toLocaleString("en");

function showFates() {
  const views = Object.fromEntries([
    ...GROUPINGS.map(([kind, title]) => [kind, `By ${title === "broker" ? "home broker" : title}`]),
    ["worst", `Worst ${Math.min(MOST_WORST, worstFirst.length)} subscribers`], ["source", "By source"]]);
  const bars = (view) => {
    if (view === "source") return data.sources.map((source) => barOf(source, together(source, everybody), { strong: true }));
    if (view !== "worst") return barsOfGroups(GROUPINGS.find(([kind]) => kind === view));
    return worstFirst.slice(0, MOST_WORST).map((index) =>
      barOf(everybody[index].name, Object.fromEntries(FATES.map(([column]) => [column, outcome(reference, column, index)])),
        { pick: () => go(index) }));
  };
  const hints = {
    source: "Everything that everybody wants, as each source has it.", worst: "Choose one to see its delays.",
  };
  const seen = FATES.map(([, kind, words]) => ({ text: words, swatch: boxSwatch(colourOf(kind)) }));
  const current = switchOf(find("#losses .control"), "fates", views, () => redraw());
  const redraw = responsive(find("#losses .chart"), (width) => {
    const rows = bars(current());
    const all = GROUPINGS.find(([kind]) => kind === current());
    const cut = all && groupedBy(all[2]).length > MOST_GROUPS ? ` The worst ${MOST_GROUPS} are shown.` : "";
    find("#losses .hint").textContent = hints[current()] ||
      `With the number of subscribers, the worst first; choose one to list them.${cut}`;
    return [legend(seen), ...stackedBars(width, { rows, most: 1, format: whole, title: `What happens to wanted events: ${views[current()]}` })];
  });
}

// Whose subscribers the table lists.
function chooserOfGroups() {
  const select = html("select", { id: "only", "aria-label": "List only", onchange: () => change({ only: select.value }) },
    html("option", { value: "" }, `all ${headcount(everybody)} subscribers`));
  for (const [kind, title, of] of GROUPINGS) {
    const values = [...new Set(everybody.map(of).filter(Boolean))];
    values.sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
    select.append(html("optgroup", { label: title }, ...values.slice(0, 1000).map((value) =>
      html("option", { value: `${kind}:${value}` }, shortened(value, 60)))));
  }
  const show = () => {
    select.value = state.only || "";
    if (select.selectedIndex < 0) select.value = "";
  };
  watch("only", show);
  show();
  return select;
}

function showEverybody() {
  const shares = data.sources.map((source) => ({
    title: source, hint: `on-time share, ${source}`, unit: "share on time",
    value: ({ index }) => outcome(source, "on_time", index),
    text: ({ index }) => percent(outcome(source, "on_time", index), outcome(source, "on_time_se", index)),
  }));
  const number = (title, column, format, hint) => ({
    title, hint, highFirst: true, unit: column.endsWith("_per_s") ? "1/s" : column.endsWith("_s") ? "s" : "share",
    value: ({ index }) => outcome(reference, column, index),
    text: ({ index }) => format(outcome(reference, column, index)),
  });
  // Who answered each row of a prediction, and how far that can be off.
  const answer = (name) => ({ index }) => (data.answers.predicted || {})[name][index];
  const answers = "predicted" in data.answers ? [
    { title: "error", hint: "half-width (95 %) of the error of the predicted share", highFirst: true, unit: "share",
      value: ({ index }) => outcome("predicted", "error", index),
      text: ({ index }) => `± ${points(outcome("predicted", "error", index))}` },
    { title: "by", kind: "text", value: answer("by"), text: answer("by") },
    { title: "why", kind: "text words", value: answer("why"), text: answer("why") },
  ] : [];
  const columns = [
    { title: "subscriber", kind: "text", pick: true, value: ({ name }) => name, text: ({ name }) => name },
    ...GROUPINGS.filter(([kind]) => kind !== "topic").map(([, title, of]) => (
      { title, kind: "text", value: (row) => of(row) || null, text: (row) => of(row) || "" })),
    ...shares,
    number("late", "late", percent, `share that arrived late, ${reference}`),
    { title: "lost", hint: `share that never arrived, ${reference}`, highFirst: true, unit: "share",
      value: ({ index }) => lostOf(reference, index), text: ({ index }) => percent(lostOf(reference, index)) },
    number("mean delay", "delay_mean_s", seconds, `of delivered events, ${reference}`),
    number("p95", "delay_p95_s", seconds, `95 % of delivered events arrive within, ${reference}`),
    { title: "lifetime", kind: "list", value: ({ deadlines }) => (deadlines.length ? deadlines[0][0] : null),
      text: ({ deadlines }) => deadlines.map(([limit]) => seconds(limit)).join(", ") || "–" },
    number("wanted", "wanted_per_s", rate, "events wanted"),
    { title: "main cause", kind: "text words", value: ({ reason }) => reason, text: ({ reason }) => reason },
    ...answers,
  ];
  const draw = sortedTable(find("#everybody .table"), {
    name: "subscribers", caption: `On-time shares by source; late, lost and delays as ${reference}.`, columns, rows: everybody,
    sort: { title: reference }, keeps: ["sort", "find", "only"], among: (row) => isAmong(state.only, row),
    onPick: ({ index }) => go(index), chosen: ({ index }) => index === chosenIndex(), searchable: true,
  });
  find("#everybody .control").prepend(chooserOfGroups());
  watch("subscriber", () => markChosen(find("#everybody"), "tbody tr"));
  return draw;
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
    name: "parameters", caption: "Fitted to the traces.", columns, rows, sort: { title: "parameter" },
    searchable: rows.length > 10,
  });
}
