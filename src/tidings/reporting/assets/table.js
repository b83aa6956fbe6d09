// A table that sorts by its headers, filters by a text and shows a page at a time.

// columns: [{title, value: (row) => number|string, text: (row) => string, kind: "text"|"text words"|"list"|"", pick, unit}]
// sort: {title, down}; keeps: names of what the address keeps of it; among: (row) => whether it is listed
function sortedTable(container, { name, caption, columns, rows, sort, onPick, chosen, searchable, keeps, among, size = 50 }) {
  const position = (title) => columns.findIndex((column) => column.title === title);
  const local = { page: 0, sort: "", find: "" };
  const recall = (key) => (keeps ? state[key] : local[key]) || "";
  const keep = (key, value) => {
    local.page = 0;
    if (keeps) return change({ [key]: value });
    local[key] = value;
    return draw();
  };
  const order = () => {
    const [, minus, title] = recall("sort").match(/^(-?)(.*)$/s);
    const by = position(title);
    return by < 0 ? { by: position(sort.title), down: Boolean(sort.down) } : { by, down: minus === "-" };
  };
  const body = html("tbody", {});
  const status = html("span", { role: "status" });
  const headers = columns.map((column, i) => html("th", {
    scope: "col", class: column.kind, "aria-sort": "none", title: column.hint,
  }, html("button", { type: "button", onclick: () => sortBy(i) }, column.title)));
  const before = html("button", { type: "button", onclick: () => turn(-1) }, "‹ Previous");
  const after = html("button", { type: "button", onclick: () => turn(1) }, "Next ›");
  const search = html("input", {
    type: "search", placeholder: "name, broker or cause", "aria-label": `Filter ${caption}`,
    oninput: () => keep("find", search.value),
  });
  const textsOf = () => rows.map((row) => columns.filter(({ kind }) => kind && kind.startsWith("text"))
    .map((column) => column.text(row)).join(" ").toLowerCase());
  let haystacks = textsOf();

  function matching() {
    const words = recall("find").toLowerCase().split(/\s+/).filter(Boolean);
    const listed = rows.map((row, i) => i).filter((i) =>
      (!among || among(rows[i])) && words.every((word) => haystacks[i].includes(word)));
    const { by, down } = order();
    const keys = rows.map(columns[by].value);
    // What is unknown stands last, whichever way the table is sorted.
    return listed.sort((a, b) => {
      const [x, y] = [keys[a], keys[b]];
      if (!known(x) || !known(y)) return known(y) - known(x) || a - b;
      const difference = typeof x === "string" ? x.localeCompare(y, undefined, { numeric: true }) : x - y;
      return (down ? -difference : difference) || a - b;
    }).map((i) => rows[i]);
  }
  function sortBy(i) {
    const { by, down } = order();
    const turned = by === i ? !down : Boolean(columns[i].highFirst);
    keep("sort", `${turned ? "-" : ""}${columns[i].title}`);
  }
  function turn(step) { local.page += step; draw(); }
  function cell(column, row) {
    const text = column.text(row);
    const content = column.pick && onPick
      ? html("button", { type: "button", class: "name", onclick: () => onPick(row) }, text) : text;
    return html("td", { class: column.kind, title: column.kind ? text : null }, content);
  }
  function draw() {
    const listed = matching();
    const pages = Math.max(1, Math.ceil(listed.length / size));
    local.page = Math.min(Math.max(0, local.page), pages - 1);
    const shown = listed.slice(local.page * size, (local.page + 1) * size);
    body.replaceChildren(...shown.map((row) => html("tr", {
      class: chosen && chosen(row) ? "chosen" : null, "data-index": row.index,
    }, ...columns.map((column) => cell(column, row)))));
    const { by, down } = order();
    headers.forEach((header, i) => header.setAttribute(
      "aria-sort", i === by ? (down ? "descending" : "ascending") : "none"));
    before.disabled = local.page === 0;
    after.disabled = local.page >= pages - 1;
    before.hidden = after.hidden = pages === 1;
    if (search.value !== recall("find")) search.value = recall("find");
    const first = listed.length ? local.page * size + 1 : 0;
    status.textContent = `${first}–${local.page * size + shown.length} of ${listed.length}` +
      (listed.length < rows.length ? ` (${rows.length} in all)` : "");
  }
  // Numbers as they are, in the unit that the title then names.
  const csvRows = () => [columns.map(({ title, unit }) => (unit ? `${title} (${unit})` : title)),
    ...matching().map((row) => columns.map((column) => (column.kind ? column.text(row) : column.value(row))))];
  container.replaceChildren(
    html("p", { class: "control" }, searchable ? search : null, status,
      html("span", { class: "pages" }, before, " ", after), csvButton(name, csvRows)),
    html("div", { class: "scroll" }, html("table", {}, html("caption", {}, caption),
      html("thead", {}, html("tr", {}, ...headers)), body)));
  if (keeps) for (const key of keeps) watch(key, () => { local.page = 0; draw(); });
  draw();
  // Draws again, with other rows where they are given.
  return (others) => {
    if (others) {
      rows = others;
      haystacks = textsOf();
    }
    draw();
  };
}
