// What the page shows now, and what it may ask its server for.

const start = JSON.parse(find("#data").textContent);
let view = start.view;
// As the map wants it.
const data = { sources: ["measured"], main: "measured", brokers: [], links: [], rows: 1, columns: 0 };
const asked = new Map(); // rows of subscribers that are not among those that every page is sent

const chosenName = () => state.subscriber || "";
const clock = (at_s, dated) => new Date(1000 * at_s).toLocaleString(undefined, {
  ...(dated ? { year: "numeric", month: "short", day: "numeric" } : {}), hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});
const isToday = (at_s) => new Date(1000 * at_s).toDateString() === new Date().toDateString();
const when = (at_s) => clock(at_s, !isToday(at_s));
const span = ([share, low, high]) => `${percent(share)} (${percent(low)} to ${percent(high)})`;

async function ask(what, parameters) {
  const answer = await fetch(`${what}?${new URLSearchParams(parameters)}`);
  if (!answer.ok) throw new Error(`${what}: ${answer.status}`);
  return answer.json();
}

const rowOf = (name) => (name ? view.rows.find((row) => row.name === name) || asked.get(name) : view.everybody);
