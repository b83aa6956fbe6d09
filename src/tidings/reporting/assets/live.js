// Everything, in its place, and again whenever the server tells a new state.

const LOST_AFTER_S = 35; // without a word from the server, which says something every ten seconds
const AGAIN_MS = 3000;
const KINDS = { target: "below its promise", changed: "not the system that was predicted", backlog: "backlog" };

const details = (list, entries) => list.replaceChildren(...entries.map(([name, text, kind]) =>
  html("div", {}, html("dt", {}, name), html("dd", { class: kind }, text))));

// Draws again what has changed only: what is read, spoken or marked stays as it is.
const drawn = new Map();
function ifNew(name, shown, draw) {
  const text = JSON.stringify(shown);
  if (drawn.get(name) !== text) draw();
  drawn.set(name, text);
}

// Drawing again must not take the keyboard's focus away.
function keepFocus(container, redraw) {
  const labelOf = (element) => element.dataset.name || element.textContent;
  const active = document.activeElement;
  const focused = container.contains(active) && labelOf(active);
  redraw();
  if (!focused || document.contains(active)) return;
  [...container.querySelectorAll("button, [tabindex]")].find((each) => labelOf(each) === focused)?.focus({ preventScroll: true });
}

function showAnswer() {
  find("#answer .lead").textContent = view.lead;
  find("#answer .sentences").replaceChildren(...view.sentences.map(({ question, text }) =>
    html("div", {}, html("dt", {}, question), html("dd", {}, text))));
  find("#answer .figures").replaceChildren(...view.figures.map(({ label, value, note }) =>
    html("li", {}, html("span", { class: "label" }, label), " ", html("strong", {}, value), " ", html("span", { class: "note" }, note))));
  find("#answer .warnings")?.remove();
  if (view.warnings.length) {
    find("#answer .figures").before(html("ul", { class: "warnings", "aria-label": "Warnings" },
      ...view.warnings.map((text) => html("li", {}, text))));
  }
  const open = (view.alarms || []).filter(({ until_s }) => !known(until_s)).length;
  document.title = `${open ? `(${open}) ` : ""}${find("h1").textContent} · Tidings`;
}

function alarmItem(alarm) {
  const place = alarm.where.length ? ` (${alarm.where.slice(0, 5).join(", ")}${alarm.where.length > 5 ? " …" : ""})` : "";
  const lasted = known(alarm.until_s) ? `${when(alarm.since_s)}, until ${when(alarm.until_s)}` : when(alarm.since_s);
  const list = html("dl", { class: "details" });
  details(list, [["how much", alarm.size], ["since", lasted], ["because", alarm.cause], ["do", alarm.do]].filter(([, text]) => text));
  return html("li", { class: known(alarm.until_s) ? "ended" : null, "data-name": alarm.name },
    html("h3", {}, `${capital(alarm.what)}${place}`, html("span", { class: "kind" }, known(alarm.until_s) ? "over" : KINDS[alarm.kind] || alarm.kind)), list);
}

function showAlarms() {
  const alarms = view.alarms || [];
  find("#alarms .list").replaceChildren(alarms.length
    ? html("ol", { class: "alarms" }, ...alarms.map(alarmItem)) : html("p", { class: "hint" }, "None."));
}

const burn = ({ burn_rates }) => Object.entries(burn_rates || {}).map(([window, rate]) => `${significant(rate, 3)} × over ${window}`).join(", ");

function showSubscriber() {
  const name = chosenName();
  const row = view.known && rowOf(name);
  find("#subscriber-title").textContent = name || "Everybody";
  find("#series-title").textContent = name ? `Share on time: ${shortened(name, 60)}` : "Share on time: everybody";
  const entries = row ? [
    ["promised", percent(row.promised)],
    ["measured", row.measured ? span(row.measured) : "–"],
    ["predicted", row.predicted ? span(row.predicted) : "–"],
    ["wanted", `${row.wanted.toLocaleString("en")} events in ${seconds(view.window_s)}`],
    ["median delay", seconds(row.median_s)],
    ["99 % within", seconds(row.p99_s)],
    ["burn rate", burn(row) || "–"],
    ["main cause", row.cause || "–"],
  ] : [["", "Nothing is known of this subscriber now."]];
  details(find("#subscriber .details"), entries);
  find("#subscriber .control").replaceChildren(...(name
    ? [html("button", { type: "button", onclick: () => change({ subscriber: "" }) }, "Everybody")] : []));
}

// A subscriber that is not among the worst is asked for by name.
async function lookUp() {
  const name = chosenName();
  if (!start.live || !name || view.rows?.some((row) => row.name === name)) return;
  try {
    asked.set(name, (await ask("subscribers", { name })).row);
  } catch { return; } // the page says that the connection is lost
  showSubscriber();
}

function tableColumns() {
  const share = (title, hint) => ({
    title, hint, unit: "share", value: (row) => (row[title] || [null])[0],
    text: (row) => (row[title] ? span(row[title]) : "–"),
  });
  const number = (title, column, format, hint, unit) => ({
    title, hint, unit, highFirst: true, value: (row) => row[column], text: (row) => format(row[column]),
  });
  return [
    { title: "rank", hint: "the worst is first", value: ({ rank }) => rank, text: ({ rank }) => String(rank) },
    { title: "subscriber", kind: "text", pick: true, value: ({ name }) => name, text: ({ name }) => name },
    ...((view.rows || []).some(({ broker }) => broker) ? [
      { title: "broker", kind: "text", value: ({ broker }) => broker || null, text: ({ broker }) => broker }] : []),
    number("promised", "promised", percent, "share on time", "share"),
    share("measured", "share on time, and its interval"),
    share("predicted", "share on time, and its interval"),
    { title: "burn rate", hint: "the highest of its windows; 1 spends the error budget just so", highFirst: true,
      value: ({ burn_rates }) => Math.max(...Object.values(burn_rates), -1),
      text: ({ burn_rates }) => (Object.keys(burn_rates).length ? `${significant(Math.max(...Object.values(burn_rates)), 3)} ×` : "–") },
    number("median", "median_s", seconds, "of the measured delays", "s"),
    number("p99", "p99_s", seconds, "99 % of delivered events arrive within", "s"),
    number("wanted", "wanted", (count) => count.toLocaleString("en"), "events in the judged window"),
    { title: "main cause", kind: "text words", value: ({ cause }) => cause || null, text: ({ cause }) => cause },
  ];
}

function showEverybody() {
  let others = []; // what a search has found beyond the worst
  const rows = () => {
    const listed = new Set((view.rows || []).map(({ name }) => name));
    return [...(view.rows || []), ...others.filter(({ name }) => !listed.has(name))];
  };
  const table = sortedTable(find("#everybody .table"), {
    name: "subscribers", caption: "Shares of wanted events on time.", columns: tableColumns(), rows: rows(), sort: { title: "rank" },
    keeps: ["sort", "find"], searchable: true, chosen: ({ name }) => name === chosenName(),
    onPick: ({ name }) => { change({ subscriber: name }); showSection("series", "nearest"); },
  });
  const draw = () => keepFocus(find("#everybody"), () => table(rows()));
  const say = () => {
    const [shown, total] = [(view.rows || []).length, view.total || 0];
    find("#everybody .hint").textContent = shown < total
      ? `The worst ${shown.toLocaleString("en")} of ${total.toLocaleString("en")}; others are found by name, broker or cause.`
      : `${total.toLocaleString("en")} in all, the worst first.`;
  };
  let waiting = 0;
  const search = () => {
    clearTimeout(waiting);
    if (!start.live || (view.rows || []).length >= (view.total || 0)) return;
    const text = state.find || "";
    if (!text) { others = []; return; }
    waiting = setTimeout(async () => {
      try {
        const answer = await ask("subscribers", { find: text });
        if (text !== (state.find || "")) return;
        others = answer.rows;
        draw();
      } catch { /* the page says that the connection is lost */ }
    }, 250);
  };
  watch("find", search);
  watch("subscriber", draw);
  say();
  search();
  return () => { say(); draw(); search(); };
}

function showMap() {
  const section = find("#topology");
  const list = ({ name }) => { change({ find: name }); showSection("everybody", "start"); };
  const renew = () => {
    Object.assign(data, view.map?.brokers ? view.map : { brokers: [], links: [] });
    const wasHidden = section.hidden;
    section.hidden = !data.brokers.length;
    if (wasHidden !== section.hidden) showMenu();
  };
  renew();
  const redraw = responsive(section.querySelector(".chart"), (width) => (data.brokers.length ? topology(width, list) : []));
  return () => ifNew("map", view.map, () => { renew(); keepFocus(section, redraw); });
}

function showHealth() {
  const health = view.health;
  if (!health) return;
  details(find("#health .details"), [
    ["latest batch", health.batch < 0 ? "none yet" : `number ${health.batch.toLocaleString("en")}, ${health.rows.toLocaleString("en")} rows`],
    ["took", `${seconds(health.batch_s)}, one is due every ${seconds(health.trigger_s)}`],
    ["newest event", `${seconds(health.behind_s)} old`],
    ["late rows", `${health.late_rows.toLocaleString("en")} beyond the margin`],
    ["unreadable rows", `${health.set_aside_rows.toLocaleString("en")} set aside`],
    ["unreadable files", `${health.refused_files.toLocaleString("en")} left out`],
    ["system fitted", health.fitted_s ? when(health.fitted_s) : "never"],
    ...(health.problem ? [["problem", health.problem]] : []),
    ...(view.map_problem ? [["map", view.map_problem]] : []),
  ]);
  const backlogs = view.backlogs.filter(([, count]) => count > 0);
  details(find("#health dl.backlogs"), backlogs.length
    ? backlogs.slice(0, 12).map(([name, count]) => [name, `${count.toLocaleString("en")} events`]) : [["", "None."]]);
}

// ---- the connection ------------------------------------------------------------------------

const connection = { heard_s: Date.now() / 1000, ahead_s: 0, lost_s: null };

function showStatus() {
  const status = find("#status");
  const now_s = Date.now() / 1000;
  if (start.live && connection.lost_s === null && now_s - connection.heard_s > LOST_AFTER_S) connection.lost_s = connection.heard_s;
  const lost = start.live && connection.lost_s !== null;
  const age_s = view.known ? Math.max(0, now_s - connection.ahead_s - view.at_s) : 0;
  const old = start.live && view.known && age_s > Math.max(30, 3 * view.health.trigger_s);
  const judged = view.known ? `state of ${clock(view.at_s, !start.live || !isToday(view.at_s))}` : "no state yet";
  status.className = lost || old ? "lost" : "";
  status.textContent = lost ? `Connection lost since ${when(connection.lost_s)}, trying again; ${judged}`
    : old ? `Nothing new for ${seconds(Math.round(age_s))}: is the watch still running? ${capital(judged)}`
      : start.live ? `${capital(judged)}${view.known ? `, ${seconds(Math.round(age_s))} ago` : ""}` : `Saved: ${judged}`;
}

function heard(server_s) {
  connection.heard_s = Date.now() / 1000;
  connection.ahead_s = connection.heard_s - server_s; // by how much this clock is ahead of the server's
  connection.lost_s = null;
  showStatus();
}

function listen(show) {
  let source = null;
  const open = () => {
    source?.close();
    source = new EventSource("events");
    source.onmessage = ({ data: text }) => show(JSON.parse(text));
    source.addEventListener("ping", ({ data: text }) => heard(Number(text)));
    source.onerror = () => {
      connection.lost_s ??= Date.now() / 1000;
      showStatus();
      // A browser asks again by itself, unless it was answered that there is nothing.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, AGAIN_MS);
    };
  };
  open();
  setInterval(() => {
    showStatus();
    const silent_s = Date.now() / 1000 - connection.heard_s;
    if (silent_s > 2 * LOST_AFTER_S) { connection.heard_s = Date.now() / 1000; open(); }
  }, 1000);
}

const renewals = [showEverybody(), showMap(), showSeries()];
function showAll() {
  ifNew("answer", [view.lead, view.sentences, view.figures, view.warnings, view.alarms], showAnswer);
  ifNew("alarms", view.alarms, showAlarms);
  showSubscriber();
  showHealth();
  showStatus();
}
watch("subscriber", () => { showSubscriber(); lookUp(); });
showAll();
showMenu();
lookUp();
if (start.live) {
  listen((fresh) => {
    view = fresh;
    showAll();
    for (const renew of renewals) renew();
    lookUp();
  });
}
if (state.at) requestAnimationFrame(() => document.getElementById(state.at)?.scrollIntoView());
