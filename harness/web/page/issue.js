// The answer of the page as the text of an issue, in Markdown.

// Returns a fence that the text cannot end.
function fenced(language, text) {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`{3,}/g), ([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.trimEnd()}\n${fence}`;
}

const row = (cells) => `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;

// Returns the text about a test: the answer of `check`, and the explanation if there is one.
export function testIssue(text, line, verdict, explanation, command, link) {
  const outcomes = line.outcomes.filter(({ filtered }) => !filtered);
  const names = outcomes.length > 0 ? Object.keys(outcomes[0].state) : [];
  const rows = outcomes.map(({ state, allowed, weak }) => row([
    ...names.map((name) => state[name]), allowed ? "allowed" : "forbidden", weak ? "weak" : "sequential",
  ]));
  const table = [row([...names, "under the model", "kind"]), row([...names, "", ""].map(() => "---")), ...rows].join("\n");
  const parts = [`${line.name} under the model \`${line.model}\``, fenced("", text), verdict, table];
  if (explanation !== null) parts.push(fenced("", explanation));
  parts.push(`Command: \`${command}\``);
  if (link !== null) parts.push(`[Open in the playground](${link})`);
  return `${parts.join("\n\n")}\n`;
}

// Returns the text about a shader: the findings with their places.
export function shaderIssue(text, language, { lines }, command, link) {
  const findings = lines.flatMap((line) => line.findings.map((finding) => {
    const places = finding.at.map(({ line: number, access, invocation }) => `  - line ${number ?? "?"}: ${access ?? "reached"}${invocation ? ` by invocation ${invocation}` : ""}`);
    return [`- ${finding.kind.replaceAll("-", " ")}: ${finding.message}`, ...places].join("\n");
  }));
  const parts = [`${findings.length === 0 ? "No finding" : "Findings"} in a shader`, fenced(language, text), ...findings, `Command: \`${command}\``];
  if (link !== null) parts.push(`[Open in the playground](${link})`);
  return `${parts.join("\n\n")}\n`;
}
