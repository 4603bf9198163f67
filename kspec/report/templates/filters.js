
// Filter cases, results and the matrix. Without this script everything is shown.
{
  const form = document.getElementById("filters");
  const count = document.getElementById("shown");
  const others = document.querySelectorAll(".others");
  const matrix = document.querySelector(".matrix");
  const cases = [...document.querySelectorAll(".case")].map(section => ({
    section,
    words: [...section.children].filter(each => each.matches("h3, p"))
      .map(each => each.textContent).join(" ").toLowerCase(),
    results: [...section.querySelectorAll(".result")].map(element => ({
      element,
      words: element.querySelector("summary").textContent.toLowerCase(),
      ...element.dataset,
    })),
  }));
  const results = cases.reduce((sum, each) => sum + each.results.length, 0);
  const wanted = () => Object.fromEntries(new FormData(form));
  const isFiltered = () => Object.values(wanted()).some(Boolean);

  function apply() {
    const { area, verdict, client, text } = wanted();
    const words = text.trim().toLowerCase();
    const kept = new Map();
    let shown = 0;
    for (const each of cases) {
      const clients = new Set();
      const isArea = !area || each.section.dataset.area === area;
      const hasWords = each.words.includes(words);
      for (const result of each.results) {
        const fits = isArea && (!verdict || result.verdict === verdict) &&
          (!client || result.client === client) && (hasWords || result.words.includes(words));
        result.element.hidden = !fits;
        if (fits) clients.add(result.client);
      }
      kept.set(each.section.dataset.case, clients);
      each.section.hidden = !clients.size;
      shown += clients.size;
    }
    for (const each of others) {
      each.hidden = !each.querySelector(".result:not([hidden])");
      each.open = Boolean(verdict);
    }
    for (const cell of matrix.querySelectorAll("[data-client]"))
      cell.hidden = Boolean(client) && cell.dataset.client !== client;
    for (const row of matrix.querySelectorAll("tr[data-case]")) {
      const clients = kept.get(row.dataset.case);
      row.hidden = !clients.size;
      for (const cell of row.querySelectorAll("td[data-client]"))
        cell.classList.toggle("out", !clients.has(cell.dataset.client));
    }
    for (const body of matrix.tBodies) body.hidden = !body.querySelector("tr[data-case]:not([hidden])");
    count.textContent = `${shown} of ${results} results`;
  }

  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  // A link leads to its result even if filters hide it.
  addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (isFiltered() && target && target.closest("[hidden]")) {
      form.reset();
      setTimeout(() => target.scrollIntoView());
    }
  });
  apply();
}
