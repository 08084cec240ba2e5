//! Shaders that are beyond the lifter: what the walk over their whole grid finds.

use std::time::{Duration, Instant};

use frontend::grid::{GridFinding, GridVerdict};
use frontend::{AnalysisOptions, DEFAULT_UNROLL, InvocationId, Refusal, SpirvModule, Until};
use litmus::Race;
use model::Budget;
use results::wire::{CheckLine, Executions, FindingRecord, Query};
use results::write::race::text;

use super::kernel::entry_line;
use super::{Asked, Checked};
use crate::Conclusion;
use crate::patience::patience;
use crate::shader::race;

/// A shader with what was made of it.
pub struct Walked<'a> {
    /// The file.
    pub file: &'a str,
    /// Its module.
    pub module: &'a SpirvModule,
    /// What compiled it, where it was a source.
    pub compiler: Option<&'a str>,
    /// The inputs, with the entry point.
    pub options: &'a AnalysisOptions,
}

impl Walked<'_> {
    /// What is wrong, in words, and the pairs of invocations that race; nothing where the walk has no answer either, or something
    /// else is asked than it knows.
    pub fn explained(
        &self,
        model: &model::Model,
        time: Duration,
    ) -> Option<(String, Conclusion, Vec<Vec<InvocationId>>)> {
        if model.name() != model::Model::default_for(litmus::Dialect::Vulkan)
            || self.options.assertion.is_some()
        {
            return None;
        }
        let stop = patience(time);
        let report = frontend::judge(self.module, self.options, model, Budget::until(&stop)).ok()?;
        let outcome = if report.findings.is_empty() { Conclusion::Success } else { Conclusion::RuleBroken };
        let pair = |found: &GridFinding| match &found.at[..] {
            [one, other] if found.kind.is_race() && one.invocation != other.invocation => {
                Some(vec![one.invocation, other.invocation])
            }
            _ => None,
        };
        let pairs = report.findings.iter().filter_map(pair).collect();
        let mut text = text(&race::answered(self.file, self.module, report));
        if let Some(compiler) = self.compiler {
            text += &format!("  compiled by {compiler}\n");
        }
        Some((text, outcome, pairs))
    }

    /// The answer; `lacks` is what keeps the model from claims.
    ///
    /// # Errors
    /// Why the walk has none either; nothing where something else is asked than it knows.
    pub fn answered(
        &self,
        model: &model::Model,
        asked: Asked,
        started: Instant,
        lacks: &str,
    ) -> Result<Checked, Option<Refusal>> {
        // It knows the newest text, and no fairness.
        if model.name() != model::Model::default_for(litmus::Dialect::Vulkan) || asked.progress.is_some() {
            return Err(None);
        }
        let left = asked.timeout.saturating_sub(started.elapsed());
        let stop = patience(left);
        let until = Some(Until::new(patience(left.max(asked.timeout / 2))));
        let options = AnalysisOptions { deadline: until, ..self.options.clone() };
        let report = frontend::judge(self.module, &options, model, Budget::until(&stop)).map_err(Some)?;
        let race = match report.verdict {
            GridVerdict::Undecided => return Err(report.refusal),
            _ if report.findings.iter().any(|found| found.kind.is_race()) => Race::Racy,
            GridVerdict::Clean if !report.is_schedule_dependent => Race::Free,
            // What comes after something undefined, and other orders than those that were tried, are not known.
            GridVerdict::Clean | GridVerdict::Racy => Race::Unknown,
        };
        let findings: Vec<FindingRecord> =
            report.findings.iter().map(|found| race::record(self.file, self.module, found)).collect();
        let mut outcome = if findings.is_empty() { Conclusion::Success } else { Conclusion::RuleBroken };
        let compiled = self.compiler.map(|compiler| format!("{}: compiled by {compiler}", self.file));
        let mut warnings: Vec<String> = compiled.into_iter().collect();
        warnings.push(format!("{}: `{}` for {}", self.file, report.entry, report.coverage));
        let queries: Vec<Query> = (self.options.assertion.iter())
            .map(|formula| Query { text: format!("forall ({formula})"), holds: None, expected: Some(true) })
            .collect();
        for query in &queries {
            outcome.note(Conclusion::Environment);
            warnings.push(format!("{}: `{}` stays unanswered{lacks}", self.file, query.text));
        }
        let line = CheckLine {
            queries,
            executions: Executions { candidate: report.schedules, consistent: report.schedules },
            bound: self.options.unroll.unwrap_or(DEFAULT_UNROLL),
            runs: report.schedules,
            findings: Some(findings),
            compiler: self.compiler.map(str::to_owned),
            wider: report.two_workgroup_finding,
            ..entry_line(self.file, &report.entry, model, race, started)
        };
        Ok(Checked::Answered(Box::new(line), warnings, outcome))
    }
}
