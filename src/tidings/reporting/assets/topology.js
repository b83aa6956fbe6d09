// The map: brokers and links.

// Round shares and their colours, from dark orange to blue: told apart by colour-blind eyes too.
const SHADES = [[0, "#8f2d04"], [0.5, "#cc4c02"], [0.7, "#ec8a3c"], [0.85, "#f6cfa3"],
  [0.93, "#cfdfeb"], [0.98, "#79b1d8"], [1, "#2171b5"]];
const HOT = 0.75; // of the time: a broker that is busy for more is marked
const LOSSY = 0.005; // a link that loses more is marked
const MOST_OVER = 8; // names that may lie over links for saying what brokers do
const MOST_LOSSES = 12; // that are written out; others are in their tooltips

function shade(share) {
  if (!known(share)) return "#a9b1ba";
  const above = Math.max(1, SHADES.findIndex(([limit]) => limit >= share));
  const [[low, from], [high, to]] = [SHADES[above - 1], SHADES[above]];
  const part = (share - low) / (high - low);
  const channel = (at) => Math.round(
    parseInt(from.slice(at, at + 2), 16) * (1 - part) + parseInt(to.slice(at, at + 2), 16) * part);
  return `rgb(${channel(1)}, ${channel(3)}, ${channel(5)})`;
}
const inkOn = (share) => (known(share) && share > 0.62 && share < 0.985 ? "#17202a" : "#ffffff");

function arc(x, y, radius, share) {
  const end = 2 * Math.PI * Math.min(share, 0.9999);
  const at = (angle) => `${x + radius * Math.sin(angle)} ${y - radius * Math.cos(angle)}`;
  return `M${at(0)}A${radius} ${radius} 0 ${end > Math.PI ? 1 : 0} 1 ${at(end)}`;
}

function brokerTip(broker) {
  const lines = [broker.name];
  for (const source of data.sources) {
    const load = broker.load[source];
    if (!load) continue;
    lines.push(`${source}: ${percent(load.utilisation, load.utilisation_se)} busy, ${rate(load.arrivals_per_s)}, ` +
      `waits ${seconds(load.wait_mean_s)}, service ${seconds(load.service_mean_s)}`);
  }
  lines.push(`${broker.publishers} publishers, ${broker.subscribers} subscribers`);
  if (known(broker.on_time)) lines.push(`${percent(broker.on_time)} of what they want arrives on time`);
  if (known(broker.waiting)) lines.push(`${broker.waiting.toLocaleString("en")} events wait`);
  if (known(broker.late_through)) lines.push(`${percent(broker.late_through)} of all late events pass through`);
  return lines.join("\n");
}

// A way that carries nothing loses nothing, whatever it would lose.
const lostOn = (link) => Math.max(...link.ways.map((way) => (way.events_per_s > 0 && way.lost) || 0));
const loadOf = (broker) => broker.load[data.main] || {};
const isHot = (broker) => known(loadOf(broker).utilisation) && loadOf(broker).utilisation >= HOT;

const loadsAreKnown = () => data.links.some(({ ways }) => ways.some((way) => known(way.events_per_s)));

function linkTip(link) {
  const [a, b] = link.ends.map((end) => data.brokers[end].name);
  return [[a, b], [b, a]].map(([from, to], i) => {
    const way = link.ways[i];
    const busy = known(way.utilisation) ? `, ${percent(way.utilisation)} busy` : "";
    if (way.events_per_s === 0) return `${from} → ${to}: carries nothing`;
    const carried = known(way.events_per_s) ? `, ${rate(way.events_per_s)}` : "";
    return `${from} → ${to}: ${percent(way.lost)} lost, ${seconds(way.delay_mean_s)}${carried}${busy}`;
  }).join("\n");
}

function topology(width, pick) {
  const { places, height } = placesOnMap(width, data);
  const most = roomForBrokers(places);
  const busiest = Math.max(...data.brokers.map((each) => loadOf(each).arrivals_per_s || 0), 1e-12);
  const radiusOf = (broker) => most * (0.5 + 0.5 * Math.sqrt((loadOf(broker).arrivals_per_s || 0) / busiest));
  const ring = most > 12 ? 4 : 2;
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "group",
    "aria-label": `${data.brokers.length} brokers and ${data.links.length} links`,
  });
  const spots = data.brokers.map((broker, i) => {
    const radius = radiusOf(broker);
    return { broker, ...places[i], radius, out: radius + 1.5 * ring };
  });
  drawLinks(root, places);
  const groups = spots.map((spot) => drawBroker(spot, ring, pick));
  root.append(...groups);
  const names = namesOnMap(spots, [width, height], places);
  names.placed.forEach((place, i) => place && writeName(groups[i], spots[i].broker, place));
  const unnamed = names.placed.filter((place) => !place).length;
  drawLosses(root, places, names.letters);
  const hint = unnamed ? [html("p", { class: "hint" },
    `${unnamed} of ${data.brokers.length} names do not fit; point at a broker to see its name, or look it up under “Brokers and links”.`)] : [];
  return [mapLegend(), root, ...hint];
}

const isChosenBroker = (broker) => state.only === `at:${broker.name}`;

function drawLinks(root, places) {
  const fullest = Math.max(...data.links.flatMap(({ ways }) => ways.map((way) => way.events_per_s || 0)), 1e-12);
  for (const link of data.links) {
    const [one, other] = link.ends.map((end) => places[end]);
    const carried = Math.max(...link.ways.map((way) => way.events_per_s || 0));
    const line = { x1: one.x, y1: one.y, x2: other.x, y2: other.y };
    const wide = 1.5 + (data.links.length > 40 ? 2.5 : 5) * Math.sqrt(carried / fullest);
    const group = svg("g", { role: "img", "aria-label": linkTip(link) },
      svg("line", { ...line, class: lostOn(link) >= LOSSY ? "edge lossy" : "edge", "stroke-width": wide }),
      svg("line", { ...line, stroke: "transparent", "stroke-width": data.links.length > 40 ? 8 : 14 }));
    root.append(withTip(group, linkTip(link)));
  }
}

function drawLosses(root, places, letters) {
  const lossiest = data.links.filter((each) => lostOn(each) >= LOSSY).sort((a, b) => lostOn(b) - lostOn(a));
  for (const link of lossiest.slice(0, MOST_LOSSES)) {
    const [one, other] = link.ends.map((end) => places[end]);
    const middle = { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2, radius: 4 };
    const text = `${significant(100 * lostOn(link), 2)} % lost`;
    const spot = letters.find([text], middle, { size: 11, weight: 400 });
    if (spot) root.append(svg("text", { class: "small bad halo", x: spot[0], y: spot[1], "text-anchor": spot[2] }, text));
  }
}

function drawBroker({ broker, x, y, radius }, ring, pick) {
  const load = loadOf(broker);
  const kind = `broker${isChosenBroker(broker) ? " here" : ""}${broker.alarmed ? " alarmed" : ""}`;
  const group = svg("g", { class: kind, "data-name": broker.name },
    svg("circle", { class: "node", cx: x, cy: y, r: radius, style: `fill: ${shade(broker.on_time)}` }));
  if (known(load.utilisation)) {
    const stroke = { "stroke-width": ring };
    group.append(
      svg("circle", { class: "ring", cx: x, cy: y, r: radius + ring, ...stroke }),
      svg("path", { class: isHot(broker) ? "gauge hot" : "gauge", d: arc(x, y, radius + ring, Math.min(1, load.utilisation)), ...stroke }));
  }
  if (radius >= 11 && known(broker.on_time)) {
    group.append(svg("text", {
      x, y: y + 4, "text-anchor": "middle", class: "strong small", style: `fill: ${inkOn(broker.on_time)}`,
    }, Math.round(100 * broker.on_time)));
  }
  const words = brokerTip(broker);
  return pickable(withTip(group, words), words, () => pick(broker));
}

// All are named alike: with what they do where that fits everywhere, else by names alone; so too
// where names with what they do lie over links, and names alone would not.
function namesOnMap(spots, size, places) {
  const lines = data.links.map((link) => link.ends.flatMap((end) => [places[end].x, places[end].y]));
  const [detailed, plain] = [true, false].map((how) => namesOf(spots, new Lettering(...size, lines), how));
  const over = detailed.letters.crossed - plain.letters.crossed;
  return detailed.placed.every(Boolean) && over <= MOST_OVER ? detailed : plain;
}

// Where the name of each broker stands, whole or shortened; null where there is no room.
function namesOf(spots, letters, detailed) {
  for (const { x, y, out } of spots) letters.take(x - out, y - out, x + out, y + out);
  const placed = spots.map(() => null);
  // Who has most to do is named first, and the chosen one before all.
  const ranked = spots.map((_, i) => i).sort((a, b) =>
    isChosenBroker(spots[b].broker) - isChosenBroker(spots[a].broker) || spots[b].radius - spots[a].radius);
  for (const i of ranked) {
    const { broker, x, y, out } = spots[i];
    const name = shortened(broker.name, 20);
    const { utilisation } = loadOf(broker);
    const more = [known(utilisation) ? `${Math.round(100 * utilisation)} % busy` : "",
      `${broker.publishers} pub · ${broker.subscribers} sub`].filter(Boolean);
    for (const lines of detailed ? [[name, ...more]] : [[name], [shortened(name, 9)]]) {
      const spot = letters.find(lines, { x, y, radius: out }, { size: 12, weight: 650 });
      if (spot) placed[i] = { lines, spot };
      if (spot) break;
    }
  }
  return { letters, placed };
}

function writeName(group, broker, { lines, spot: [x, y, anchor] }) {
  lines.forEach((line, i) => {
    const kind = i === 0 ? "strong name" : i === 1 && isHot(broker) ? "small bad" : "small";
    group.append(svg("text", { class: `${kind} halo`, x, y: y + 14 * i, "text-anchor": anchor }, line));
  });
}

function mapLegend() {
  const entries = SHADES.map(([share, colour]) => ({ text: `${Math.round(100 * share)} %`, swatch: boxSwatch(colour) }));
  entries[0].text += " on time";
  const ringSwatch = (kind) => svg("path", { class: kind, d: arc(11, 6, 4.5, 0.75), "stroke-width": 3 });
  const also = [
    [data.brokers.some(({ on_time }) => !known(on_time)), "no subscribers", boxSwatch(shade(null))],
    [data.brokers.some((each) => known(loadOf(each).utilisation)), "ring: how busy", ringSwatch("gauge")],
    [data.brokers.some(isHot), `busy for ${Math.round(100 * HOT)} % or more`, ringSwatch("gauge hot")],
    [data.brokers.some(({ alarmed }) => alarmed), "an alarm names it", svg("circle", { class: "alarm", cx: 11, cy: 6, r: 4.5 })],
    [data.links.some((link) => lostOn(link) < LOSSY), loadsAreKnown() ? "link, as wide as it is used" : "link", svg("path", { class: "edge", d: "M0 6H22", "stroke-width": 3 })],
    [data.links.some((link) => lostOn(link) >= LOSSY), "loses events", svg("path", { class: "edge lossy", d: "M0 6H22", "stroke-width": 3 })],
  ];
  return legend([...entries, ...also.filter(([seen]) => seen).map(([, text, swatch]) => ({ text, swatch }))]);
}
