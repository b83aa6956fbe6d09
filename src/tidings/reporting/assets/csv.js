// Tables as files that a spreadsheet opens.

const NUMBER = /^[-+]?\d[\d.,]*(e[-+]?\d+)?( ?%)?$/i;
// A spreadsheet runs a text that begins like this, also behind what it takes for the end of a cell.
const FORMULA = /(^|[;,\t\r\n])(\s*)(?=[=+\-@＝＋－＠])/g;

function csvCell(value) {
  if (!known(value)) return "";
  if (typeof value === "number") return Math.abs(value) > ENDLESS ? "inf" : String(value);
  const text = NUMBER.test(value) ? value : value.replace(FORMULA, "$1$2'");
  return `"${text.replaceAll('"', '""')}"`;
}

const csvText = (rows) => `\ufeff${rows.map((row) => row.map(csvCell).join(",")).join("\r\n")}\r\n`;

// A button that saves what rows() gives, a list of lists of which the first has the titles.
function csvButton(name, rows) {
  return html("button", {
    type: "button", class: "csv", title: "Save this table as a CSV file",
    onclick: () => {
      const address = URL.createObjectURL(new Blob([csvText(rows())], { type: "text/csv" }));
      html("a", { href: address, download: `${name}.csv` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 10000);
    },
  }, "CSV");
}

// Tables that are in the page as they are.
function csvOfTables() {
  for (const table of document.querySelectorAll("table.static")) {
    const title = table.caption ? table.caption.textContent : "table";
    const rows = () => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    table.parentElement.before(html("p", { class: "control" }, csvButton(fileName(title), rows)));
  }
}
const fileName = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60).replace(/^-|-$/g, "") || "table";
