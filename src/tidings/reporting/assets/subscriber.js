// One subscriber: its delays, where they come from, and how it agrees between the sources.

const MOST_PLACES = 8; // on a path that are drawn, those that take longest

function showSubscriber() {
  const select = find("#chosen");
  const ranked = new Set(worstFirst);
  const unknown = everybody.map(({ index }) => index).filter((index) => !ranked.has(index));
  const options = worstFirst.length > 1000 ? worstFirst.slice(0, 1000) : [...worstFirst, ...unknown];
  const option = (index) => html("option", { value: index },
    `${everybody[index].name} at ${everybody[index].broker}: ${percent(outcome(reference, "on_time", index))}`);
  select.append(...options.map(option));
  select.addEventListener("change", () => change({ subscriber: everybody[select.value].name }));
  const drawCurves = responsive(find("#subscriber .curves"), (width) => curvesOf(chosenIndex(), width));
  const drawParts = responsive(find("#subscriber .parts"), (width) => partsOf(chosenIndex(), width));
  const show = () => {
    const index = chosenIndex();
    if (![...select.options].some(({ value }) => value === String(index))) select.prepend(option(index));
    select.value = index;
    drawCurves();
    drawParts();
    find("#subscriber .details").replaceChildren(...detailsOf(index));
  };
  watch("subscriber", show);
  show();
}

function curvesOf(index, width) {
  const curves = data.sources.map((source) => {
    const [times, shares] = data.delays[source][index] || [[], []];
    return { source, times, shares, onTime: outcome(source, "on_time", index) };
  }).filter(({ times }) => times.length);
  const name = everybody[index].name;
  if (!curves.length) {
    return [html("p", { class: "hint" }, data.curves_of < everybody.length
      ? `No delay curve is kept for ${name}: it is not among the ${data.curves_of} worst.`
      : `No delay curve is known for ${name}.`)];
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
  }).sort((a, b) => b.total - a.total);
  const shown = rows.slice(0, MOST_PLACES);
  const finite = rows.map(({ total }) => total).filter((total) => total < ENDLESS);
  const kinds = ["wait", "service", "link"].filter((kind) => parts.some(([each]) => each === kind));
  const words = { wait: "waiting", service: "service", link: "on a link" };
  return [
    legend(kinds.map((kind) => ({ text: words[kind], swatch: boxSwatch(colourOf(kind)) }))),
    ...stackedBars(width, {
      rows: shown, most: Math.max(...finite, 1e-9) * 1.02, format: seconds, labels: 0.42, title: "Parts of the mean delay",
    }),
    rows.length > shown.length ? html("p", { class: "hint" }, `The ${shown.length} longest of ${rows.length} places.`) : "",
  ];
}

function detailsOf(index) {
  const subscriber = everybody[index];
  const limits = subscriber.deadlines.map(([limit, share, random]) =>
    seconds(limit) + (random ? " on average" : "") +
    (subscriber.deadlines.length > 1 ? ` (${percent(share)})` : ""));
  const facts = [
    ["at broker", subscriber.broker], ["group", subscriber.group], ["wants", subscriber.wants],
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

// ---- agreement --------------------------------------------------------------------------------

function showAgreement() {
  const others = data.sources.filter((source) => source !== reference);
  if (!others.length) {
    find("#agreement").remove();
    return;
  }
  for (const source of others) {
    const apart = data.agreement.find((each) => each.source === source) || {};
    const marks = everybody.map(({ index, name, broker }) => {
      const [x, y] = [outcome(reference, "on_time", index), outcome(source, "on_time", index)];
      const [xError, yError] = [outcome(reference, "on_time_se", index), outcome(source, "on_time_se", index)];
      const label = `${name} at ${broker}\n${source} ${percent(y, yError)}\n${reference} ${percent(x, xError)}`;
      return { x, y, xError, yError, index, label };
    }).filter(({ x, y }) => known(x) && known(y))
      .sort((a, b) => Math.abs(a.x - a.y) - Math.abs(b.x - b.y)).slice(-2000);
    const box = html("div", { class: "chart" });
    const within = known(apart.within_2se) ? `; ${percent(apart.within_2se)} within two standard errors` : "";
    find("#agreement .charts").append(html("div", { "data-source": source },
      html("h3", { class: "chart-title" }, html("span", { class: `source ${source}` }, `${capital(source)} against ${reference}`)),
      html("p", { class: "hint" }, `Mean absolute error ${points(apart.mean_absolute)}, largest ${points(apart.maximum)}${within}.`),
      box));
    responsive(box, (width) => scatter(width, {
      points: marks, source, xLabel: `${reference}, on time`, yLabel: `${source}, on time`,
      title: `${source} against ${reference} on-time share of ${marks.length} subscribers`,
      pick: go, chosen: chosenIndex(),
    }));
    // Marks change in place: drawing again would take the keyboard's focus away.
    watch("subscriber", () => markChosen(box, ".mark"));
  }
}
