// The page: an editor, the answers of a model to it, races of shaders, and the simulated GPU.

import { showComparison } from "./compare.js";
import { fromMarkdown } from "./editor.js";
import { Stopped, ask, stop, useServer } from "./engine.js";
import { explanationText, listenToPictures, showExplanation } from "./explanation.js";
import { fill } from "./gallery.js";
import { shaderIssue, testIssue } from "./issue.js";
import { decode, encode } from "./link.js";
import { SHADERS, findingProblems, showRaces } from "./races.js";
import { archive } from "./tar.js";
import { startTour } from "./tour.js";
import { judge, openDevice, run as runKernel } from "./webgpu.js";
import { byId, condition, element, saveAs, showHistogram, showMistakes, showOutcomes } from "./view.js";

const FIRST = "mp/MP+rel-acq";
const MOST_TEXT = 1024 * 1024;
// Each run repeats the shorter one and goes on, so that the histogram grows and a seed decides all of it.
const INSTANCES = [1_000, 4_000, 16_000, 64_000, 256_000];

const text = byId("text");
const language = byId("language");
const grid = byId("grid");
const model = byId("model");
const fault = byId("fault");
const seed = byId("seed");
let faults = new Map();
let command = "";
// Counts checks and runs: an answer to an older one is dropped.
let checks = 0;
let runs = 0;
let busy = 0;
let timer = 0;
// The last answer about the text of the editor, for the text of an issue.
let answered = null;
// The outcome whose explanation is shown, as a condition, or null; links have it.
let explained = null;
const TITLES = {
  litmus: "Litmus test", cat: "Cat model", wgsl: "WGSL shader", glsl: "GLSL shader", hlsl: "HLSL shader", spirv: "SPIR-V text",
};
// The file of a shader in a command.
const FILES = { wgsl: "shader.wgsl", glsl: "shader.comp", hlsl: "shader.hlsl", spirv: "shader.spvasm" };
// The value of the menu of models for the text of the editor.
const OWN = "model.cat";

// What a link or a file did wrong; it stays until the next link.
const note = (words) => { byId("notice").textContent = words; };
const say = (words) => { byId("message").textContent = words; };

// Runs one request while the stop button works; returns undefined if it was stopped or failed.
async function request(asked) {
  busy += 1;
  byId("stop").disabled = false;
  try {
    return await ask(asked);
  } catch (error) {
    say(error instanceof Stopped ? "Stopped." : `${error.message}. Your text is still here; change it or try again.`);
    return undefined;
  } finally {
    busy -= 1;
    byId("stop").disabled = busy === 0;
  }
}

const isShader = () => language.value in FILES;
const question = () => ({
  text: text.textOf("litmus"),
  ...(model.value === OWN ? { cat: text.textOf("cat") } : { model: model.value === "" ? null : model.value }),
});
const documentOf = () => ({ language: language.value, text: text.value });

// The problems of a text as the editor and the list below it show them.
function showProblems(problems, lines = []) {
  text.setProblems(problems, lines);
  showMistakes(problems.map((problem) => ({ ...problem, ...text.placeOf(problem.from) })));
}

// Converts an answer with positions in lines; those of other texts go to the first line.
function problemsAt(mistakes, severity) {
  return mistakes.map(({ line, column, error, message }) => ({ ...text.rangeOf(line, column), severity, message: error ?? message, actions: [] }));
}

// Returns the problems that the engine finds in a test or a model.
async function textProblems() {
  const answer = await request({ request: "problems", ...documentOf() });
  return answer?.problems.map(({ corrections, ...problem }) => ({
    ...problem, actions: corrections.map(({ title, edits }) => ({ name: title, run: () => text.edit(edits) })),
  }));
}

async function check() {
  clearTimeout(timer);
  const mine = ++checks;
  runs += 1;
  byId("meaning").replaceChildren();
  if (text.value.length > MOST_TEXT) {
    say(`The text is larger than ${MOST_TEXT / 1024} KiB: shorten it.`);
    return;
  }
  say("Checking…");
  await (isShader() ? checkShader(mine) : checkTest(mine));
  if (mine === checks) await save();
}

async function checkTest(mine) {
  const own = await textProblems();
  if (own === undefined || mine !== checks) return;
  showProblems(own);
  const wrong = "The text has a mistake; the answer is that of the last valid text.";
  if (own.some(({ severity }) => severity === "error")) {
    say(wrong);
    return;
  }
  const answer = await request({ request: "check", ...question() });
  if (answer === undefined || mine !== checks) return;
  if (answer.answer === "check") {
    // Warnings of the text are among its problems.
    answered = answer;
    showOutcomes(answer.line, (state) => explain(condition(state)));
    say("");
  } else if (language.value === "cat") {
    const [{ line, error }] = answer.mistakes;
    say(`The litmus test, line ${line}: ${error}`);
  } else {
    showProblems([...own, ...problemsAt(answer.mistakes, "error")]);
    say(wrong);
  }
}

async function checkShader(mine) {
  const asked = { request: "races", ...documentOf(), grid: workgroups() };
  const answer = await request(asked);
  if (answer === undefined || mine !== checks) return;
  if (answer.answer === "races") {
    answered = answer;
    const traced = (trace) => request({ ...asked, trace });
    const lines = showRaces(answer, asked.text, (line) => text.moveCaret(line, 1), open, traced);
    text.setProblems(findingProblems(answer, (line) => text.rangeOf(line), open), lines);
    showMistakes([]);
    say("");
  } else {
    showProblems(problemsAt(answer.mistakes, "error"));
    say("The text has a mistake; the answer is that of the last valid text.");
  }
}

// What the editor asks while a text is edited; undefined for languages without such answers.
const engine = {
  async complete(offset) {
    if (isShader()) return undefined;
    const answer = await ask({ request: "complete", document: documentOf(), offset }).catch(() => undefined);
    return answer?.answer === "completions" ? answer : undefined;
  },
  async meaning(offset) {
    if (isShader() || text.value.length > MOST_TEXT) return undefined;
    const answer = await ask({ request: "meaning", document: documentOf(), offset }).catch(() => undefined);
    return answer?.answer === "meaning" ? answer : undefined;
  },
  async vary(offset) {
    if (language.value !== "litmus") return [];
    const answer = await ask({ request: "vary", text: text.value, offset }).catch(() => undefined);
    if (answer?.answer === "variations" && answer.variations.length > 0) return answer.variations;
    say("Move the cursor to an instruction of a valid test in the Vulkan dialect.");
    return [];
  },
};

async function explainWord() {
  const found = await engine.meaning(text.caret);
  byId("meaning").replaceChildren(...(found?.markdown ? fromMarkdown(found.markdown).map((part) => element("span", {}, ...part.childNodes, " ")) : ["No meaning is known for the word at the cursor."]));
}

// Returns the number of workgroups, or null if the field is empty or wrong.
function workgroups() {
  const counts = grid.value.split(",").map(Number);
  if (grid.value.trim() === "" || counts.length > 3 || !counts.every((count) => Number.isInteger(count) && count > 0)) return null;
  return [...counts, 1, 1].slice(0, 3);
}

// Shows the parts of the page that a language has.
function showLanguage() {
  const of = language.value;
  byId("editor-title").textContent = TITLES[of];
  text.show(of, `Text of the ${TITLES[of][0].toLowerCase()}${TITLES[of].slice(1)}`.replace(/^(Text of the )([a-z])(?=[A-Z])/, (_, start, letter) => start + letter.toUpperCase()));
  const shown = { "for-litmus": !isShader(), "for-shader": isShader(), "for-wgsl": of === "wgsl", "for-words": !isShader(), "for-variations": of === "litmus" };
  for (const part of document.querySelectorAll(".for-litmus, .for-shader, .for-wgsl, .for-words, .for-variations")) {
    part.hidden = !Object.entries(shown).some(([name, is]) => is && part.classList.contains(name)) ||
      (part.id === "machine" && devices === 0);
  }
}

async function compare() {
  byId("compared").textContent = "Comparing…";
  const [one, other] = [await request({ request: "check", ...question() }),
    await request({ request: "check", ...question(), model: byId("other-model").value })];
  if (one?.answer === "check" && other?.answer === "check") showComparison(one.line, other.line);
  else {
    const wrong = [one, other].find((answer) => answer?.answer === "rejected");
    byId("compared").textContent = wrong ? wrong.mistakes[0].error : "No comparison.";
  }
}

async function runOnDevice() {
  const run = byId("run");
  run.disabled = true;
  byId("device-ran").textContent = "Running…";
  const answer = await request({
    request: "run", question: question(), device: byId("device").value,
    instances: Math.max(1, Math.trunc(Number(byId("instances").value) || 1)), seed: Number(seed.value) || 0,
  });
  if (answer?.answer === "run") showHistogram(answer.line, "device-histogram", "device-ran");
  else byId("device-ran").textContent = answer ? answer.mistakes[0].error : "No answer.";
  run.disabled = false;
}

// The workgroups of a dispatch on the visitor's GPU: a power of two, so that odd factors permute its instances.
const WORKGROUPS = 64;
let gpu = null;
let saved = null;

async function runOnGpu() {
  const mine = ++runs;
  const [button, ran] = [byId("run-gpu"), byId("gpu-ran")];
  button.disabled = true;
  byId("gpu-mapping").replaceChildren();
  const words = (sentence, className) => { ran.textContent = sentence; ran.className = className ?? ""; };
  try {
    words("Translating…");
    const [kernel, check] = [await request({ request: "kernel", ...question() }), await request({ request: "check", ...question() })];
    const wrong = [kernel, check].find((answer) => answer?.answer === "rejected");
    if (wrong || !kernel || !check) {
      words(wrong ? wrong.mistakes[0].error : "No answer.");
      return;
    }
    byId("gpu-mapping").replaceChildren(...kernel.mapping.map((sentence) => element("li", {}, `Mapping: ${sentence}.`)));
    gpu ??= await openDevice();
    gpu.device.lost.then(({ message }) => { gpu = null; words(`The GPU was lost: ${message}`); });
    const dispatches = Math.min(100_000, Math.max(1, Math.trunc(Number(byId("dispatches").value) || 1)));
    const [asked, chosen, began] = [question(), Number(seed.value) || 0, new Date()];
    await runKernel(gpu.device, kernel, WORKGROUPS, dispatches, chosen, (counts, instances, done) => {
      const { rows: outcomes, verdict, notExecuted, isViolation } = judge(kernel, counts, check.line);
      showHistogram({ outcomes, instances, verdict: "" }, "gpu-histogram", "gpu-ran");
      words(`${instances.toLocaleString("en")} instances on ${gpu.name}: ${verdict}`, isViolation ? "bad" : "");
      saved = {
        question: asked,
        run: {
          adapter: gpu.name, browser: navigator.userAgent, system: navigator.platform, processors: navigator.hardwareConcurrency ?? 0,
          started: began.toISOString(), milliseconds: Date.now() - began.getTime(), seed: chosen, dispatches: done, kernel: kernel.source,
          not_executed: notExecuted, outcomes: outcomes.map(({ state, count }) => ({ state, count })),
        },
      };
      return mine === runs;
    });
    byId("save-gpu").disabled = saved === null;
  } catch (error) {
    words(error.message);
  } finally {
    button.disabled = false;
  }
}

async function saveResults() {
  const answer = await request({ request: "record", ...saved });
  if (answer?.answer !== "record") {
    say(answer ? answer.mistakes[0].error : "No results.");
    return;
  }
  saveAs(archive("vk-litmus-webgpu", answer.files, Date.now() / 1000), "vk-litmus-webgpu.tar");
  say("Saved. Unpack the archive, and run `vk-litmus report vk-litmus-webgpu`.");
}

let devices = 0;

// Lists the devices, which only a page of `vk-litmus serve` has.
async function listDevices() {
  const answer = await request({ request: "devices" });
  if (answer?.answer !== "devices") return;
  devices = answer.devices.length;
  byId("device").append(...answer.devices.map(({ name, description }) => element("option", { value: name }, description)));
  showLanguage();
}

async function explain(outcome) {
  byId("headline").textContent = "Explaining…";
  const answer = await request({ request: "explain", question: question(), outcome });
  if (answer?.answer !== "explain") {
    byId("headline").textContent = answer ? answer.mistakes[0].error : "No explanation.";
    return;
  }
  const allowed = await request({ request: "executions", question: question(), outcome });
  const { executions, complete } = allowed?.answer === "executions" ? allowed : { executions: [], complete: true };
  showExplanation(answer, executions, complete);
  explained = outcome;
  await save();
}

async function simulate() {
  const mine = ++runs;
  const run = byId("simulate");
  run.disabled = true;
  byId("simulated").textContent = "Running…";
  for (const instances of INSTANCES) {
    const asked = { request: "simulate", question: question(), fault: fault.value || null, instances, seed: Number(seed.value) || 0 };
    const answer = await request(asked);
    if (answer === undefined || mine !== runs) break;
    if (answer.answer !== "simulate") {
      byId("simulated").textContent = answer.mistakes[0].error;
      break;
    }
    showHistogram(answer.line, "histogram", "simulated");
    command = answer.line.replay;
    if (answer.line.verdict === "skipped" || answer.line.verdict === "violates") break;
  }
  run.disabled = false;
}

async function save() {
  const state = {
    text: isShader() ? text.value : text.textOf("litmus"), model: model.value, fault: fault.value, seed: Number(seed.value) || 0,
  };
  // Links to tests stay as they were before shaders and models came.
  if (language.value !== "litmus") Object.assign(state, { language: language.value, grid: grid.value });
  if (explained !== null && !isShader()) state.outcome = explained;
  if (model.value === OWN) state.cat = text.textOf("cat");
  const fragment = await encode(state, isEmbedded());
  history.replaceState(null, "", fragment ?? location.pathname + location.search);
  return fragment;
}

// True for a page inside documentation or slides: a link that starts with `#embed`.
const isEmbedded = () => location.hash.startsWith("#embed");

// Opens a text in the language of the page.
async function open(value) {
  text.value = value;
  explained = null;
  await check();
}

// Adds the model of the editor to the menu of models, and chooses it.
function chooseOwnModel() {
  if (!Array.from(model.options).some(({ value }) => value === OWN)) model.append(element("option", { value: OWN }, "your cat model"));
  model.value = OWN;
}

// Shows the text of the chosen language. A model starts as the chosen shipped one.
async function changeLanguage() {
  showLanguage();
  if (language.value === "cat") {
    if (text.value === "") {
      const answer = await request({ request: "model", name: model.value || "vulkan" });
      if (answer?.answer === "model" && language.value === "cat" && text.value === "") text.value = answer.text;
    }
    chooseOwnModel();
  }
  if (text.value !== "") await check();
  else if (language.value === "litmus") await openFirstTest();
  else {
    showProblems([]);
    say(`Type or paste ${language.value === "spirv" ? "a module of SPIR-V as text" : "a shader, or choose an example"}.`);
  }
}

async function openFirstTest() {
  const first = await request({ request: "test", id: FIRST });
  if (first?.answer === "test" && text.textOf("litmus") === "") openTest(first.text);
}

function openTest(value) {
  language.value = "litmus";
  showLanguage();
  open(value);
}

// Applies the state of the address; returns false if it has none.
async function load() {
  note("");
  document.body.classList.toggle("embedded", isEmbedded());
  byId("whole").hidden = !isEmbedded();
  try {
    const state = await decode(location.hash);
    if (state === null) return text.value !== "";
    if (typeof state.cat === "string") {
      language.value = "cat";
      showLanguage();
      text.value = state.cat;
      chooseOwnModel();
    }
    for (const [select, value] of [[model, state.model], [fault, state.fault]]) {
      const known = Array.from(select.options).some((option) => option.value === value);
      if (known) select.value = value;
      else if (value) note(`The link names \`${value}\`, which this version does not have; the default is used.`);
    }
    seed.value = Number(state.seed) || 0;
    const spoken = state.language ?? "litmus";
    // The text of a link to a model is that of its test.
    const own = spoken === "cat" && typeof state.cat === "string";
    language.value = spoken in TITLES && !own ? spoken : "litmus";
    if (!(spoken in TITLES)) note(`The link is about the language \`${spoken}\`, which this version does not have.`);
    grid.value = typeof state.grid === "string" ? state.grid : "";
    showLanguage();
    showRule();
    if (own) {
      text.value = state.text;
      language.value = "cat";
      await changeLanguage();
    } else {
      await open(state.text);
    }
    if (typeof state.outcome === "string" && !isShader()) await explain(state.outcome);
    return true;
  } catch (error) {
    note(`${error.message[0].toUpperCase()}${error.message.slice(1)}.`);
    return text.value !== "";
  }
}

function showRule() {
  byId("fault-rule").textContent = faults.get(fault.value) ?? "A machine without faults shows only outcomes that the model allows.";
}

async function copy(words, what) {
  try {
    await navigator.clipboard.writeText(words);
    say(`${what} copied.`);
  } catch {
    say(`${what}: ${words}`);
  }
}

// Returns the command that gives the answer, and the file of the text that it names.
function commandOf() {
  if (isShader()) {
    const file = FILES[language.value];
    return [`vk-litmus race ${file}${workgroups() === null ? "" : ` --grid ${workgroups().join(",")}`}`, file];
  }
  return [command || `vk-litmus check test.litmus${model.value ? ` --model ${model.value}` : ""}`, "test.litmus"];
}

async function copyIssue() {
  const fragment = await save();
  const [words] = commandOf();
  // Links to a page of `serve` work only on its machine.
  const link = fragment === null || ["127.0.0.1", "localhost"].includes(location.hostname) ? null : location.href;
  if (answered?.answer === "check" && !isShader()) {
    const verdict = byId("verdict").textContent.trim();
    await copy(testIssue(text.textOf("litmus"), answered.line, verdict, explanationText(), words, link), "Issue text");
  } else if (answered?.answer === "races" && isShader()) {
    await copy(shaderIssue(text.value, language.value, answered, words, link), "Issue text");
  } else {
    say("There is no answer yet: check the text first.");
  }
}

// Returns a file of the site as JSON, or the default if the site lacks it.
async function siteFile(name, missing) {
  try {
    const answer = await fetch(name);
    return answer.ok ? await answer.json() : missing;
  } catch {
    return missing;
  }
}

function listen() {
  text.engine = engine;
  text.addEventListener("input", () => {
    clearTimeout(timer);
    explained = null;
    // The answer on its way is that of an older text.
    checks += 1;
    say("Checking…");
    timer = setTimeout(check, 400);
  });
  text.addEventListener("check", check);
  text.addEventListener("meaning", explainWord);
  byId("vary").addEventListener("click", () => text.vary());
  byId("explain-word").addEventListener("click", explainWord);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    text.focus();
  });
  model.addEventListener("change", check);
  language.addEventListener("change", changeLanguage);
  grid.addEventListener("change", check);
  byId("examples").addEventListener("change", ({ target }) => {
    if (target.value !== "") open(SHADERS[Number(target.value)][1]);
    target.value = "";
  });
  byId("compare").addEventListener("click", compare);
  byId("run").addEventListener("click", runOnDevice);
  fault.addEventListener("change", () => { showRule(); save(); });
  seed.addEventListener("change", save);
  byId("check").addEventListener("click", check);
  byId("explain").addEventListener("click", () => explain(null));
  byId("simulate").addEventListener("click", simulate);
  byId("stop").addEventListener("click", () => { runs += 1; stop(); });
  byId("run-gpu").addEventListener("click", runOnGpu);
  byId("save-gpu").addEventListener("click", saveResults);
  byId("open-gallery").addEventListener("click", () => byId("gallery").showModal());
  byId("copy-link").addEventListener("click", async () => {
    const fragment = await save();
    if (fragment === null) say("The text is too large for a link.");
    else copy(location.href, "Link");
  });
  byId("whole").addEventListener("click", ({ target }) => { target.href = location.href.replace("#embed&", "#").replace("#embed", ""); });
  byId("copy-command").addEventListener("click", () => {
    const [words, file] = commandOf();
    copy(words, `Command (save the text as ${file})`);
  });
  byId("copy-issue").addEventListener("click", copyIssue);
  listenToPictures();
  addEventListener("hashchange", load);
}

async function begin() {
  const site = await siteFile("site.json", {});
  // A server needs no module, and has the compilers of its machine.
  if (site.server) useServer();
  for (const option of site.server ? language.querySelectorAll("[hidden]") : []) option.hidden = option.disabled = false;
  if (typeof CompressionStream !== "function" || (!site.server && typeof WebAssembly !== "object")) {
    say("This browser lacks WebAssembly or CompressionStream: use a newer one, or `vk-litmus serve` on your machine.");
    return;
  }
  const catalogue = await request({ request: "catalogue" });
  if (catalogue === undefined) return;
  model.append(element("option", { value: "" }, "default of the language"),
    ...catalogue.models.map(({ name, description }) => element("option", { value: name, title: description }, name)));
  byId("other-model").append(...catalogue.models.map(({ name, description }) => element("option", { value: name, title: description }, name)));
  byId("other-model").value = "sc";
  byId("examples").append(...SHADERS.map(([title], index) => element("option", { value: String(index) }, title)));
  faults = new Map(catalogue.faults.map(({ name, description }) => [name, description]));
  fault.append(element("option", { value: "" }, "none"),
    ...catalogue.faults.map(({ name }) => element("option", { value: name }, name)));
  showRule();
  listen();
  startTour(openTest);
  showLanguage();
  say("");
  if (!(await load())) {
    language.value = "wgsl";
    showLanguage();
    await open(SHADERS[0][1]);
  }
  const { patterns } = await siteFile("patterns.json", { patterns: [] });
  fill(byId("gallery"), catalogue, patterns, openTest);
  if (site.server) await listDevices();
  byId("book").hidden = !site.book;
  byId("devices").hidden = !site.devices;
}

begin();
