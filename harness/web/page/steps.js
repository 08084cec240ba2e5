// The steps of a finding: both invocations side by side, forward and back, with the values so far.

import { element } from "./view.js";

// Steps that are shown before and behind the current one.
const NEAR = 4;

function effectWords(effect) {
  switch (effect.kind) {
    case "variable": return `${effect.name} = ${effect.value}`;
    case "read": return `reads ${effect.element}: ${effect.value}`;
    case "write": return `writes ${effect.element}: ${effect.before} -> ${effect.after}`;
    case "wait": return "waits";
    default: return "ends";
  }
}

// Returns what the invocation of a step has seen of the other one.
function seenWords(trace, { invocation, seen }) {
  const other = trace.invocations[1 - invocation];
  if (other === undefined) return [];
  if (seen === null) return [`has seen nothing of ${other}`];
  const { line } = trace.steps[seen];
  return [`has seen everything of ${other} up to ${line === null ? `step ${seen + 1}` : `line ${line}`}`];
}

// Returns the values after a step: the variables of each invocation, and memory last.
function valuesAfter(trace, current) {
  const variables = trace.invocations.map(() => new Map());
  const memory = new Map();
  for (const { invocation, effects } of trace.steps.slice(0, current + 1)) {
    for (const effect of effects) {
      if (effect.kind === "variable") variables[invocation].set(effect.name, effect.value);
      if (effect.kind === "read") memory.set(effect.element, effect.value);
      if (effect.kind === "write") memory.set(effect.element, effect.after);
    }
  }
  return [...variables, memory];
}

const valueWords = (values) => (values.size === 0 ? "none yet" : [...values].map(([name, value]) => `${name} = ${value}`).join(", "));

// Returns an element that goes through the steps; `jump` gets the line of the current one. It starts at the last step,
// which shows the finding.
export function stepThrough(trace, text, jump) {
  const sources = text.split("\n");
  const columns = trace.invocations.map((name) => element("th", { scope: "col" }, `invocation ${name}`));
  const rows = element("tbody", {});
  const values = element("dl", {});
  const position = element("span", { role: "status", ariaLive: "polite" });
  let current = trace.steps.length - 1;
  const stepRow = (step, index) => {
    const source = step.line === null ? "" : `${step.line} | ${(sources[step.line - 1] ?? "").trim()}`;
    const shown = [...step.effects.map(effectWords), ...(index === current ? seenWords(trace, step) : [])];
    const cells = trace.invocations.map((_, column) => (column === step.invocation
      ? element("td", {}, element("code", {}, source), ...shown.map((words) => element("div", {}, words)))
      : element("td", {})));
    const row = element("tr", { className: index === current ? "chosen" : "" }, element("td", { className: "number" }, String(index + 1)), ...cells);
    if (index === current) row.setAttribute("aria-current", "step");
    return row;
  };
  const show = () => {
    const first = Math.max(0, current - NEAR);
    rows.replaceChildren(...trace.steps.slice(first, current + NEAR + 1).map((step, index) => stepRow(step, first + index)));
    const names = [...trace.invocations.map((name) => `Variables of ${name}`), "Memory"];
    values.replaceChildren(...valuesAfter(trace, current).flatMap((of, index) => [
      element("dt", {}, names[index]), element("dd", {}, valueWords(of)),
    ]));
    position.textContent = `Step ${current + 1} of ${trace.steps.length}${trace.cut_off ? " (later ones are missing)" : ""}`;
    buttons.forEach(([button, to]) => { button.disabled = current === bounded(to()); });
  };
  const bounded = (step) => Math.min(Math.max(step, 0), trace.steps.length - 1);
  const move = (to) => {
    current = bounded(to);
    const { line } = trace.steps[current];
    if (line !== null) jump(line);
    show();
  };
  const buttons = [
    ["First", () => 0], ["Back", () => current - 1], ["Next", () => current + 1], ["Last", () => trace.steps.length - 1],
  ].map(([name, to]) => {
    const button = element("button", { type: "button" }, name);
    button.addEventListener("click", () => move(to()));
    return [button, to];
  });
  show();
  return element("div", { className: "stepper" },
    element("div", { className: "controls" }, ...buttons.map(([button]) => button), position),
    element("div", { className: "wide", tabIndex: 0, role: "group", ariaLabel: "Steps of both invocations" },
      element("table", {}, element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "step"), ...columns)), rows)),
    values);
}
