//! Renders explanations of verdicts as text, DOT, SVG and HTML.

mod clauses;
mod dot;
mod executions;
mod fix;
mod html;
mod layout;
mod phrases;
mod picture;
mod plain;
mod recording;
mod shader;
mod svg;
#[cfg(test)]
mod tests;
mod text;

use litmus::Test;
use model::Explanation;

pub use dot::render as dot;
pub use executions::ExecutionReport;
pub use fix::apply_fix;
pub use html::render as html;
pub use phrases::describe_axiom;
pub use recording::{RecordingPage, render as recording};
pub use shader::{ShaderAnswer, ShaderFinding, render_page as shaders, render_svg as shaders_svg};
pub use svg::render as svg;
pub use text::render as text;

/// Returns the explanation in one line.
pub fn headline(explained: Explained<'_>) -> String {
    phrases::headline(explained.test, explained.explanation)
}

/// An explanation and its subject.
#[derive(Clone, Copy, Debug)]
pub struct Explained<'a> {
    pub test: &'a Test,
    /// Its text.
    pub source: &'a str,
    /// Name of the test's file.
    pub file: &'a str,
    pub explanation: &'a Explanation,
}
