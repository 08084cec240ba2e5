//! Renders the consistent executions of a test in sequence, as herd does.

use litmus::Test;
use model::{ConsistentExecution, ConsistentExecutions, ExplainedExecution};

use super::html::STYLE;
use super::picture::Picture;
use super::svg::escape;
use super::{dot, svg, text, words};

/// Executions and the test that they are of.
#[derive(Clone, Copy, Debug)]
pub struct ShownExecutions<'a> {
    /// The test.
    pub test: &'a Test,
    /// The executions.
    pub executions: &'a ConsistentExecutions,
}

/// A single execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownExecution {
    /// Its number and its final state.
    pub title: String,
    /// For a terminal.
    pub text: String,
    /// As SVG.
    pub picture: String,
}

impl<'a> ShownExecutions<'a> {
    /// Returns a one-line summary.
    fn headline(self) -> String {
        let ConsistentExecutions { model, outcome, found, complete, loop_bound: cut } = self.executions;
        let more = match (complete, cut) {
            (true, None) => "all ",
            (true, Some(_)) => "",
            (false, _) => "the first ",
        };
        let (count, witnesses) = (found.len(), found.iter().filter(|found| found.witness).count());
        let plural = if count == 1 { "" } else { "s" };
        let mut says = format!(
            "{} under {model}: {more}{count} consistent execution{plural}, {witnesses} of which show {outcome}",
            self.test.name
        );
        if let Some(bound) = cut {
            says += &format!("; runs with more than {bound} iterations of a loop are omitted");
        }
        if found.iter().any(|found| found.flagged) {
            says += "; the program races, so its behaviour is undefined";
        }
        says
    }

    /// Returns each execution with its caption.
    fn each(self) -> impl Iterator<Item = (String, &'a ExplainedExecution)> {
        let found = &self.executions.found;
        (1..).zip(found).map(|(number, ConsistentExecution { execution, witness, flagged })| {
            let mut title = format!("Execution {number} of {}: {}", found.len(), words::outcome(execution));
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
        })
    }

    fn pictures(self) -> Vec<Picture<'a>> {
        self.each()
            .map(|(title, execution)| {
                let picture = Picture::new(self.test, execution, vec![title], None, None);
                // The title already contains the final state.
                Picture { notes: Vec::new(), ..picture }
            })
            .collect()
    }

    /// Returns each execution separately.
    pub fn separate(self) -> Vec<ShownExecution> {
        let pictures = self.pictures();
        let shown = self.each().zip(pictures).map(|((title, execution), picture)| {
            let mut text = String::new();
            text::table(&mut text, self.test, execution);
            text::drawn(&mut text, execution);
            ShownExecution { picture: svg::document(&title, vec![picture]), title, text }
        });
        shown.collect()
    }

    /// For a terminal: threads side by side, then the edges.
    pub fn text(self) -> String {
        let mut out = String::new();
        text::line(&mut out, 0, &self.headline());
        for (title, execution) in self.each() {
            text::line(&mut out, 0, "");
            text::line(&mut out, 0, &title);
            text::table(&mut out, self.test, execution);
            text::drawn(&mut out, execution);
        }
        out
    }

    /// A graph for each, as `dot` reads them.
    pub fn dot(self) -> String {
        self.pictures().iter().map(dot::graph).collect()
    }

    /// One picture, the executions one above the other.
    pub fn svg(self) -> String {
        svg::document(&self.headline(), self.pictures())
    }

    /// A self-contained page; `source` is the test's text.
    pub fn html(self, source: &str) -> String {
        let title = escape(&self.headline());
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<style>{STYLE}</style>\n</head>\n<body>\n\
             <h1>{title}</h1>\n<pre>{}</pre>\n<div class=\"picture\">\n{}</div>\n</body>\n</html>\n",
            escape(source),
            self.svg(),
        )
    }
}
