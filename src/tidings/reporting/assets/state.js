// What is chosen on the page. It is kept in the address, so that it survives a reload and can be
// sent to others: subscriber, only (whose subscribers the table lists), sort, find, fates, costs
// (which bars are shown), at (a section).

function readAddress() {
  const text = location.hash.slice(1);
  if (!text.includes("=")) return text ? { at: text } : {};
  return Object.fromEntries(new URLSearchParams(text));
}

const state = readAddress();
const watchers = [];

// Calls with the value of a name whenever that changes.
const watch = (name, call) => watchers.push([name, call]);

function change(changes) {
  const names = Object.keys(changes).filter((name) => (changes[name] || "") !== (state[name] || ""));
  for (const name of names) {
    if (changes[name]) state[name] = changes[name];
    else delete state[name];
  }
  const address = `#${new URLSearchParams(state)}`;
  try {
    history.replaceState(null, "", address);
  } catch {
    // A page inside another may not change its address; what is chosen is then not kept.
  }
  for (const [name, call] of watchers) if (names.includes(name)) call(state[name]);
}

window.addEventListener("hashchange", () => {
  const chosen = readAddress();
  change({ ...Object.fromEntries(Object.keys(state).map((name) => [name, ""])), ...chosen });
});

// Buttons of which one is pressed; the first is pressed unless the address says otherwise.
function switchOf(container, name, views, show) {
  const current = () => (Object.hasOwn(views, state[name] ?? "") ? state[name] : Object.keys(views)[0]);
  const buttons = Object.entries(views).map(([key, title]) => html("button", {
    type: "button", "data-view": key, onclick: () => change({ [name]: key }),
  }, title));
  const press = () => buttons.forEach((button) =>
    button.setAttribute("aria-pressed", String(button.dataset.view === current())));
  watch(name, () => { press(); show(); });
  press();
  if (buttons.length > 1) container.append(...buttons);
  return current;
}
