// Draws a table and redraws it in place: cells that say the same keep their nodes, so that focus,
// selected text and scroll outlive a refresh. All words are set as text, never as markup.

function fill(cell, { text, href, hue, hint, share }, atEnd) {
  const face = JSON.stringify([text, href, hue, hint, share, atEnd]);
  if (cell.dataset.face === face) return;
  cell.dataset.face = face;
  let inner = cell.firstElementChild;
  const wanted = href ? "A" : "SPAN";
  if (inner?.tagName !== wanted) {
    inner = document.createElement(wanted);
    cell.replaceChildren(inner);
  }
  inner.textContent = text;
  inner.dir = "auto";
  inner.className = (href ? "ett-go" : "") + (hue ? " ett-chip" : "");
  if (href) inner.href = href;
  if (hue) inner.style.setProperty("--hue", hue);
  cell.title = hint ?? "";
  cell.style.setProperty("--share", share ?? 0);
  cell.className = (atEnd ? "ett-end" : "") + (share != null ? " ett-bar" : "");
}

function head(table, columns) {
  const row = table.tHead.rows[0] ?? table.tHead.insertRow();
  columns.forEach((column, place) => {
    const cell = row.children[place] ?? row.appendChild(document.createElement("th"));
    cell.scope = "col";
    cell.ariaSort = column.sorted ?? null;
    fill(cell, { text: column.title, href: column.href, hint: column.help }, column.end);
  });
  while (row.children.length > columns.length) row.lastElementChild.remove();
}

function body(table, columns, rows) {
  const known = new Map(Array.from(table.tBodies[0].rows, (row) => [row.dataset.id, row]));
  rows.forEach(({ id, cells, chosen }, place) => {
    const row = known.get(id) ?? document.createElement("tr");
    known.delete(id);
    row.dataset.id = id;
    row.classList.toggle("ett-chosen", Boolean(chosen));
    cells.forEach((cell, at) => fill(row.cells[at] ?? row.insertCell(), cell, columns[at].end));
    const there = table.tBodies[0].rows[place];
    if (there !== row) table.tBodies[0].insertBefore(row, there ?? null);
  });
  known.forEach((row) => row.remove());
}

export default function ({ parentElement, data }) {
  const table = parentElement.querySelector("table");
  table.caption.textContent = data.caption;
  Object.assign(table.parentElement, { role: "region", ariaLabel: data.caption }); // a region without a name is none
  head(table, data.columns);
  body(table, data.columns, data.rows);
  table.onclick = (event) => {
    const aimed = event.target.closest("a, td");
    if (aimed?.tagName !== "TD" || String(window.getSelection())) return;
    aimed.closest("tr").querySelector("a.ett-go")?.click();
  };
}
