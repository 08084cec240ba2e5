//! Renders the consistent executions of a test in sequence, as herd does.

use litmus::Test;
use model::{ConsistentExecution, ConsistentExecutions, ExplainedExecution};
use results::wire::PlaygroundExecution;

use super::html::STYLE;
use super::picture::Picture;
use super::svg::escape;
use super::{dot, phrases, svg, text};

/// The executions of a test, for rendering.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionReport<'a> {
    pub test: &'a Test,
    pub executions: &'a ConsistentExecutions,
}

impl<'a> ExecutionReport<'a> {
    /// Returns a one-line summary.
    fn headline(self) -> String {
        let ConsistentExecutions { model, outcome, executions: found, complete, loop_bound } =
            self.executions;
        let more = match (complete, loop_bound) {
            (true, None) => "all ",
            (true, Some(_)) => "",
            (false, _) => "the first ",
        };
        let (count, witnesses) = (found.len(), found.iter().filter(|found| found.is_witness).count());
        let plural = if count == 1 { "" } else { "s" };
        let mut summary = format!(
            "{} under {model}: {more}{count} consistent execution{plural}, {witnesses} of which show {outcome}",
            self.test.name
        );
        if let Some(bound) = loop_bound {
            summary += &format!("; runs with more than {bound} iterations of a loop are omitted");
        }
        if found.iter().any(|found| found.is_racy) {
            summary += "; the program races, so its behaviour is undefined";
        }
        summary
    }

    /// Returns each execution with its caption.
    fn titled_executions(self) -> impl Iterator<Item = (String, &'a ExplainedExecution)> {
        let found = &self.executions.executions;
        (1..).zip(found).map(
            |(number, ConsistentExecution { execution, is_witness: witness, is_racy: flagged })| {
                let mut title =
                    format!("Execution {number} of {}: {}", found.len(), phrases::format_outcome(execution));
                if *witness {
                    title += " *";
                }
                if *flagged {
                    title += " (races)";
                }
                if execution.thin_air {
                    title += " (out of thin air)";
                }
                (title, execution)
            },
        )
    }

    fn pictures(self) -> Vec<Picture<'a>> {
        self.titled_executions()
            .map(|(title, execution)| {
                let picture = Picture::new(self.test, execution, vec![title], None, None);
                // The title already contains the final state.
                Picture { notes: Vec::new(), ..picture }
            })
            .collect()
    }

    /// Returns each execution separately.
    pub fn render_each(self) -> Vec<PlaygroundExecution> {
        let pictures = self.pictures();
        let shown = self.titled_executions().zip(pictures).map(|((title, execution), picture)| {
            let mut text = String::new();
            text::write_table(&mut text, self.test, execution);
            text::write_edges(&mut text, execution);
            PlaygroundExecution { picture: svg::render_document(&title, vec![picture]), title, text }
        });
        shown.collect()
    }

    /// Renders for a terminal: threads side by side, then the edges.
    pub fn to_text(self) -> String {
        let mut out = String::new();
        text::write_line(&mut out, 0, &self.headline());
        for (title, execution) in self.titled_executions() {
            text::write_line(&mut out, 0, "");
            text::write_line(&mut out, 0, &title);
            text::write_table(&mut out, self.test, execution);
            text::write_edges(&mut out, execution);
        }
        out
    }

    /// Renders a graph for each execution, as `dot` reads them.
    pub fn to_dot(self) -> String {
        self.pictures().iter().map(dot::render_graph).collect()
    }

    /// Renders one picture, the executions one above the other.
    pub fn to_svg(self) -> String {
        svg::render_document(&self.headline(), self.pictures())
    }

    /// Renders a self-contained page; `source` is the test's text.
    pub fn to_html(self, source: &str) -> String {
        let title = escape(&self.headline());
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <h1>{title}</h1>\n<pre tabindex=\"0\">{}</pre>\n<div class=\"picture\" tabindex=\"0\">\n{}</div>\n</main>\n</body>\n</html>\n",
            escape(source),
            self.to_svg(),
        )
    }
}
