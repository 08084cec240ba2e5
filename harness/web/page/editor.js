// The editor: CodeMirror in a shadow root, in which its style sheets are constructed and the page's policy allows them.

import {
  Compartment, Decoration, EditorState, EditorView, GutterMarker, RangeSet, StateEffect, StateField, autocompletion,
  completeAnyWord, completionKeymap, defaultKeymap, gutterLineClass, history, historyKeymap,
  hoverTooltip, keymap, lineNumbers, lintKeymap, setDiagnostics, startCompletion,
} from "./codemirror.js";
import { highlighting } from "./highlight.js";
import { element } from "./view.js";

const setMarked = StateEffect.define();
const marker = new (class extends GutterMarker { elementClass = "finding"; })();

// The lines with findings; they move with edits.
const marked = StateField.define({
  create: () => RangeSet.empty,
  update(lines, transaction) {
    let next = lines.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (!effect.is(setMarked)) continue;
      const { doc } = transaction.state;
      const starts = effect.value.filter((line) => line >= 1 && line <= doc.lines).map((line) => doc.line(line).from);
      next = RangeSet.of(starts.sort((one, other) => one - other).map((from) => marker.range(from)));
    }
    return next;
  },
  provide: (field) => [
    gutterLineClass.from(field),
    EditorView.decorations.compute([field], (state) => {
      const lines = [];
      state.field(field).between(0, state.doc.length, (from) => {
        lines.push(Decoration.line({ class: "finding" }).range(state.doc.lineAt(from).from));
      });
      return Decoration.set(lines, true);
    }),
  ],
});

// The page's colours; custom properties pass into the shadow root.
const theme = EditorView.theme({
  "&": { color: "inherit", fontSize: "13px", maxHeight: "70vh" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)", minHeight: "310px" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--muted)", border: "0" },
  ".cm-gutterElement.finding": { color: "var(--bad)", fontWeight: "bold" },
  ".cm-line.finding": { boxShadow: "inset 2px 0 var(--bad)" },
  ".cm-tooltip": { backgroundColor: "var(--back)", color: "var(--text)", border: "1px solid var(--line)", maxWidth: "min(32rem, 90vw)" },
  ".cm-tooltip.meaning": { padding: "0 .6rem", font: "14px/1.4 system-ui, sans-serif" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { maxHeight: "50vh" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--back)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > completion-section": { color: "var(--muted)", opacity: "1" },
  ".cm-completionDetail": { color: "inherit" },
  // The default underlines are images from data, which the policy refuses.
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--weak)" },
  ".cm-lintRange-info": { backgroundImage: "none", textDecoration: "underline wavy var(--accent)" },
  ".cm-lintRange-active": { backgroundColor: "var(--field)" },
  ".cm-diagnosticAction": { backgroundColor: "var(--accent)", color: "var(--back)" },
  ".cm-panel.cm-panel-lint ul [aria-selected]": { backgroundColor: "var(--field)" },
  ".cm-panels": { backgroundColor: "var(--field)", color: "var(--text)" },
});

// Returns elements for the little Markdown of meanings: paragraphs, fenced code, bold and code.
export function fromMarkdown(markdown) {
  return markdown.split("\n\n").map((paragraph) => {
    const code = /^```\w*\n([^]*)\n```$/.exec(paragraph);
    if (code) return element("pre", {}, code[1]);
    const parts = paragraph.split(/(\*\*.+?\*\*|`[^`]+`)/);
    return element("p", {}, ...parts.filter((part) => part !== "").map((part) => {
      if (part.startsWith("**") && part.length > 4) return element("strong", {}, part.slice(2, -2));
      if (part.startsWith("`") && part.length > 2) return element("code", {}, part.slice(1, -1));
      return part;
    }));
  });
}

// An element with a text for each language, and the properties of a field: `value`, `focus`, the event `input`.
class TextEditor extends HTMLElement {
  #view;
  #attributes = new Compartment();
  #states = new Map();
  #key = "litmus";
  #silent = false;
  #varying = false;
  // Answers of the engine: `complete`, `meaning` and `vary` get an offset.
  engine = null;

  connectedCallback() {
    const root = this.attachShadow({ mode: "open", delegatesFocus: true });
    this.#view = new EditorView({ state: this.#create(""), parent: root, root });
  }

  #create(text) {
    const key = this.#key;
    return EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(), history(), marked, theme, highlighting(key), this.#attributes.of([]),
        EditorState.tabSize.of(4),
        autocompletion({ override: [(context) => this.#complete(context)], icons: false, maxRenderedOptions: 200 }),
        hoverTooltip((_, offset) => this.#hover(offset)),
        keymap.of([
          { key: "Mod-Enter", run: () => this.dispatchEvent(new Event("check")) },
          { key: "Alt-Enter", run: () => this.vary() },
          { key: "F1", run: () => this.dispatchEvent(new Event("meaning")) },
          ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap,
        ]),
        EditorView.updateListener.of(({ docChanged }) => {
          if (docChanged && !this.#silent && key === this.#key) this.dispatchEvent(new Event("input", { bubbles: true }));
        }),
      ],
    });
  }

  get value() { return this.#view.state.doc.toString(); }

  // A step of the history: a text that a link or a fix replaces comes back with Undo.
  set value(text) {
    if (text === this.value) return;
    this.#quietly(() => this.#view.dispatch({ changes: { from: 0, to: this.#view.state.doc.length, insert: text } }));
  }

  get caret() { return this.#view.state.selection.main.head; }

  #quietly(change) {
    this.#silent = true;
    try { change(); } finally { this.#silent = false; }
  }

  // Shows the text of a language, with its history.
  show(key, label) {
    if (key !== this.#key) {
      this.#states.set(this.#key, this.#view.state);
      this.#key = key;
      this.#view.setState(this.#states.get(key) ?? this.#create(""));
    }
    this.#view.dispatch({ effects: this.#attributes.reconfigure(EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" })) });
  }

  // Returns the text of a language.
  textOf(key) { return key === this.#key ? this.value : this.#states.get(key)?.doc.toString() ?? ""; }

  focus() { this.#view.focus(); }

  // Moves the caret to a line and a column, both from 1, the column in characters.
  moveCaret(line, column) {
    const at = this.#view.state.doc.line(Math.min(Math.max(1, line), this.#view.state.doc.lines));
    const anchor = at.from + [...at.text].slice(0, column - 1).join("").length;
    this.#view.focus();
    this.#view.dispatch({ selection: { anchor }, scrollIntoView: true });
  }

  // Returns the line and the column of an offset, both from 1.
  placeOf(offset) {
    const line = this.#view.state.doc.lineAt(Math.min(offset, this.#view.state.doc.length));
    return { line: line.number, column: [...line.text.slice(0, offset - line.from)].length + 1 };
  }

  // Returns the offsets of a line's text, or from a column to its end.
  rangeOf(line, column) {
    const { doc } = this.#view.state;
    const { from, to, text } = doc.line(Math.min(Math.max(1, line), doc.lines));
    const start = column === undefined ? text.length - text.trimStart().length : [...text].slice(0, column - 1).join("").length;
    return { from: from + start, to };
  }

  // Makes disjoint replacements in one step of the history.
  edit(edits) {
    this.#view.dispatch({ changes: edits, userEvent: "input.fix" });
    this.#view.focus();
  }

  // Underlines problems, `{ from, to, severity, message, actions }`, and marks lines.
  setProblems(problems, lines) {
    const { length } = this.#view.state.doc;
    const within = problems.map((problem) => ({
      ...problem,
      from: Math.min(problem.from, length),
      to: Math.min(Math.max(problem.to, problem.from), length),
      actions: (problem.actions ?? []).map(({ name, run }) => ({ name, apply: run })),
    }));
    this.#view.dispatch(setDiagnostics(this.#view.state, within), { effects: setMarked.of([...lines]) });
  }

  // Opens the menu of variations of the instruction at the caret.
  vary() {
    this.#varying = true;
    this.#view.focus();
    return startCompletion(this.#view);
  }

  async #complete(context) {
    const varying = this.#varying;
    this.#varying = false;
    if (varying) return this.#variations(context.pos);
    if (!context.explicit && !context.matchBefore(/[\w.-]$/)) return null;
    const answer = await this.engine?.complete(context.pos);
    if (context.aborted) return null;
    if (!answer) return completeAnyWord(context);
    const options = answer.words.map(({ name, description }) => ({ label: name, info: description || undefined }));
    return { from: answer.from, to: answer.to, options, validFor: /^\w*$/ };
  }

  async #variations(offset) {
    const variations = await this.engine?.vary(offset) ?? [];
    if (variations.length === 0) return null;
    // Sections without a rank are sorted by name.
    const parts = [...new Set(variations.map(({ part }) => part))];
    const sections = new Map(parts.map((name, rank) => [name, { name, rank }]));
    const options = variations.map(({ part, instruction, edits }, index) => ({
      label: instruction,
      section: sections.get(part),
      boost: -Math.min(99, index),
      apply: () => this.edit(edits),
    }));
    return { from: offset, options, filter: false };
  }

  async #hover(offset) {
    const answer = await this.engine?.meaning(offset);
    if (!answer?.markdown) return null;
    const dom = element("div", { className: "meaning" }, ...fromMarkdown(answer.markdown));
    return { pos: answer.from, end: answer.to, above: true, create: () => ({ dom }) };
  }
}

customElements.define("text-editor", TextEditor);
