"use strict";
const at = id => document.getElementById(id);
const body = document.querySelector(".map tbody");
const rows = Array.from(body.rows, row => ({
  row,
  words: (row.cells[0].textContent + " " + row.dataset.n + " " + Array.from(row.cells, cell => cell.title).join(" ")).toLowerCase(),
  differs: row.dataset.d === "1",
}));
function filter() {
  const find = at("find").value.toLowerCase().split(/\s+/).filter(Boolean), differs = at("differs").checked;
  let shown = 0;
  for (const { row, words, differs: differ } of rows) {
    row.hidden = !(find.every(word => words.includes(word)) && (!differs || differ));
    if (!row.hidden) shown++;
  }
  at("shown").textContent = shown + " of " + rows.length + " tests";
}
function follow() {
  const hash = location.hash.slice(1);
  if (!hash || at(hash)) return;
  const asked = new URLSearchParams(hash);
  at("find").value = asked.get("find") || "";
  at("differs").checked = asked.has("differs");
  filter();
  at("tests").scrollIntoView();
}
let turned = -1;
document.querySelectorAll(".map thead button").forEach((button, column) => button.addEventListener("click", () => {
  const sign = turned === column ? -1 : 1;
  turned = turned === column ? -1 : column;
  const key = ({ row }) => Number(row.cells[column].dataset.s);
  for (const { row } of rows.slice().sort((a, b) => sign * (key(a) - key(b)))) body.append(row);
}));
at("filter").addEventListener("input", filter);
at("filter").addEventListener("submit", event => event.preventDefault());
addEventListener("hashchange", follow);
filter();
follow();
