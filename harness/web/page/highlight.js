// Colours of words in the editor: one list of patterns for each language, tried in order at each position of a line.

import { HighlightStyle, StreamLanguage, syntaxHighlighting, tags } from "./codemirror.js";

const NUMBER = ["number", /[+-]?(?:0[xX][\da-fA-F]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)[iufh]?\b/y];
const STRING = ["string", /"(?:[^"\\]|\\.)*"?/y];
const WORD = [null, /[\w'-]+/y];

const CAT_WORDS = "let|rec|and|in|as|include|acyclic|irreflexive|empty|flag|undefined_unless|show|unshow|cut|procedure|end|call|with|from|if|else|try";
const WGSL_WORDS = "alias|break|case|const|const_assert|continue|continuing|default|diagnostic|discard|else|enable|false|fn|for|if|let|loop|override|requires|return|struct|switch|true|var|while";

// `header` begins lines of prose that end at `{`; `prose` are their patterns.
const LANGUAGES = {
  litmus: {
    comments: [["(*", "*)"], ["<<", ">>"]],
    header: /^\s*(?:VULKAN|HSA)\b.*/iy,
    prose: [["meta", /^[a-z]+:/y], [null, /[^{(]+/y]],
    rules: [
      ["comment", /^\/\/.*/y],
      ["keyword", /~?\b(?:exists|forall|filter|not)\b/y],
      ["heading", /\bP\d+(?=@|:|\s)/y],
      ["label", /\b[A-Z][A-Z\d]*:(?=\s)/y],
      ["operator", /\/\\|\\\/|==|!=|<=|>=|[|;<>]/y],
      // The operation, and its order, scope, strength and semantics.
      ["operation", /\b[a-z]\w*(?=\.[a-z])/y],
      ["modifier", /\.[a-z][\w.]*/y],
      ["type", /\b(?:[iuf](?:8|16|32|64)|workgroup|private|image|aliases|undefined)\b/y],
      NUMBER, STRING, WORD,
    ],
  },
  cat: {
    comments: [["(*", "*)"]],
    rules: [
      ["comment", /\/\/.*/y], ["keyword", new RegExp(`(?:${CAT_WORDS})\\b`, "y")], STRING,
      ["operator", /\^-1|\^[+*]|[|&;\\~*+?=]/y], NUMBER, [null, /[\w.'-]+/y],
    ],
  },
  wgsl: {
    comments: [["/*", "*/"]],
    rules: [
      ["comment", /\/\/.*/y], ["keyword", new RegExp(`(?:${WGSL_WORDS})\\b`, "y")], ["modifier", /@\w+/y],
      ["type", /\b(?:array|atomic|bool|f16|f32|i32|u32|ptr|(?:vec|mat)\w+)\b/y], ["operation", /\b[a-z]\w*(?=\()/y],
      NUMBER, WORD,
    ],
  },
  spirv: {
    rules: [
      ["comment", /;.*/y], ["heading", /%\w+(?=\s*=)/y], ["label", /%\w+/y], ["type", /\bOpType\w+/y],
      ["operation", /\bOp[A-Z]\w*/y], STRING, NUMBER, ["modifier", /\b[A-Z]\w+/y], WORD,
    ],
  },
};

const CLASSES = {
  comment: tags.comment, heading: tags.heading, keyword: tags.keyword, label: tags.labelName, meta: tags.meta,
  modifier: tags.modifier, number: tags.number, operation: tags.operatorKeyword, operator: tags.operator,
  string: tags.string, type: tags.typeName,
};

function mode({ comments = [], header, prose, rules }) {
  // The end of the comment that the line begins in, if there is one, and whether it is in the prose of a header.
  const startState = () => ({ end: null, prose: false });
  const read = (stream, pattern) => {
    pattern.lastIndex = stream.pos;
    const length = pattern.exec(stream.string)?.[0].length ?? 0;
    stream.pos += length;
    return length > 0;
  };
  const skipComment = (stream, state) => {
    const at = stream.string.indexOf(state.end, stream.pos);
    if (at < 0) stream.skipToEnd();
    else {
      stream.pos = at + state.end.length;
      state.end = null;
    }
    return "comment";
  };
  const token = (stream, state) => {
    if (state.end !== null) return skipComment(stream, state);
    if (header && stream.sol() && read(stream, header)) {
      state.prose = true;
      return "heading";
    }
    if (stream.eatSpace()) return null;
    for (const [begin, end] of comments) {
      if (stream.match(begin)) {
        state.end = end;
        return skipComment(stream, state);
      }
    }
    if (stream.peek() === "{") state.prose = false;
    for (const [kind, pattern] of state.prose ? prose : rules) {
      if (read(stream, pattern)) return kind;
    }
    stream.next();
    return null;
  };
  return StreamLanguage.define({ startState, copyState: (state) => ({ ...state }), token, tokenTable: CLASSES });
}

const MODES = Object.fromEntries(Object.entries(LANGUAGES).map(([key, language]) => [key, mode(language)]));

const STYLE = HighlightStyle.define([
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: tags.meta, color: "var(--muted)" },
  { tag: [tags.keyword, tags.operatorKeyword], color: "var(--accent)" },
  { tag: [tags.heading, tags.keyword], fontWeight: "bold" },
  { tag: [tags.modifier, tags.typeName], color: "var(--weak)" },
  { tag: [tags.number, tags.string], color: "var(--good)" },
  { tag: tags.labelName, color: "var(--muted)" },
]);

// The extensions for a language of the page.
export const highlighting = (key) => [MODES[key] ?? [], syntaxHighlighting(STYLE)];
