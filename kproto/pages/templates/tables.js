
// Make tables of the class `sortable` sortable by buttons in their heads. Without this script they
// are plain tables. Empty cells come last either way.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  for (const head of heads) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const isNumber = head.classList.contains("number");
      const before = head.getAttribute("aria-sort");
      const descending = before ? before === "ascending" : isNumber;
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const body = table.tBodies[0];
      const keyed = [...body.rows].map(row => {
        const cell = row.cells[head.cellIndex];
        return { row, key: cell.dataset.value ?? cell.textContent.trim() };
      });
      keyed.sort((one, other) => {
        if (!one.key || !other.key) return Boolean(other.key) - Boolean(one.key);
        const order = isNumber
          ? parseFloat(one.key) - parseFloat(other.key)
          : one.key.localeCompare(other.key, undefined, { numeric: true });
        return descending ? -order : order;
      });
      body.append(...keyed.map(each => each.row));
    });
  }
}
