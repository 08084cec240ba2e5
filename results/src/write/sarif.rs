//! SARIF 2.1.0 output: findings with their positions, for GitHub and editors.
//!
//! Only the objects needed for findings are written. A crate with the full schema would add a code generator
//! and about twelve dependencies.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::CheckWriter;
use super::race::{describe_need, open_findings};
use super::recording::{describe_redundant, describe_unjudged, format_hazard};
use crate::escape;
use crate::wire::{
    CheckLine, FindingPlace, FindingRecord, HazardLine, JudgementLine, NeededRecord, RefineLine,
    RefineVerdict, RejectedLine,
};

/// Writer of one SARIF log, written at the end.
pub struct SarifCheckWriter<W> {
    out: W,
    /// The results; each names its rule.
    results: Vec<Value>,
    rules: BTreeMap<String, &'static str>,
    /// Files without an answer, each with the reason.
    notifications: Vec<Value>,
}

impl<W: Write> SarifCheckWriter<W> {
    /// Creates a writer to `out`.
    pub fn new(out: W) -> SarifCheckWriter<W> {
        SarifCheckWriter { out, results: Vec::new(), rules: BTreeMap::new(), notifications: Vec::new() }
    }

    /// Adds the reason why a shader has no answer.
    pub fn add_notification(&mut self, file: &str, level: &str, message: &str) {
        let at = physical_location(file, None, None);
        self.notifications.push(json!({ "level": level, "message": { "text": message }, "locations": [at] }));
    }

    /// Adds the findings in a shader.
    pub fn add_findings(&mut self, file: &str, findings: &[FindingRecord]) {
        for FindingRecord { kind, message, at, fix, .. } in findings {
            let places: Vec<Value> = at.iter().map(|place| sarif_location(file, place)).collect();
            // SARIF fixes are exact text replacements; these fixes are not, so they go into the message.
            let fix = fix.as_ref().map(|fix| format!(". Fix: {fix}")).unwrap_or_default();
            self.add_result(kind, &format!("{message}{fix}"), &places);
        }
    }

    /// Adds the inputs that the answer about a shader depends on.
    pub fn add_needs(&mut self, file: &str, needs: &[NeededRecord]) {
        for open in open_findings(needs) {
            let places: Vec<Value> =
                open.finding.at.iter().map(|place| sarif_location(file, place)).collect();
            let options: Vec<String> = open.describe_options().collect();
            let message = format!("{}. {}", open.describe(), options.join("; "));
            self.add_result("open-finding", &message, &places);
        }
        for needed in needs.iter().filter(|needed| needed.finding.is_none()) {
            let whole_file = || physical_location(file, None, None);
            let at = needed.at.as_ref().map_or_else(whole_file, |place| sarif_location(file, place));
            self.add_result("needs-inputs", &describe_need(needed), &[at]);
        }
    }

    /// Adds a comparison of a shader before and after a compiler.
    pub fn add_comparison(&mut self, line: &RefineLine) {
        let (rule, places) = match line.verdict {
            RefineVerdict::Refines | RefineVerdict::Stronger => return,
            RefineVerdict::Breaks => ("refinement-broken", line.difference.as_ref()),
            RefineVerdict::Unknown => ("refinement-unknown", None),
            RefineVerdict::Failed => ("compiler-failed", None),
        };
        let places = places.into_iter().flat_map(|difference| [&difference.before, &difference.after]);
        let mut at: Vec<Value> = places.flatten().map(|place| sarif_location(&line.before, place)).collect();
        if at.is_empty() {
            at.push(physical_location(&line.before, None, None));
        }
        self.add_result(rule, &format!("{}: {}", line.after, line.reason), &at);
    }

    /// Adds the hazards of a recording, and as notes what was not judged and the redundant barriers.
    pub fn add_judgement(&mut self, file: &str, hazards: &[HazardLine], judgement: &JudgementLine) {
        let at = [physical_location(file, None, None)];
        for line in hazards {
            if line.is_information {
                continue;
            }
            let rule = if line.is_possible { "possible-hazard" } else { "hazard" };
            self.add_result(rule, format_hazard(line).trim_end(), &at);
        }
        for line in &judgement.unjudged {
            self.add_result("not-judged", &describe_unjudged(line), &at);
        }
        for barrier in &judgement.redundant_barriers {
            self.add_result("redundant-barrier", &describe_redundant(barrier), &at);
        }
    }

    /// Writes the log and returns the stream.
    ///
    /// # Errors
    /// Returns the error of the stream.
    pub fn finish_into_inner(mut self) -> io::Result<W> {
        self.finish()?;
        Ok(self.out)
    }

    fn add_result(&mut self, rule: &str, message: &str, at: &[Value]) {
        let (about, level) = describe_rule(rule);
        self.rules.entry(rule.to_owned()).or_insert(about);
        let mut result = json!({ "ruleId": rule, "level": level, "message": { "text": message } });
        if let (Some(first), Value::Object(fields)) = (at.first(), &mut result) {
            fields.insert("locations".to_owned(), json!([first]));
            if at.len() > 1 {
                fields.insert("relatedLocations".to_owned(), json!(at[1..]));
            }
        }
        self.results.push(result);
    }
}

impl<W: Write> CheckWriter for SarifCheckWriter<W> {
    fn write_prediction(&mut self, line: &CheckLine) -> io::Result<()> {
        self.add_findings(&line.file, line.findings.as_deref().unwrap_or_default());
        self.add_needs(&line.file, &line.needs);
        for difference in &line.differences {
            self.add_result("claim", difference, &[physical_location(&line.file, None, None)]);
        }
        for query in &line.queries {
            if let (Some(holds), Some(expected)) = (query.holds, query.expected)
                && holds != expected
            {
                let word = if holds { "holds" } else { "does not hold" };
                let place = physical_location(&line.file, None, None);
                self.add_result("claim", &format!("`{}` {word} under {}", query.text, line.model), &[place]);
            }
        }
        Ok(())
    }

    fn write_rejected(&mut self, line: &RejectedLine) -> io::Result<()> {
        let place = physical_location(&line.file, Some(line.line), Some(line.column));
        self.add_result("rejected", &line.error, &[place]);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let rules: Vec<Value> = self
            .rules
            .iter()
            .map(|(id, about)| json!({ "id": id, "shortDescription": { "text": about } }))
            .collect();
        let driver = json!({ "name": "vk-litmus", "version": env!("CARGO_PKG_VERSION"), "rules": rules });
        let log = json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{ "tool": { "driver": driver }, "columnKind": "unicodeCodePoints", "results": self.results,
                "invocations": [{
                    "executionSuccessful": self.notifications.is_empty(),
                    "toolExecutionNotifications": self.notifications,
                }],
            }],
        });
        writeln!(self.out, "{log:#}")
    }
}

/// Returns the description and the level of a rule.
fn describe_rule(rule: &str) -> (&'static str, &'static str) {
    match rule {
        "race" => ("Two accesses race: behaviour is undefined", "error"),
        "lockstep" => ("Lanes of one subgroup race; they need not execute in lockstep", "error"),
        "unpublished-read" => ("A read of a value that is not made available and visible to it", "error"),
        "lost-order" => ("A compiler lost an order that the language promises", "warning"),
        "divergent-barrier" => ("A control barrier that not all invocations reach", "error"),
        "out-of-bounds" => ("An access out of bounds", "error"),
        "uninitialised-read" => ("An uninitialized value is read", "error"),
        "undefined-behaviour" => ("Behaviour that is undefined", "error"),
        "assertion" => ("An assertion about the final contents does not hold", "error"),
        "open-finding" => ("A finding for some inputs, which are not given", "warning"),
        "needs-inputs" => ("The answer depends on an input that is not given", "note"),
        "hazard" => ("Two commands access the same bytes without order", "error"),
        "possible-hazard" => ("Two commands may access the same bytes without order", "warning"),
        "not-judged" => ("A recorded command without an answer", "note"),
        "redundant-barrier" => ("A barrier that orders no recorded accesses", "note"),
        "hang" => ("An invocation may wait forever", "error"),
        "claim" => ("An assertion does not hold", "error"),
        "refinement-broken" => ("A compiler added a behaviour to a shader", "error"),
        "refinement-unknown" => ("Nothing shows that a compiler preserved a shader", "note"),
        "compiler-failed" => ("A compiler failed or wrote no valid module", "error"),
        "rejected" => ("The shader cannot be read or lifted", "error"),
        _ => ("An instruction without its intended effect", "warning"),
    }
}

/// Builds the SARIF location of a finding's position.
fn sarif_location(file: &str, place: &FindingPlace) -> Value {
    let mut location = physical_location(place.file.as_deref().unwrap_or(file), place.line, None);
    let role = match (&place.access, &place.invocation) {
        (Some(access), Some(invocation)) => Some(format!("{access} by invocation {invocation}")),
        (None, Some(invocation)) => Some(format!("invocation {invocation}")),
        (_, None) => None,
    };
    if let (Some(role), Value::Object(fields)) = (role, &mut location) {
        fields.insert("message".to_owned(), json!({ "text": role }));
    }
    location
}

fn physical_location(file: &str, line: Option<u32>, column: Option<u32>) -> Value {
    let mut place = json!({ "artifactLocation": { "uri": path_to_uri(file) } });
    if let (Some(line), Value::Object(fields)) = (line.filter(|line| *line > 0), &mut place) {
        let region = match column {
            Some(column) => json!({ "startLine": line, "startColumn": column }),
            None => json!({ "startLine": line }),
        };
        fields.insert("region".to_owned(), region);
    }
    json!({ "physicalLocation": place })
}

/// Converts a path to a URI; a relative path stays relative to the working folder.
fn path_to_uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"/.-_~+@".contains(&byte);
    format!("{scheme}{}", escape::percent_encode(path, is_kept))
}
