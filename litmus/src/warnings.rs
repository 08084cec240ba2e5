//! Warnings about the text of a test that is valid but probably has another meaning than intended.

use crate::{Dialect, Span, Test};

/// A warning about a part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextWarning {
    /// The source position.
    pub span: Span,
    /// A stable code.
    pub code: &'static str,
    /// The message.
    pub message: String,
}

/// Returns the warnings about a test that was parsed from `text`, rule by rule.
pub fn text_warnings(test: &Test, text: &str) -> Vec<TextWarning> {
    let mut warnings = Vec::new();
    let mut warn = |span, code, message| warnings.push(TextWarning { span, code, message });
    for (key, span) in &test.metadata.unknown_keys {
        warn(*span, "check::unknown-key", format!("unknown key `{key}`"));
    }
    // Only for tests in our own language: other tools treat every name as a location that holds 0.
    if test.dialect == Dialect::Vulkan {
        for location in test.locations.iter().filter(|location| !location.declared) {
            let message = format!("`{}` is not declared: it holds 0", location.name);
            warn(location.span, "check::undeclared", message);
        }
        // HSA's group segment and Khronos' tests have their own rules.
        for (location, span) in test.foreign_workgroup_accesses() {
            let message = format!(
                "`{}` is workgroup memory used from two workgroups: the model treats it as one location, \
                 but each workgroup has a separate copy; declare it as `buffer`",
                test.location(location).name
            );
            warn(span, "check::foreign-workgroup", message);
        }
    }
    for ignored in crate::ignored_words(test, text) {
        let alone = if ignored.orders_nothing { "; the instruction orders nothing" } else { "" };
        let message = format!(
            "`{}` is ignored: Vulkan's memory model orders no {} (VK-SEM-19){alone}",
            ignored.word,
            ignored.class.name()
        );
        warn(ignored.span, "check::ignored-class", message);
    }
    warnings
}
