//! Executions of a test one after the other, as herd shows them.

use litmus::Test;
use model::{Execution, Executions};

use super::html::STYLE;
use super::picture::Picture;
use super::svg::escape;
use super::{dot, svg, text, words};

/// Executions and the test that they are of.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The test.
    pub test: &'a Test,
    /// The executions.
    pub executions: &'a Executions,
}

impl<'a> Shown<'a> {
    /// What is shown, in one line.
    fn headline(self) -> String {
        let Executions { model, outcome, witnesses, others, complete } = self.executions;
        let more = if *complete { "all" } else { "the first" };
        let count = witnesses.len() + others.len();
        format!(
            "{} under {model}: {more} {count} consistent execution{}, {} of which show {outcome}",
            self.test.name,
            if count == 1 { "" } else { "s" },
            witnesses.len(),
        )
    }

    /// Each execution with what is said of it.
    fn each(self) -> impl Iterator<Item = (String, &'a Execution)> {
        let Executions { witnesses, others, .. } = self.executions;
        let shows = witnesses.iter().map(|execution| (true, execution));
        let count = witnesses.len() + others.len();
        shows.chain(others.iter().map(|execution| (false, execution))).enumerate().map(
            move |(index, (shows, execution))| {
                let mut title = format!("Execution {} of {count}: {}", index + 1, words::outcome(execution));
                if shows {
                    title += " *";
                }
                if execution.thin_air {
                    title += " (out of thin air)";
                }
                (title, execution)
            },
        )
    }

    fn pictures(self) -> Vec<Picture<'a>> {
        self.each()
            .map(|(title, execution)| {
                let picture = Picture::new(self.test, execution, vec![title], None, None);
                // The title says how it ends.
                Picture { notes: Vec::new(), ..picture }
            })
            .collect()
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

    /// A page that needs nothing but itself; `source` is the test's text.
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
