//! Shaders that the lifter does not support: the findings of the grid interpreter.

use std::time::{Duration, Instant};

use frontend::grid::{GridFinding, GridVerdict};
use frontend::{
    AnalysisOptions, DEFAULT_UNROLL, DeadlinePredicate, InvocationId, Refusal, SpirvModule, fix_walk_findings,
};
use litmus::Race;
use model::Budget;
use results::wire::{CheckLine, Executions, FindingRecord, Query, RaceLine};

use super::entry::entry_line;
use super::{CheckOptions, CheckResult};
use crate::CommandOutcome;
use crate::time_limit::stop_after;

/// Returns true for the model that the grid interpreter implements.
pub fn is_interpreter_model(model: &model::Model) -> bool {
    model.name() == model::Model::default_for_dialect(litmus::Dialect::Vulkan)
}

/// The explanation of an entry point by the grid interpreter.
pub struct InterpreterExplanation {
    /// The findings with their fixes, as `race` reports them.
    pub line: RaceLine,
    pub outcome: CommandOutcome,
    /// The index and the two invocations of each race.
    pub pairs: Vec<(usize, Vec<InvocationId>)>,
    /// True if no grid was given and two workgroups have a finding that one has not.
    pub needs_grid: bool,
}

pub struct InterpretedEntryPoint<'a> {
    pub file: &'a str,
    pub module: &'a SpirvModule,
    /// The compiler, if the file is source code.
    pub compiler: Option<&'a str>,
    /// The inputs and the entry point.
    pub options: &'a AnalysisOptions,
}

impl InterpretedEntryPoint<'_> {
    /// Returns the findings, and the pairs of invocations that race. None if the interpreter fails,
    /// or the question is one that it does not support.
    pub fn explain(&self, model: &model::Model, time: Duration) -> Option<InterpreterExplanation> {
        if !is_interpreter_model(model) || self.options.assertion.is_some() {
            return None;
        }
        let stop = stop_after(time);
        let report = frontend::judge(self.module, self.options, model, Budget::until(&stop)).ok()?;
        let outcome = match report.verdict {
            _ if !report.findings.is_empty() => CommandOutcome::RuleBroken,
            GridVerdict::Clean | GridVerdict::Racy => CommandOutcome::Success,
            GridVerdict::Undecided | GridVerdict::NeedsInputs => CommandOutcome::Environment,
        };
        let race_pair = |(number, found): (usize, &GridFinding)| match &found.at[..] {
            [one, other] if found.kind.is_race() && one.invocation != other.invocation => {
                Some((number, vec![one.invocation, other.invocation]))
            }
            _ => None,
        };
        let pairs = report.findings.iter().enumerate().filter_map(race_pair).collect();
        let needs_grid = report.two_workgroup_finding.is_some();
        let fixes = fix_walk_findings(self.module, self.options, &report, &stop_after(time));
        let mut line = answers::race_line(self.file, self.module, report);
        answers::add_fixes(&mut line, self.module, &fixes);
        line.compiler = self.compiler.map(str::to_owned);
        Some(InterpreterExplanation { line, outcome, pairs, needs_grid })
    }

    /// Answers by interpreting the grid; `no_answer_reason` is that of the model.
    ///
    /// # Errors
    /// The refusal of the interpreter; `None` if the question is one that it does not support.
    pub fn check(
        &self,
        model: &model::Model,
        check_options: CheckOptions,
        started: Instant,
        no_answer_reason: &str,
    ) -> Result<CheckResult, Option<Refusal>> {
        // The interpreter implements only the newest model, and no fairness.
        if !is_interpreter_model(model) || check_options.progress.is_some() {
            return Err(None);
        }
        let remaining = check_options.timeout.saturating_sub(started.elapsed());
        let stop = stop_after(remaining);
        let until = Some(DeadlinePredicate::new(stop_after(remaining.max(check_options.timeout / 2))));
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
            warnings.push(format!("{}: `{}` has no answer{no_answer_reason}", self.file, query.text));
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
        Ok(CheckResult::Answered(Box::new(line), warnings, outcome))
    }
}
