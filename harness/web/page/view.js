// Elements of the page and the tables of outcomes.

export const byId = (id) => document.getElementById(id);

// Creates an element with properties and children; strings become text, never markup.
export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Saves a file through the browser.
export function saveAs(blob, name) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  URL.revokeObjectURL(address);
}

// Returns the condition that selects an outcome, in the syntax of tests.
export function condition(state) {
  return Object.entries(state).map(([name, value]) => `${name} == ${value}`).join(" /\\ ");
}

const stateWords = (state) => Object.entries(state).map(([name, value]) => `${name}=${value}`).join(" ");

function head(row, names, more) {
  row.replaceChildren(...[...names, ...more].map((name) => element("th", { scope: "col" }, name)));
}

// Shows the outcomes of a check; `choose` gets the state of a chosen one.
export function showOutcomes(line, choose) {
  const outcomes = line.outcomes.filter((outcome) => !outcome.filtered);
  byId("outcomes").hidden = outcomes.length === 0;
  const names = outcomes.length > 0 ? Object.keys(outcomes[0].state) : [];
  head(byId("outcome-names"), names, ["allowed", "kind", "explain"]);
  const rows = outcomes.map((outcome) => {
    const values = names.map((name) => element("td", { className: "number" }, String(outcome.state[name])));
    const kind = [outcome.weak ? "weak" : "sequential", outcome.thin_air ? "out of thin air" : "", outcome.witness ? "asked" : ""];
    const button = element("button", { type: "button" }, "explain");
    button.setAttribute("aria-label", `explain ${stateWords(outcome.state)}`);
    const row = element("tr", {}, ...values,
      element("td", { className: outcome.allowed ? "allowed" : "forbidden" }, outcome.allowed ? "allowed" : "forbidden"),
      element("td", { className: outcome.weak ? "weak" : "" }, kind.filter(Boolean).join(", ")),
      element("td", {}, button));
    button.addEventListener("click", () => {
      for (const other of byId("outcome-rows").children) other.classList.toggle("chosen", other === row);
      choose(outcome.state);
    });
    return row;
  });
  byId("outcome-rows").replaceChildren(...rows);
  byId("verdict").replaceChildren(...sentences(line));
}

function sentences(line) {
  const races = {
    racy: ["bad", "The program has a data race: its outcomes are undefined. "],
    free: ["good", "The program is free of data races. "],
    unknown: ["bad", "Races are not decided within the limit of steps. "],
  };
  const parts = [];
  if (line.no_execution) parts.push(element("span", { className: "bad" }, "No execution is consistent: the model or the test is at fault. "));
  const [className, race] = races[line.race] ?? ["", `The model ${line.model} defines no races. `];
  parts.push(element("span", { className }, race));
  for (const query of line.queries) {
    const holds = query.holds === null ? "is not decided" : query.holds ? "holds" : "does not hold";
    const unlike = query.expected !== null && query.holds !== null && query.expected !== query.holds;
    parts.push(element("span", { className: unlike ? "bad" : "" }, `${query.text} ${holds}${unlike ? ", unlike what the test expects" : ""}. `));
  }
  if (line.cut > 0) parts.push(`${line.cut} of ${line.runs} runs were cut off after ${line.bound} bodies of a loop. `);
  if (line.outcomes_listed === false) parts.push("The outcomes are not complete. ");
  return parts;
}

// Shows the histogram of a run in the table `table`, and its verdict in the element `words`.
export function showHistogram(line, table, words) {
  const outcomes = line.outcomes.filter((outcome) => outcome.count > 0 || outcome.weak);
  byId(table).hidden = outcomes.length === 0;
  const names = outcomes.length > 0 ? Object.keys(outcomes[0].state) : [];
  head(byId(`${table}-names`), names, ["count", "share", "allowed", "kind"]);
  const most = Math.max(1, ...outcomes.map((outcome) => outcome.count));
  byId(`${table}-rows`).replaceChildren(...outcomes.map((outcome) => {
    const bar = element("span", {});
    // As a property: the policy of the page refuses style attributes.
    bar.style.width = `${(100 * outcome.count) / most}%`;
    const values = names.map((name) => element("td", { className: "number" }, String(outcome.state[name])));
    return element("tr", {}, ...values,
      element("td", { className: "number" }, outcome.count.toLocaleString("en")),
      element("td", { className: "bar" }, bar),
      element("td", { className: outcome.allowed ? "allowed" : "forbidden" }, outcome.allowed ? "allowed" : "forbidden"),
      element("td", { className: outcome.weak ? "weak" : "" }, outcome.weak ? "weak" : "sequential"));
  }));
  const detail = line.detail ? `: ${line.detail}` : "";
  const reason = line.reason && line.reason !== line.detail ? ` (${line.reason})` : "";
  byId(words).textContent = `${line.instances.toLocaleString("en")} instances: ${line.verdict}${reason}${detail}`;
  byId(words).className = line.verdict === "violates" ? "bad" : "";
}

// Shows problems and their corrections; a click moves the caret to the place, or corrects it.
export function showMistakes(problems) {
  const editor = byId("text");
  const item = ({ severity, line, column, message, actions }) => {
    const button = element("button", { type: "button" }, `${line}:${column}: ${message}`);
    button.addEventListener("click", () => editor.moveCaret(line, column));
    const corrections = actions.map(({ name, run }) => {
      const correction = element("button", { type: "button", className: "correction" }, name);
      correction.addEventListener("click", run);
      return correction;
    });
    return element("li", { className: severity === "error" ? "mistake" : "warning" }, button, ...corrections);
  };
  byId("mistakes").replaceChildren(...problems.map(item));
}
