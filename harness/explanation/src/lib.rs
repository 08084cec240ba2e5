//! Renders explanations of verdicts as text, DOT, SVG and HTML.

mod dot;
mod executions;
mod fix;
mod html;
mod layout;
mod picture;
mod plain;
mod rules;
mod shader;
mod svg;
#[cfg(test)]
mod tests;
mod text;
mod words;

use litmus::Test;
use model::Explanation;

pub use dot::write as dot;
pub use executions::{ShownExecution, ShownExecutions};
pub use fix::fixed;
pub use html::write as html;
pub use shader::{ShaderAnswer, ShaderFinding, ShaderPlace, write as shaders, write_svg as shaders_svg};
pub use svg::write as svg;
pub use text::write as text;
pub use words::rule;

/// Returns the explanation in one line.
pub fn headline(explained: Explained<'_>) -> String {
    words::headline(explained.test, explained.explanation)
}

/// An explanation and its subject.
#[derive(Clone, Copy, Debug)]
pub struct Explained<'a> {
    /// The test.
    pub test: &'a Test,
    /// Its text.
    pub source: &'a str,
    /// Name of the test's file.
    pub file: &'a str,
    /// The explanation.
    pub explanation: &'a Explanation,
}
