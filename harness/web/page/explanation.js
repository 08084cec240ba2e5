// The explanation of an outcome: its picture, the executions with the outcome one by one, and pictures as files.

import { byId, saveAs } from "./view.js";

// The explanation first, then executions: `{ title, text, picture }`.
let shown = [];
let at = 0;
let address = "";

function show(next) {
  at = Math.min(shown.length - 1, Math.max(0, next));
  const { title, text, picture } = shown[at];
  byId("explanation").textContent = text;
  byId("steps").hidden = false;
  byId("steps").open = true;
  URL.revokeObjectURL(address);
  address = URL.createObjectURL(new Blob([picture], { type: "image/svg+xml" }));
  Object.assign(byId("picture"), { src: address, alt: `Execution graph: ${title}. The steps are below.`, hidden: false });
  byId("execution").textContent = title;
  byId("execution-back").disabled = at === 0;
  byId("execution-next").disabled = at === shown.length - 1;
}

// Shows an explanation, and executions with its outcome.
export function showExplanation({ headline, text, picture }, executions, complete) {
  shown = [{ title: "Explanation", text, picture }, ...executions];
  const { length } = executions;
  byId("headline").textContent = length < 2 ? headline : `${headline} by ${complete ? "" : "at least "}${length} executions`;
  byId("pictures").hidden = false;
  byId("execution-back").hidden = byId("execution-next").hidden = length === 0;
  show(0);
}

// Returns the explanation as text, or null without one.
export function explanationText() {
  return shown.length > 0 ? shown[0].text : null;
}

// Draws the picture on a white canvas of twice its size.
async function savePng() {
  const image = byId("picture");
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.naturalWidth, 2 * image.naturalHeight];
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  saveAs(await new Promise((done) => { canvas.toBlob(done, "image/png"); }), "execution.png");
}

export function listenToPictures() {
  byId("execution-back").addEventListener("click", () => show(at - 1));
  byId("execution-next").addEventListener("click", () => show(at + 1));
  byId("save-svg").addEventListener("click", () => saveAs(new Blob([shown[at].picture], { type: "image/svg+xml" }), "execution.svg"));
  byId("save-png").addEventListener("click", savePng);
}
