// Everybody on the page: what became of the events of each, and who belongs together.

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

// What subscribers can have in common: [name in the address, title, what a subscriber has of it].
const GROUPINGS = [["at", "broker", ({ broker }) => broker], ["group", "group", ({ group }) => group],
  ["topic", data.topic, ({ topic }) => topic]]
  .filter(([, , of]) => everybody.some((each) => of(each)));

// What becomes of everything that some want: shares by column, weighed by what each wants.
function together(source, members) {
  const sums = Object.fromEntries(FATES.map(([column]) => [column, 0]));
  let total = 0;
  for (const { index, count } of members) {
    if (!known(outcome(source, "on_time", index))) continue;
    const weight = count * (outcome(source, "wanted_per_s", index) || 0);
    total += weight;
    for (const [column] of FATES) sums[column] += weight * (outcome(source, column, index) || 0);
  }
  return Object.fromEntries(Object.entries(sums).map(([column, sum]) => [column, total ? sum / total : null]));
}

// [[value, members, shares]], the worst first, of those that have a value.
function groupedBy(of) {
  const members = new Map();
  for (const each of everybody) {
    const value = of(each);
    if (!value) continue;
    if (!members.has(value)) members.set(value, []);
    members.get(value).push(each);
  }
  return [...members].map(([value, some]) => [value, some, together(reference, some)])
    .sort(([, , a], [, , b]) => (a.on_time ?? 2) - (b.on_time ?? 2));
}
const homes = new Map(groupedBy(({ broker }) => broker).map(([name, , shares]) => [name, shares]));
for (const broker of data.brokers) broker.on_time = (homes.get(broker.name) || {}).on_time;

// Whether somebody is among those that are listed, such as at:hub or group:desk.
function isAmong(only, subscriber) {
  if (!only) return true;
  const grouping = GROUPINGS.find(([kind]) => only.startsWith(`${kind}:`));
  return !grouping || grouping[2](subscriber) === only.slice(grouping[0].length + 1);
}

const indexOf = new Map(everybody.map(({ name, index }) => [name, index]));
const chosenIndex = () => indexOf.get(state.subscriber) ?? worstFirst[0] ?? 0;

function go(index) {
  change({ subscriber: everybody[index].name });
  showSection("subscriber", "nearest");
}
function list(only) {
  change({ only });
  showSection("everybody", "start");
}
function markChosen(container, selector) {
  for (const each of container.querySelectorAll(selector)) {
    each.classList.toggle("chosen", Number(each.dataset.index) === chosenIndex());
  }
}
