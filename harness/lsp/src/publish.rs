//! Problems as diagnostics and code actions of the protocol.

use editor::{Severity, TextProblem};
use lsp_types::{
    CodeAction, CodeActionKind, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location,
    NumberOrString, Range, TextEdit, Uri, WorkspaceEdit,
};
use serde_json::{Value, json};

use crate::document::DocumentText;

/// Converts a problem to a diagnostic.
pub fn to_diagnostic(uri: &Uri, text: &DocumentText, problem: &TextProblem) -> Diagnostic {
    let related = problem.related.iter().map(|(range, message)| DiagnosticRelatedInformation {
        location: Location { uri: uri.clone(), range: text.range_of(range) },
        message: message.clone(),
    });
    let related: Vec<_> = related.collect();
    Diagnostic {
        range: text.range_of(&problem.range),
        severity: Some(match problem.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
            Severity::Information => DiagnosticSeverity::INFORMATION,
        }),
        code: Some(NumberOrString::String(problem.code.clone())),
        source: Some("vk-litmus".to_owned()),
        message: problem.message.clone(),
        related_information: (!related.is_empty()).then_some(related),
        ..Diagnostic::default()
    }
}

/// Returns the code actions for the problems that touch a range.
pub fn code_actions<'p>(
    uri: &Uri,
    text: &DocumentText,
    problems: impl IntoIterator<Item = &'p TextProblem>,
    requested_range: Range,
) -> Vec<Value> {
    let (start, end) = (text.offset_of(requested_range.start), text.offset_of(requested_range.end));
    let touched =
        problems.into_iter().filter(|problem| problem.range.start <= end && start <= problem.range.end);
    let mut actions = Vec::new();
    for problem in touched {
        actions.extend(problem.new_file.as_ref().map(|file| {
            let address = format!("{}.{}", uri.as_str(), file.extension);
            let name = address.rsplit('/').next().unwrap_or_default();
            json!({
                "title": format!("Save the chosen inputs as {name}, to be changed"),
                "kind": "quickfix",
                "diagnostics": [to_diagnostic(uri, text, problem)],
                "edit": { "documentChanges": [
                    { "kind": "create", "uri": address, "options": { "overwrite": false } },
                    {
                        "textDocument": { "uri": address, "version": null },
                        "edits": [{ "range": Range::default(), "newText": file.text }],
                    },
                ] },
            })
        }));
        for correction in &problem.corrections {
            let edits = correction.edits.iter();
            let edits: Vec<TextEdit> = edits
                .map(|(range, new)| TextEdit { range: text.range_of(range), new_text: new.clone() })
                .collect();
            let action = CodeAction {
                title: correction.title.clone(),
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![to_diagnostic(uri, text, problem)]),
                edit: Some(WorkspaceEdit::default()),
                is_preferred: Some(problem.corrections.len() == 1),
                ..CodeAction::default()
            };
            let mut action = json!(action);
            action["edit"] = json!({ "changes": { uri.as_str(): edits } });
            actions.push(action);
        }
    }
    actions
}

#[cfg(test)]
mod tests {
    use editor::NewFile;

    use super::*;

    #[test]
    fn a_new_file_has_the_whole_name_and_replaces_none() {
        let uri: Uri = "file:///a/k.wgsl".parse().unwrap();
        let new_file = NewFile { extension: "case.toml".to_owned(), text: "grid = [2]".to_owned() };
        let problem = TextProblem::new(0..1, Severity::Information, "needs-inputs", "m".to_owned());
        let problem = TextProblem { new_file: Some(new_file), ..problem };
        let actions = code_actions(&uri, &DocumentText::new("text"), [&problem], Range::default());
        let create = &actions[0]["edit"]["documentChanges"][0];
        assert_eq!(create["uri"], "file:///a/k.wgsl.case.toml");
        assert_eq!(create["options"]["overwrite"], false);
    }
}
