// The form of every operation. The server renders them from its declarations. An empty field of an
// optional argument leaves the argument out.

export function start(root, page) {
  const choice = root.querySelector("[data-choice]"), forms = [...root.querySelectorAll("form")];
  const show = () => { for (const form of forms) form.hidden = form.dataset.operation !== choice.value; };
  choice.addEventListener("change", show);
  show();
  for (const form of forms)
    form.addEventListener("submit", event => {
      event.preventDefault();
      const fields = [...form.elements].filter(field =>
        field.name && (field.required || field.value !== "" || field.type === "textarea"));
      page.operate(form.dataset.operation, Object.fromEntries(fields.map(field =>
        [field.name, field.type === "number" ? Number(field.value) : field.value])));
    });
}
