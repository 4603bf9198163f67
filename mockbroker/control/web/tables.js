// What the server knows when it renders the page: error names by code, and the
// operations whose only argument is a broker.

export const tables = JSON.parse(document.getElementById("tables").textContent);
