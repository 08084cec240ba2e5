// Two models side by side for one test.

import { byId, element } from "./view.js";

const key = (state) => JSON.stringify(Object.entries(state).sort(([one], [other]) => (one < other ? -1 : 1)));

// Returns the outcomes of both answers, each with the word of either model and whether they differ.
export function joined(one, other) {
  const rows = new Map();
  for (const [side, line] of [one, other].entries()) {
    for (const { state, allowed, filtered } of line.outcomes) {
      if (filtered) continue;
      const row = rows.get(key(state)) ?? { state, words: ["no outcome", "no outcome"] };
      row.words[side] = allowed ? "allowed" : "forbidden";
      rows.set(key(state), row);
    }
  }
  return [...rows.values()].map((row) => ({ ...row, differ: row.words[0] !== row.words[1] }));
}

// Shows the comparison of two answers of `check`.
export function showComparison(one, other) {
  const rows = joined(one, other);
  const names = rows.length > 0 ? Object.keys(rows[0].state) : [];
  byId("comparison").hidden = rows.length === 0;
  byId("comparison-names").replaceChildren(
    ...[...names, one.model, other.model, "same"].map((name) => element("th", { scope: "col" }, name)));
  byId("comparison-rows").replaceChildren(...rows.map(({ state, words, differ }) => element("tr", { className: differ ? "chosen" : "" },
    ...names.map((name) => element("td", { className: "number" }, String(state[name] ?? ""))),
    ...words.map((word) => element("td", { className: word === "no outcome" ? "" : word }, word)),
    element("td", { className: differ ? "weak" : "" }, differ ? "differs" : "same"))));
  const differ = rows.filter((row) => row.differ).length;
  const races = [one, other].map((line) => `${line.model}: ${{ racy: "racy", free: "no data race", unknown: "races not decided" }[line.race] ?? "defines no races"}`);
  byId("compared").textContent = `${differ === 0 ? "No outcome differs" : `${differ} of ${rows.length} outcomes differ`}. ${races.join("; ")}.`;
}
