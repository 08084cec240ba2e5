// The page: an editor, the answers of a model to it, and the simulated GPU.

import { Stopped, ask, stop } from "./engine.js";
import { fill } from "./gallery.js";
import { decode, encode } from "./link.js";
import { byId, condition, element, showHistogram, showMistakes, showOutcomes } from "./view.js";

const FIRST = "mp/MP+rel-acq";
const MOST_TEXT = 1024 * 1024;
// Each run repeats the shorter one and goes on, so that the histogram grows and a seed decides all of it.
const INSTANCES = [1_000, 4_000, 16_000, 64_000, 256_000];

const text = byId("text");
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
let picture = "";

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

const question = () => ({ text: text.value, model: model.value === "" ? null : model.value });

function number() {
  const count = text.value.split("\n").length;
  byId("numbers").textContent = Array.from({ length: count }, (_, index) => index + 1).join("\n");
  byId("numbers").scrollTop = text.scrollTop;
}

async function check() {
  clearTimeout(timer);
  const mine = ++checks;
  runs += 1;
  if (text.value.length > MOST_TEXT) {
    say(`The text is larger than ${MOST_TEXT / 1024} KiB: shorten it.`);
    return;
  }
  say("Checking…");
  const answer = await request({ request: "check", ...question() });
  if (answer === undefined || mine !== checks) return;
  if (answer.answer === "check") {
    showMistakes([], answer.warnings);
    showOutcomes(answer.line, (state) => explain(condition(state)));
    say("");
  } else {
    showMistakes(answer.mistakes, []);
    say("The test has a mistake; the outcomes are those of the last valid text.");
  }
  await save();
}

async function explain(outcome) {
  byId("headline").textContent = "Explaining…";
  const answer = await request({ request: "explain", question: question(), outcome });
  if (answer?.answer !== "explain") {
    byId("headline").textContent = answer ? answer.mistakes[0].error : "No explanation.";
    return;
  }
  byId("headline").textContent = answer.headline;
  byId("explanation").textContent = answer.text;
  byId("steps").hidden = false;
  byId("steps").open = true;
  URL.revokeObjectURL(picture);
  picture = URL.createObjectURL(new Blob([answer.picture], { type: "image/svg+xml" }));
  Object.assign(byId("picture"), { src: picture, alt: `Execution graph: ${answer.headline}. The steps are below.`, hidden: false });
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
    showHistogram(answer.line);
    command = answer.line.replay;
    if (answer.line.verdict === "skipped" || answer.line.verdict === "violates") break;
  }
  run.disabled = false;
}

async function save() {
  const state = { text: text.value, model: model.value, fault: fault.value, seed: Number(seed.value) || 0 };
  const fragment = await encode(state);
  history.replaceState(null, "", fragment ?? location.pathname + location.search);
  return fragment;
}

function open(value) {
  text.value = value;
  number();
  check();
}

// Applies the state of the address; returns false if it has none.
async function load() {
  note("");
  try {
    const state = await decode(location.hash);
    if (state === null) return text.value !== "";
    for (const [select, value] of [[model, state.model], [fault, state.fault]]) {
      const known = Array.from(select.options).some((option) => option.value === value);
      if (known) select.value = value;
      else if (value) note(`The link names \`${value}\`, which this version does not have; the default is used.`);
    }
    seed.value = Number(state.seed) || 0;
    showRule();
    open(state.text);
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
  text.addEventListener("input", () => {
    number();
    clearTimeout(timer);
    timer = setTimeout(check, 400);
  });
  text.addEventListener("scroll", () => { byId("numbers").scrollTop = text.scrollTop; });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) check();
  });
  model.addEventListener("change", check);
  fault.addEventListener("change", () => { showRule(); save(); });
  seed.addEventListener("change", save);
  byId("check").addEventListener("click", check);
  byId("explain").addEventListener("click", () => explain(null));
  byId("simulate").addEventListener("click", simulate);
  byId("stop").addEventListener("click", stop);
  byId("open-gallery").addEventListener("click", () => byId("gallery").showModal());
  byId("copy-link").addEventListener("click", async () => {
    const fragment = await save();
    if (fragment === null) say("The text is too large for a link.");
    else copy(location.href, "Link");
  });
  byId("copy-command").addEventListener("click", () => {
    copy(command || `vk-litmus check test.litmus${model.value ? ` --model ${model.value}` : ""}`, "Command (save the text as test.litmus)");
  });
  addEventListener("hashchange", load);
}

async function begin() {
  if (typeof WebAssembly !== "object" || typeof CompressionStream !== "function") {
    say("This browser lacks WebAssembly or CompressionStream: use a newer one.");
    return;
  }
  const catalogue = await request({ request: "catalogue" });
  if (catalogue === undefined) return;
  model.append(element("option", { value: "" }, "default of the language"),
    ...catalogue.models.map(({ name, description }) => element("option", { value: name, title: description }, name)));
  faults = new Map(catalogue.faults.map(({ name, description }) => [name, description]));
  fault.append(element("option", { value: "" }, "none"),
    ...catalogue.faults.map(({ name }) => element("option", { value: name }, name)));
  showRule();
  listen();
  say("");
  if (!(await load())) {
    const first = await request({ request: "test", id: FIRST });
    if (first?.answer === "test" && text.value === "") open(first.text);
  }
  const { patterns } = await siteFile("patterns.json", { patterns: [] });
  fill(byId("gallery"), catalogue.tests, patterns, open);
  const site = await siteFile("site.json", {});
  byId("book").hidden = !site.book;
  byId("devices").hidden = !site.devices;
}

begin();
