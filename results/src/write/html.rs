//! The HTML report: one self-contained page with a summary and every test.
//!
//! All text from results goes through the templates, which escape it; control and direction characters are
//! made visible first. Pictures are embedded as images, in which no script runs. The content security policy
//! allows only the page's own script and loads nothing.

pub(super) mod sections;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::conclusion;
use crate::report::Report;
use sections::{Links, percent_encode, render_conclusions, render_devices, render_summary, render_tests};

/// The page's style sheet.
pub(super) const STYLE: &str = include_str!("html/page.css");
/// The page's script.
pub const SCRIPT: &str = include_str!("html/page.js");
/// The SHA-256 hash of [`SCRIPT`] in the form of a content security policy; a test computes it.
pub const SCRIPT_HASH: &str = "sha256-itqInu4sj5giQ5PKTRyHshu+o/UoHbfDqX70m9USn/Q=";

/// An explained outcome; the caller draws it, as this crate has no model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExplainedPicture {
    /// The conclusion in one line.
    pub headline: String,
    /// The diagram as SVG.
    pub svg: String,
    /// The explanation as text.
    pub text: String,
}

/// Renders the page. `pictures` has one entry per test, in the order of the report; `None` for a test without
/// an explanation.
pub fn render_page(report: &Report, pictures: &[Option<ExplainedPicture>]) -> String {
    let links = Links {
        test: &|index| format!("#t{index}"),
        find: &|name| format!("#find={}", percent_encode(name)),
        why: &|index| Some(pictures.get(index)?.as_ref()?.headline.as_str()),
    };
    let title = page_title(report);
    let header = html! {
        h1 { (title) }
        nav {
            a href="#summary" { "Summary" }
            a href="#tests" { "Tests" }
            a href="#devices" { "Devices" }
            a href="#words" { "Words" }
        }
    };
    let main = html! {
        (render_conclusions(report))
        (render_summary(report, &links))
        (render_tests(report, pictures))
        (render_devices(report))
        (render_glossary())
    };
    let shell = PageFrame {
        title: &title,
        description: &page_description(report),
        policy: &format!(
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src '{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'"
        ),
        style: html! { style { (PreEscaped(STYLE)) } },
        devices: report.devices.len(),
        script: Some(SCRIPT),
    };
    shell.render(&header, &main)
}

pub(super) struct PageFrame<'a> {
    pub(super) title: &'a str,
    /// The conclusion in one line, for previews of links.
    pub(super) description: &'a str,
    /// The content security policy.
    pub(super) policy: &'a str,
    /// The style sheet, or a link to it.
    pub(super) style: Markup,
    /// Number of device columns in the list of tests.
    pub(super) devices: usize,
    pub(super) script: Option<&'a str>,
}

impl PageFrame<'_> {
    pub(super) fn render(&self, header: &Markup, main: &Markup) -> String {
        let page: Markup = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(self.policy);
                    meta name="viewport" content="width=device-width";
                    meta property="og:title" content=(self.title);
                    meta property="og:type" content="article";
                    @if !self.description.is_empty() {
                        meta name="description" content=(self.description);
                        meta property="og:description" content=(self.description);
                    }
                    title { (self.title) }
                    (self.style)
                }
                body style=(format!("--devices:{}", self.devices)) {
                    header { (header) }
                    main { (main) }
                    @if let Some(script) = self.script { script { (PreEscaped(script)) } }
                }
            }
        };
        page.into_string()
    }
}

pub(super) fn page_title(report: &Report) -> String {
    let plural = |number: usize, word: &str| {
        if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
    };
    match report.devices.as_slice() {
        [device] => {
            format!(
                "{} on {}",
                plural(report.tests.len(), "litmus test"),
                crate::escape::escape_line(&device.label)
            )
        }
        devices => {
            format!("{} on {}", plural(report.tests.len(), "litmus test"), plural(devices.len(), "device"))
        }
    }
}

/// Returns the conclusions of all devices on one line.
pub(super) fn page_description(report: &Report) -> String {
    let conclusions = conclusion::conclude_report(report);
    let sentences =
        conclusions.iter().map(|conclusion| format!("{} {}.", conclusion.sentence, conclusion.provenance));
    sentences.collect::<Vec<_>>().join(" ")
}

pub(super) fn render_glossary() -> Markup {
    html! {
        section id="words" {
            h2 { "Words" }
            dl {
                dt { span class="sign k0" { "○" } " allowed" }
                dd { "An outcome that the model allows and sequential consistency produces too." }
                dt { span class="sign k1" { "◆" } " weak" }
                dd { "An outcome that sequential consistency cannot produce, and that is allowed (or not judged, as the program races)." }
                dt { span class="sign k2" { "✖" } " forbidden" }
                dd { "An outcome that the model forbids. Seen once, it proves that the device breaks a rule." }
                dt { span class="sign k3" { "‼" } " from nowhere" }
                dd { "Values that no execution produces: corruption." }
                dt { "rate, interval" }
                dd { "Times seen over instances, with the two-sided Clopper–Pearson interval at 95 %. Of what was never seen, the bound that its rate stays below with 95 %. Both assume independent instances; scheduling makes them dependent." }
                dt { "reproducibility" }
                dd { "1 − e⁻ⁿ, where n counts the weak outcomes: the chance to see one again in a run of the same length." }
                dt { "drifted" }
                dd { "The rate of an outcome changed significantly during the test (a Kolmogorov–Smirnov test over parts of the run, corrected for the number of tests). No single rate describes such a run." }
                dt { "exercised" }
                dd { "Enough instances were interleaved to show the forbidden outcome. A test that was not exercised is not a pass." }
                dt { "bars" }
                dd { "Counts on a logarithmic scale, where each grid line is ten times the one before, or on a linear one; the switch is above them." }
            }
        }
    }
}
