// The gallery: patterns in right and wrong forms, collections of tests, and the corpus by family.

import { ask } from "./engine.js";
import { element } from "./view.js";

// Fills the dialog; `open` takes the text of the chosen test.
export function fill(dialog, { collections, tests }, patterns, open) {
  const choose = (text) => {
    dialog.close();
    open(text);
  };
  const opener = (id, label) => {
    const button = element("button", { type: "button", className: "test" }, label);
    button.addEventListener("click", async () => {
      const answer = await ask({ request: "test", id });
      if (answer.answer === "test") choose(answer.text);
    });
    return button;
  };
  for (const { title, tests: entries } of collections) {
    dialog.querySelector("#collections").append(element("details", { className: "entry" }, element("summary", {}, title),
      element("ul", {}, ...entries.map(({ name, description }) => element("li", {}, opener(name, name), ` ${description}`)))));
  }
  const list = dialog.querySelector("#patterns");
  dialog.querySelector("#patterns-title").hidden = patterns.length === 0;
  for (const pattern of patterns) {
    const forms = pattern.forms.filter((form) => form.litmus).map((form) => {
      const label = form.verdict === "right" ? `${form.name}` : `${form.name} (${form.verdict})`;
      const button = element("button", { type: "button", className: form.verdict === "right" ? "good" : "bad" }, label);
      button.addEventListener("click", () => choose(form.litmus));
      return button;
    });
    if (forms.length === 0) continue;
    list.append(element("details", { className: "entry" }, element("summary", {}, pattern.title),
      element("p", {}, pattern.forms[0].why), ...forms));
  }
  const families = Map.groupBy ? Map.groupBy(tests, family) : group(tests);
  for (const [name, ids] of families) {
    const buttons = ids.map((id) => opener(id, id.slice(name.length + 1)));
    dialog.querySelector("#tests").append(
      element("details", { className: "entry" }, element("summary", {}, `${name} (${ids.length})`), ...buttons));
  }
  const search = dialog.querySelector("#search");
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    for (const entry of dialog.querySelectorAll(".entry")) {
      const title = entry.querySelector("summary").textContent.toLowerCase();
      let found = title.includes(wanted);
      for (const button of entry.querySelectorAll(".test")) {
        // An entry of a collection has a line about it.
        const item = button.closest("li") ?? button;
        item.hidden = !(title.includes(wanted) || item.textContent.toLowerCase().includes(wanted));
        found ||= !item.hidden;
      }
      entry.hidden = !found;
      entry.open = wanted !== "" && found;
    }
  });
}

function family(id) {
  return id.slice(0, id.lastIndexOf("/"));
}

function group(tests) {
  const families = new Map();
  for (const id of tests) families.set(family(id), [...(families.get(family(id)) ?? []), id]);
  return families;
}
