// Findings of a shader: on their lines, with both invocations, and their fixes as diffs.

import { stepThrough } from "./steps.js";
import { byId, element } from "./view.js";

// Returns the lines of a diff as [sign, text] pairs, if the new text only adds lines to the old one.
export function insertedLines(before, after) {
  const [old, made] = [before.split("\n"), after.split("\n")];
  const lines = [];
  let at = 0;
  for (const line of made) {
    if (at < old.length && old[at] === line) {
      lines.push([" ", line]);
      at += 1;
    } else {
      lines.push(["+", line]);
    }
  }
  return lines;
}

// Leaves two lines of context around each addition.
function diff(before, after) {
  const lines = insertedLines(before, after);
  const near = (index) => lines.slice(Math.max(0, index - 2), index + 3).some(([sign]) => sign === "+");
  const shown = element("pre", { className: "diff", tabIndex: 0, role: "group", ariaLabel: "Fix as a diff" });
  let skipped = false;
  lines.forEach(([sign, text], index) => {
    if (!near(index)) {
      skipped = true;
      return;
    }
    if (skipped) shown.append(element("span", { className: "skipped" }, "…\n"));
    skipped = false;
    shown.append(element(sign === "+" ? "ins" : "span", {}, `${sign} ${text}\n`));
  });
  return shown;
}

const VERDICTS = {
  racy: ["bad", "The shader has undefined behaviour."],
  clean: ["good", "No finding."],
  undecided: ["", "Not decided."],
  refused: ["", "Not analysed."],
  "needs-inputs": ["", "The answer depends on inputs that the page chose."],
};

function place(at, own, jump) {
  const who = at.invocation === null ? "" : ` by invocation ${at.invocation}`;
  const what = `${at.access ?? "reached"}${who}`;
  if (at.line === null || (at.file !== null && at.file !== own)) {
    return element("li", {}, `${at.file ?? own}${at.line === null ? "" : `:${at.line}`}: ${what}`);
  }
  const button = element("button", { type: "button" }, `line ${at.line}`);
  button.addEventListener("click", () => jump(at.line));
  return element("li", {}, button, `: ${what}`);
}

// Shows the answer; `jump` gets a line, `apply` the text of a chosen fix, and `traced` returns the answer with the steps of a
// finding. Returns the lines with findings.
export function showRaces({ lines, coverage, assumed, fixes }, text, jump, apply, traced) {
  const marked = new Set();
  const entries = lines.map((line, index) => {
    const [className, words] = VERDICTS[line.verdict];
    const part = element("section", { className: "entry-point" },
      element("h3", {}, line.entry === "" ? "Module" : `Entry point ${line.entry}`),
      element("p", { className }, `${words} ${coverage[index] ? `For ${coverage[index]}.` : ""}`));
    if (line.why) part.append(element("p", {}, line.why));
    for (const need of line.needs ?? []) part.append(element("p", {}, `Needs ${need.name}: ${need.value}`));
    const findings = line.findings.map((finding, index) => {
      for (const at of finding.at) {
        if (at.line !== null && (at.file === null || at.file === line.file)) marked.add(at.line);
      }
      const item = element("li", { className: "finding" },
        element("strong", {}, finding.kind.replaceAll("-", " ")), `: ${finding.message}`,
        element("ul", {}, ...finding.at.map((at) => place(at, line.file, jump))));
      const fix = fixes.find((one) => one.entry === line.entry && one.finding === index);
      if (fix) {
        const button = element("button", { type: "button", className: "apply" }, "Apply fix");
        button.addEventListener("click", () => apply(fix.text));
        item.append(element("p", {}, `${fix.title}. `, button), diff(text, fix.text));
      } else {
        if (finding.fix) item.append(element("p", {}, `Fix: ${finding.fix}`));
      }
      const step = element("button", { type: "button", className: "step" }, "Step through");
      step.addEventListener("click", async () => {
        const answer = await traced({ entry: line.entry, finding: index });
        const trace = answer?.lines?.find(({ entry }) => entry === line.entry)?.trace;
        if (answer) step.replaceWith(trace ? stepThrough(trace, text, jump) : "No schedule of the walk shows this finding.");
      });
      item.append(element("p", {}, step));
      return item;
    });
    if (findings.length > 0) part.append(element("ol", {}, ...findings));
    return part;
  });
  const values = Object.entries(assumed).map(([name, value]) => `${name} = ${value}`);
  if (values.length > 0) entries.push(element("p", {}, `Assumed overrides: ${values.join(", ")}.`));
  byId("races-found").replaceChildren(...entries);
  return marked;
}

// Returns the findings on their lines as problems of the editor, with their fixes.
export function findingProblems({ lines, fixes }, range, apply) {
  return lines.flatMap((line) => line.findings.flatMap((finding, index) => {
    const fix = fixes.find((one) => one.entry === line.entry && one.finding === index);
    const actions = fix ? [{ name: "Apply fix", run: () => apply(fix.text) }] : [];
    const own = finding.at.filter((at) => at.line !== null && (at.file === null || at.file === line.file));
    return own.map((at) => ({
      ...range(at.line), severity: "error", message: `${finding.kind.replaceAll("-", " ")}: ${finding.message}`, actions,
    }));
  }));
}

// Shaders to start from.
export const SHADERS = [
  ["reduction without its last barrier", `// All invocations read sum[0]; the last addition is not ordered before.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> scaled: array<u32>;
var<workgroup> sum: array<u32, 16>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) l: u32) {
    sum[l] = data[id.x];
    for (var s = 8u; s > 0u; s >>= 1u) {
        workgroupBarrier();
        if (l < s) { sum[l] += sum[l + s]; }
    }
    scaled[id.x] = sum[0];
}
`],
  ["neighbour in workgroup memory", `// Each invocation reads what its neighbour wrote.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3<u32>) {
    tile[i] = data[id.x];
    data[id.x] = tile[(i + 1u) % 64u];
}
`],
  ["mailbox between workgroups", `// WGSL has no release and acquire: the payload races.
struct Mailbox { flag: atomic<u32>, payload: u32 }
@group(0) @binding(0) var<storage, read_write> box: Mailbox;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) wg: vec3<u32>) {
    if (wg.x == 0u) {
        box.payload = 42u;
        storageBarrier();
        atomicStore(&box.flag, 1u);
    } else if (atomicLoad(&box.flag) == 1u) {
        storageBarrier();
        out[0] = box.payload;
    }
}
`],
  ["histogram with atomics (right)", `@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>, 16>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    atomicAdd(&bins[data[id.x] % 16u], 1u);
}
`],
];
