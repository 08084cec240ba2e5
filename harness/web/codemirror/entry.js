export { Compartment, EditorState, RangeSet, StateEffect, StateField } from "@codemirror/state";
export { Decoration, EditorView, GutterMarker, gutterLineClass, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { autocompletion, completeAnyWord, completionKeymap, startCompletion } from "@codemirror/autocomplete";
export { lintKeymap, setDiagnostics } from "@codemirror/lint";
export { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
export { tags } from "@lezer/highlight";
