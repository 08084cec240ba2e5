//! The progress bar and the summary of `race` over several files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use results::escape::escape_line as shown;
use results::wire::{FindingRecord, RaceLine, RaceVerdict};
use results::write::race::describe_need;

/// A progress bar over files; hidden if standard error is not a terminal.
pub struct FileBar(ProgressBar);

impl FileBar {
    /// Creates a bar over `files` files.
    pub fn new(files: usize, is_enabled: bool) -> FileBar {
        if !is_enabled || !std::io::stderr().is_terminal() {
            return FileBar(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(files as u64);
        // The template is constant; if it did not parse, the default style would be used.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {eta} left, {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(250));
        FileBar(bar)
    }

    /// Counts a file.
    pub fn advance(&self, file: &str) {
        self.0.set_message(shown(file).into_owned());
        self.0.inc(1);
    }

    /// Hides the bar while `print` runs.
    pub fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        self.0.suspend(print)
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// Counts of causes.
#[derive(Debug, Default)]
pub struct CauseTable(BTreeMap<String, usize>);

impl CauseTable {
    /// Counts a cause.
    pub fn add(&mut self, cause: &str) {
        *self.0.entry(cause.to_owned()).or_default() += 1;
    }

    /// Counts the findings of a shader by their kind, or that it has none.
    pub fn add_all(&mut self, findings: &[FindingRecord]) {
        findings.iter().for_each(|finding| self.add(&finding.kind));
        if findings.is_empty() {
            self.add("no finding");
        }
    }

    /// Formats the counts below a title, the largest first.
    pub fn to_text(&self, title: &str) -> String {
        let mut causes: Vec<_> = self.0.iter().collect();
        causes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let rows = causes.into_iter().map(|(cause, count)| format!("\n  {count:>6}  {cause}"));
        title.to_owned() + &rows.collect::<String>()
    }
}

/// Counts of answers.
#[derive(Debug, Default)]
pub struct RaceSummary {
    files: BTreeSet<String>,
    skipped: usize,
    verdicts: BTreeMap<String, usize>,
    causes: BTreeMap<String, usize>,
    lines: usize,
    /// Answers that are not clean, by verdict and cause.
    groups: BTreeMap<String, Vec<String>>,
}

/// Upper bound on the answers of a group that are listed, except for those of racy ones.
const MAX_LISTED: usize = 5;

impl RaceSummary {
    /// Counts an answer; `is_skipped` if the file has no entry point.
    pub fn add(&mut self, line: &RaceLine, is_skipped: bool) {
        if is_skipped {
            self.skipped += 1;
            return;
        }
        self.files.insert(line.file.clone());
        self.lines += 1;
        *self.verdicts.entry(line.verdict.to_string()).or_default() += 1;
        if line.verdict == RaceVerdict::Refused {
            *self.causes.entry(line.cause.clone().unwrap_or_default()).or_default() += 1;
        }
        let finding =
            line.findings.first().or_else(|| line.needs.iter().find_map(|need| need.finding.as_ref()));
        let need = line.needs.first();
        let cause = match (finding, &line.cause) {
            (Some(finding), _) => finding.kind.clone(),
            (None, Some(cause)) => cause.clone(),
            (None, None) if need.is_some() => "lines not reached".to_owned(),
            (None, None) => "no answer".to_owned(),
        };
        if line.verdict != RaceVerdict::Clean {
            let place = finding.and_then(|finding| finding.at.first());
            // A place in an included file does not name the shader.
            let place = place.filter(|place| place.file.as_ref() == Some(&line.file));
            let number = place.and_then(|place| place.line).map_or(String::new(), |line| format!(":{line}"));
            let message = finding.map(|finding| finding.message.clone());
            let message = message.or_else(|| need.map(describe_need)).or_else(|| line.why.clone());
            let entry = if line.entry.is_empty() { String::new() } else { format!(" `{}`", line.entry) };
            let item = format!("{}{number}{entry}: {}", line.file, message.unwrap_or_default());
            self.groups.entry(format!("{}: {cause}", line.verdict)).or_default().push(item);
        }
    }

    /// Lists the answers that are not clean, the largest groups of racy ones first.
    pub fn list(&self) -> String {
        let mut groups: Vec<_> = self.groups.iter().collect();
        let is_racy = |name: &str| name.starts_with(&RaceVerdict::Racy.to_string());
        groups.sort_by_key(|(name, all)| (!is_racy(name), std::cmp::Reverse(all.len())));
        let mut text = String::new();
        for (name, all) in groups {
            text += &format!("{name}\n");
            let listed = if is_racy(name) { all.len() } else { MAX_LISTED };
            all.iter().take(listed).for_each(|item| text += &format!("  {item}\n"));
            if all.len() > listed {
                text += &format!("  and {} more\n", all.len() - listed);
            }
        }
        if !text.is_empty() {
            text += "inputs, places and fixes of each entry point: add -v\n";
        }
        text
    }

    /// Formats the counts as a table.
    pub fn to_text(&self) -> String {
        let mut text = format!("{} entry points in {} files\n", self.lines, self.files.len());
        let mut verdicts: Vec<_> = self.verdicts.iter().collect();
        verdicts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (verdict, count) in verdicts {
            text += &format!("  {count:>6}  {verdict}\n");
            let mut causes: Vec<_> = self.causes.iter().filter(|_| verdict == "refused").collect();
            causes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            for (cause, count) in causes {
                text += &format!("          {count:>6}  {cause}\n");
            }
        }
        if self.skipped > 0 {
            text += &format!("  {:>6}  files without an entry point, skipped\n", self.skipped);
        }
        text.truncate(text.trim_end().len());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_verdict_and_cause() -> Result<(), serde_json::Error> {
        let line = |file: &str, verdict: &str, cause: Option<&str>| {
            let line = serde_json::json!({
                "schema": "", "file": file, "entry": "main", "grid": [1, 1, 1], "local_size": null,
                "subgroup_size": 0, "verdict": verdict, "why": null, "cause": cause, "findings": [],
                "coverage": { "inputs": [], "grid": null, "schedules": null, "engine": null, "limits": [] },
            });
            serde_json::from_value::<RaceLine>(line)
        };
        let mut summary = RaceSummary::default();
        summary.add(&line("a", "clean", None)?, false);
        summary.add(&line("a", "refused", Some("does not compile"))?, false);
        summary.add(&line("b", "clean", None)?, false);
        summary.add(&line("c", "refused", None)?, true);
        let expected = "3 entry points in 2 files\n       2  clean\n       1  refused\n               1  does not compile\n       \
                        1  files without an entry point, skipped";
        assert_eq!(summary.to_text(), expected);
        for file in ["d"; MAX_LISTED].into_iter().chain(["e"]) {
            summary.add(&line(file, "needs-inputs", Some("a loop"))?, false);
        }
        let list = summary.list();
        assert!(list.starts_with("needs-inputs: a loop\n  d `main`: \n") && !list.contains("  e"), "{list}");
        assert!(list.contains("  and 1 more\nrefused: does not compile\n  a `main`: \n"), "{list}");
        Ok(())
    }
}
