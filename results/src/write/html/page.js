"use strict";
const at = id => document.getElementById(id);
const rows = Array.from(document.querySelectorAll("details.test"), row => ({
  row,
  words: (row.querySelector(".id").textContent + " " + row.querySelector("p").textContent).toLowerCase(),
  verdicts: row.dataset.v.split(" "),
  weak: row.dataset.w.split(" "),
  differs: row.dataset.d === "1",
  share: Number(row.dataset.s || 0),
}));
const worst = ["violates", "inconclusive", "undefined", "conforms", "skipped", "none"];
const ranks = {
  "": () => 0,
  differs: ({ differs }) => differs ? 0 : 1,
  worst: ({ verdicts }) => Math.min(...verdicts.map(verdict => worst.indexOf(verdict))),
  weak: ({ share }) => -share,
};
const last = rows.length && rows[rows.length - 1].row.nextSibling;
function order() {
  const rank = ranks[at("order").value];
  const sorted = rows.map((entry, index) => [rank(entry), index, entry.row]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  for (const [, , row] of sorted) row.parentNode.insertBefore(row, last);
}
function filter() {
  const find = at("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdict = at("verdict").value, device = at("device").value;
  const weak = at("weak").checked, differs = at("differs").checked;
  let shown = 0;
  for (const { row, words, verdicts, weak: seen, differs: differ } of rows) {
    const devices = device === "" ? verdicts.map((_, index) => index) : [Number(device)];
    const fits = find.every(word => words.includes(word)) && (!differs || differ) &&
      devices.some(index => (verdict === "" || verdicts[index] === verdict) && (!weak || seen[index] === "1"));
    if (row.hidden === fits) row.hidden = !fits;
    if (fits) shown++;
  }
  at("shown").textContent = shown + " of " + rows.length + " tests";
}
// An address ends in the place of a test, or in a filter, and may open what it shows first:
// `#find=mp&verdict=violates&device=0&weak&differs&open`.
function follow() {
  const hash = location.hash.slice(1), target = hash && at(hash);
  if (target && target.tagName === "DETAILS") {
    target.hidden = false;
    target.open = true;
    target.scrollIntoView();
  } else if (!target && hash) {
    const asked = new URLSearchParams(hash);
    for (const name of ["find", "verdict", "device"]) at(name).value = asked.get(name) || "";
    for (const name of ["weak", "differs"]) at(name).checked = asked.has(name);
    filter();
    at("tests").scrollIntoView();
    const first = asked.has("open") && rows.find(({ row }) => !row.hidden);
    if (first) first.row.open = true;
  }
}
at("filter").addEventListener("input", filter);
at("filter").addEventListener("submit", event => event.preventDefault());
at("order").addEventListener("change", order);
addEventListener("hashchange", follow);
filter();
follow();
// What scrolls can be reached by keys.
function focusScrollable() {
  for (const box of document.querySelectorAll("pre, .wide, table.groups, table.sheet, .broken")) {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
  }
}
focusScrollable();
addEventListener("resize", focusScrollable);
document.addEventListener("toggle", focusScrollable, true);
