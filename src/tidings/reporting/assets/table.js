// A table that sorts by its headers, filters by a text and shows a page at a time.

const PAGE = 50;

// columns: [{title, value: (row) => number|string, text: (row) => string, kind: "text"|"list"|"", pick}]
function sortedTable(container, { caption, columns, rows, sort, onPick, chosen, searchable }) {
  const state = { by: sort.column, down: sort.down, page: 0, words: "" };
  const body = html("tbody", {});
  const status = html("span", { role: "status" });
  const headers = columns.map((column, i) => html("th", {
    scope: "col", class: column.kind, "aria-sort": "none", title: column.hint,
  }, html("button", { type: "button", onclick: () => sortBy(i) }, column.title)));
  const before = html("button", { type: "button", onclick: () => turn(-1) }, "‹ Previous");
  const after = html("button", { type: "button", onclick: () => turn(1) }, "Next ›");
  const search = html("input", {
    type: "search", placeholder: "name, broker or reason", "aria-label": `Filter ${caption}`,
    oninput: () => { state.words = search.value; state.page = 0; draw(); },
  });
  const haystacks = rows.map((row) => columns.filter(({ kind }) => kind === "text")
    .map((column) => column.text(row)).join(" ").toLowerCase());

  function matching() {
    const words = state.words.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.map((row, i) => i).filter((i) => words.every((word) => haystacks[i].includes(word)));
    const { value } = columns[state.by];
    const keys = rows.map(value);
    // What is unknown stands last, whichever way the table is sorted.
    return found.sort((a, b) => {
      const [x, y] = [keys[a], keys[b]];
      if (!known(x) || !known(y)) return known(y) - known(x) || a - b;
      const order = typeof x === "string" ? x.localeCompare(y, undefined, { numeric: true }) : x - y;
      return (state.down ? -order : order) || a - b;
    }).map((i) => rows[i]);
  }
  function sortBy(i) {
    state.down = state.by === i ? !state.down : Boolean(columns[i].highFirst);
    state.by = i;
    state.page = 0;
    draw();
  }
  function turn(step) { state.page += step; draw(); }
  function cell(column, row) {
    const text = column.text(row);
    const name = column.pick && onPick
      ? html("button", { type: "button", class: "name", onclick: () => onPick(row) }, text) : text;
    return html("td", { class: column.kind, title: column.kind ? text : null }, name);
  }
  function draw() {
    const found = matching();
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    state.page = Math.min(Math.max(0, state.page), pages - 1);
    const shown = found.slice(state.page * PAGE, (state.page + 1) * PAGE);
    body.replaceChildren(...shown.map((row) => html("tr", {
      class: chosen && chosen(row) ? "chosen" : null, "data-index": row.index,
    }, ...columns.map((column) => cell(column, row)))));
    headers.forEach((header, i) => header.setAttribute(
      "aria-sort", i === state.by ? (state.down ? "descending" : "ascending") : "none"));
    before.disabled = state.page === 0;
    after.disabled = state.page >= pages - 1;
    before.hidden = after.hidden = pages === 1;
    const first = found.length ? state.page * PAGE + 1 : 0;
    status.textContent = `${first}–${state.page * PAGE + shown.length} of ${found.length}` +
      (found.length < rows.length ? ` (${rows.length} in all)` : "");
  }
  container.replaceChildren(
    html("p", { class: "control" }, searchable ? search : null, status,
      html("span", { class: "pages" }, before, " ", after)),
    html("div", { class: "scroll" }, html("table", {}, html("caption", {}, caption),
      html("thead", {}, html("tr", {}, ...headers)), body)));
  draw();
  return { draw, filter: (words) => { search.value = words; state.words = words; state.page = 0; draw(); } };
}
