// The brokers and links, drawn where the layout put them.

// Round shares and their colours, from dark orange to blue: told apart by colour-blind eyes too.
const SHADES = [[0, "#8f2d04"], [0.5, "#cc4c02"], [0.7, "#ec8a3c"], [0.85, "#f6cfa3"],
  [0.93, "#cfdfeb"], [0.98, "#79b1d8"], [1, "#2171b5"]];

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

function brokerTip(data, broker) {
  const lines = [broker.name];
  for (const source of data.sources) {
    const load = broker.load[source];
    if (!load) continue;
    lines.push(`${source}: ${percent(load.utilisation, load.utilisation_se)} busy, ${rate(load.arrivals_per_s)}, ` +
      `waits ${seconds(load.wait_mean_s)}, service ${seconds(load.service_mean_s)}`);
  }
  lines.push(`${broker.publishers} publishers, ${broker.subscribers} subscribers`);
  if (known(broker.shares.on_time)) lines.push(`${percent(broker.shares.on_time)} of what they want arrives on time`);
  if (known(broker.late_through)) lines.push(`${percent(broker.late_through)} of all late events pass through`);
  return lines.join("\n");
}

function linkTip(data, link) {
  const [a, b] = link.ends.map((end) => data.brokers[end].name);
  return [[a, b], [b, a]].map(([from, to], i) => {
    const way = link.ways[i];
    const busy = known(way.utilisation) ? `, ${percent(way.utilisation)} busy` : "";
    return `${from} → ${to}: ${percent(way.lost)} lost, ${seconds(way.delay_mean_s)}, ${rate(way.events_per_s)}${busy}`;
  }).join("\n");
}

function topology(room, data, pick) {
  const many = data.brokers.length > 40;
  const width = Math.max(room, many ? 900 : 560);
  const row = many ? 52 : 118;
  const height = Math.max(2, data.rows_of_brokers) * row + 24;
  const left = many ? 40 : 76;
  const place = (broker) => [left + broker.x * (width - 2 * left), broker.y * (height - 24) - (many ? 0 : 10)];
  const loadOf = (broker) => broker.load[data.main] || {};
  const busiest = Math.max(...data.brokers.map((each) => loadOf(each).arrivals_per_s || 0), 1e-12);
  const radius = (broker) => (many ? 0.5 : 1) * (13 + 13 * Math.sqrt((loadOf(broker).arrivals_per_s || 0) / busiest));
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "group",
    "aria-label": `${data.brokers.length} brokers and ${data.links.length} links`,
  });
  drawLinks(root, data, place, many);
  for (const broker of data.brokers) {
    root.append(drawBroker(data, broker, place(broker), radius(broker), { many, pick }));
  }
  return [shadeLegend(), root];
}

function drawLinks(root, data, place, many) {
  const fullest = Math.max(...data.links.flatMap(({ ways }) => ways.map((way) => way.events_per_s || 0)), 1e-12);
  for (const link of data.links) {
    const [[x1, y1], [x2, y2]] = link.ends.map((end) => place(data.brokers[end]));
    // A way that carries nothing loses nothing, whatever it would lose.
    const lost = Math.max(...link.ways.map((way) => (way.events_per_s > 0 && way.lost) || 0));
    const carried = Math.max(...link.ways.map((way) => way.events_per_s || 0));
    const lossy = lost >= 0.005;
    const line = { x1, y1, x2, y2 };
    const wide = 1.5 + 5 * Math.sqrt(carried / fullest);
    const group = svg("g", { role: "img", "aria-label": linkTip(data, link) },
      svg("line", { ...line, class: lossy ? "edge lossy" : "edge", "stroke-width": wide }),
      svg("line", { ...line, stroke: "transparent", "stroke-width": 14 }));
    if (lossy && !many) {
      group.append(svg("text", {
        class: "small bad halo", x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 9, "text-anchor": "middle",
      }, `${significant(100 * lost, 2)} % lost`));
    }
    root.append(withTip(group, linkTip(data, link)));
  }
}

function drawBroker(data, broker, [x, y], radius, { many, pick }) {
  const share = broker.shares.on_time;
  const load = broker.load[data.main] || {};
  const group = svg("g", { class: "broker" },
    svg("circle", { class: "node", cx: x, cy: y, r: radius, style: `fill: ${shade(share)}` }));
  if (known(load.utilisation)) {
    const busy = Math.min(1, load.utilisation);
    const ring = radius + (many ? 2.5 : 4);
    const stroke = { "stroke-width": many ? 2.5 : 4 };
    group.append(
      svg("circle", { class: "ring", cx: x, cy: y, r: ring, ...stroke }),
      svg("path", { class: busy >= 0.75 ? "gauge hot" : "gauge", d: arc(x, y, ring, busy), ...stroke }));
  }
  if (!many && known(share)) {
    group.append(svg("text", {
      x, y: y + 4, "text-anchor": "middle", class: "strong small", style: `fill: ${inkOn(share)}`,
    }, Math.round(100 * share)));
  }
  const label = (text, row, kind) => svg("text", {
    class: `${kind} halo`, x, y: y + radius + 18 + 14 * row, "text-anchor": "middle",
  }, text);
  group.append(label(shortened(broker.name, 20), 0, many ? "small" : "strong"));
  if (!many) {
    const busy = known(load.utilisation) ? `${Math.round(100 * load.utilisation)} % busy` : "";
    if (busy) group.append(label(busy, 1, load.utilisation >= 0.75 ? "small bad" : "small"));
    group.append(label(`${broker.publishers} pub · ${broker.subscribers} sub`, busy ? 2 : 1, "small"));
  }
  const words = brokerTip(data, broker);
  return pickable(withTip(group, words), words, () => pick(broker));
}

function shadeLegend() {
  const entries = [0.5, 0.7, 0.85, 0.93, 0.98, 1].map((share) =>
    ({ text: `${Math.round(100 * share)} %`, swatch: boxSwatch(shade(share)) }));
  entries[0].text += " on time";
  return legend([...entries, { text: "no subscribers", swatch: boxSwatch(shade(null)) }]);
}
