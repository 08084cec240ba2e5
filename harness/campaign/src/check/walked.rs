//! Shaders that the lifter does not support: the findings of the grid interpreter.

use std::time::{Duration, Instant};

use frontend::grid::{GridFinding, GridVerdict};
use frontend::{
    AnalysisOptions, DEFAULT_UNROLL, InvocationId, Refusal, SpirvModule, Until, fix_walk_findings,
};
use litmus::Race;
use model::Budget;
use results::wire::{CheckLine, Executions, FindingRecord, Query, RaceLine};

use super::entry::entry_line;
use super::{CheckOptions, Checked};
use crate::CommandOutcome;
use crate::patience::patience;

/// Returns true for the model that the grid interpreter implements.
pub fn has_walk(model: &model::Model) -> bool {
    model.name() == model::Model::default_for(litmus::Dialect::Vulkan)
}

/// The explanation of a kernel by the walk.
pub struct ExplainedWalk {
    /// The findings with their fixes, as `race` reports them.
    pub line: RaceLine,
    pub outcome: CommandOutcome,
    /// The index and the two invocations of each race.
    pub pairs: Vec<(usize, Vec<InvocationId>)>,
    /// True if no grid was given and two workgroups have a finding that one has not.
    pub needs_grid: bool,
}

/// An entry point to interpret.
pub struct WalkedEntryPoint<'a> {
    pub file: &'a str,
    pub module: &'a SpirvModule,
    /// The compiler, if the file is source code.
    pub compiler: Option<&'a str>,
    /// The inputs and the entry point.
    pub options: &'a AnalysisOptions,
}

impl WalkedEntryPoint<'_> {
    /// Returns the findings, and the pairs of invocations that race. None if the interpreter fails,
    /// or the question is one that it does not support.
    pub fn explained(&self, model: &model::Model, time: Duration) -> Option<ExplainedWalk> {
        if !has_walk(model) || self.options.assertion.is_some() {
            return None;
        }
        let stop = patience(time);
        let report = frontend::judge(self.module, self.options, model, Budget::until(&stop)).ok()?;
        let outcome = match report.verdict {
            _ if !report.findings.is_empty() => CommandOutcome::RuleBroken,
            GridVerdict::Clean | GridVerdict::Racy => CommandOutcome::Success,
            GridVerdict::Undecided | GridVerdict::NeedsInputs => CommandOutcome::Environment,
        };
        let pair = |(number, found): (usize, &GridFinding)| match &found.at[..] {
            [one, other] if found.kind.is_race() && one.invocation != other.invocation => {
                Some((number, vec![one.invocation, other.invocation]))
            }
            _ => None,
        };
        let pairs = report.findings.iter().enumerate().filter_map(pair).collect();
        let needs_grid = report.two_workgroup_finding.is_some();
        let fixes = fix_walk_findings(self.module, self.options, &report, &patience(time));
        let mut line = answers::race_line(self.file, self.module, report);
        answers::add_fixes(&mut line, self.module, &fixes);
        line.compiler = self.compiler.map(str::to_owned);
        Some(ExplainedWalk { line, outcome, pairs, needs_grid })
    }

    /// Answers by interpreting the grid; `lacks` is the reason why the model cannot answer queries.
    ///
    /// # Errors
    /// The refusal of the interpreter; `None` if the question is one that it does not support.
    pub fn answered(
        &self,
        model: &model::Model,
        asked: CheckOptions,
        started: Instant,
        lacks: &str,
    ) -> Result<Checked, Option<Refusal>> {
        // The interpreter implements only the newest model, and no fairness.
        if !has_walk(model) || asked.progress.is_some() {
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
            // After undefined behaviour, and for schedules that were not tried, the result is unknown.
            GridVerdict::Clean | GridVerdict::Racy | GridVerdict::NeedsInputs => Race::Unknown,
        };
        let findings: Vec<FindingRecord> = report
            .findings
            .iter()
            .map(|found| answers::finding_record(self.file, self.module, found))
            .collect();
        let mut outcome =
            if findings.is_empty() { CommandOutcome::Success } else { CommandOutcome::RuleBroken };
        let compiled = self.compiler.map(|compiler| format!("{}: compiled by {compiler}", self.file));
        let mut warnings: Vec<String> = compiled.into_iter().collect();
        warnings.push(format!("{}: `{}` for {}", self.file, report.entry, report.coverage));
        let queries: Vec<Query> = (self.options.assertion.iter())
            .map(|formula| Query { text: format!("forall ({formula})"), holds: None, expected: Some(true) })
            .collect();
        for query in &queries {
            outcome.escalate_to(CommandOutcome::Environment);
            warnings.push(format!("{}: `{}` has no answer{lacks}", self.file, query.text));
        }
        let line = CheckLine {
            queries,
            executions: Executions { candidate: report.schedules, consistent: report.schedules },
            bound: self.options.unroll.unwrap_or(DEFAULT_UNROLL),
            runs: report.schedules,
            findings: Some(findings),
            compiler: self.compiler.map(str::to_owned),
            two_workgroup_finding: report.two_workgroup_finding,
            ..entry_line(self.file, &report.entry, model, race, started)
        };
        Ok(Checked::Answered(Box::new(line), warnings, outcome))
    }
}
