//! Shaders that the lifter does not support: the findings of the grid interpreter.

use std::time::Duration;

use frontend::grid::{GridFinding, GridVerdict};
use frontend::{
    AnalysisOptions, DEFAULT_UNROLL, DeadlinePredicate, InvocationId, Refusal, fix_walk_findings,
};
use litmus::Race;
use model::Budget;
use results::wire::{CheckLine, Executions, Query, RaceLine};
use results::write::race::describe_coverage;

use super::EntryPointCheck;
use crate::CommandOutcome;
use crate::check::CheckResult;
use crate::shader::shader_analysis::{ShaderAnalysis, is_interpreter_model};
use crate::time_limit::stop_after;

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

impl ShaderAnalysis<'_> {
    /// Returns the findings, and the pairs of invocations that race. None if the interpreter fails,
    /// or the question is one that it does not support.
    pub fn explain_by_walk(&self, time: Duration) -> Option<InterpreterExplanation> {
        if !is_interpreter_model(self.model) || self.options.assertion.is_some() {
            return None;
        }
        let stop = stop_after(time);
        let report = frontend::judge(self.module, &self.options, self.model, Budget::until(&stop)).ok()?;
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
        let fixes = fix_walk_findings(self.module, &self.options, &report, &stop_after(time));
        let mut line = answers::race_line(self.file, self.module, &self.options, report);
        answers::add_fixes(&mut line, self.module, &fixes);
        line.compiler = self.compiler.map(str::to_owned);
        Some(InterpreterExplanation { line, outcome, pairs, needs_grid })
    }
}

impl EntryPointCheck<'_> {
    /// Answers by interpreting the grid; `no_answer_reason` is that of the model.
    ///
    /// # Errors
    /// The refusal of the interpreter; `None` if the question is one that it does not support.
    pub(super) fn check_by_walk(&self, no_answer_reason: &str) -> Result<CheckResult, Option<Refusal>> {
        let ShaderAnalysis { file, module, model, ref options, .. } = *self.analysis;
        // The interpreter implements only the newest model, and no fairness.
        if !is_interpreter_model(model) || self.check_options.progress.is_some() {
            return Err(None);
        }
        let remaining = self.remaining_time();
        let stop = stop_after(remaining);
        let until = Some(DeadlinePredicate::new(stop_after(remaining.max(self.check_options.timeout / 2))));
        let walk_options = AnalysisOptions { deadline: until, ..options.clone() };
        let report = frontend::judge(module, &walk_options, model, Budget::until(&stop)).map_err(Some)?;
        let race = match report.verdict {
            GridVerdict::Undecided => return Err(report.refusal),
            _ if report.findings.iter().any(|found| found.kind.is_race()) => Race::Racy,
            GridVerdict::Clean if !report.is_schedule_dependent => Race::Free,
            // After undefined behaviour, and for schedules that were not tried, the result is unknown.
            GridVerdict::Clean | GridVerdict::Racy | GridVerdict::NeedsInputs => Race::Unknown,
        };
        let (entry, schedules) = (report.entry.clone(), report.schedules);
        let two_workgroup_finding = report.two_workgroup_finding.clone().map(answers::describe_wider_grid);
        let walked = answers::race_line(file, module, options, report);
        let coverage = describe_coverage(&walked).unwrap_or_default();
        let findings = walked.findings;
        let mut outcome =
            if findings.is_empty() { CommandOutcome::Success } else { CommandOutcome::RuleBroken };
        let notes = self.analysis.compiler_note().into_iter().chain([format!("`{entry}` for {coverage}")]);
        let mut warnings: Vec<String> = notes.map(|note| format!("{file}: {note}")).collect();
        let queries: Vec<Query> = (options.assertion.iter())
            .map(|formula| Query { text: format!("forall ({formula})"), holds: None, expected: Some(true) })
            .collect();
        for query in &queries {
            outcome.escalate_to(CommandOutcome::Environment);
            warnings.push(format!("{file}: `{}` has no answer{no_answer_reason}", query.text));
        }
        let line = CheckLine {
            queries,
            executions: Executions { candidate: schedules, consistent: schedules },
            bound: options.unroll.unwrap_or(DEFAULT_UNROLL),
            runs: schedules,
            findings: Some(findings),
            compiler: self.analysis.compiler.map(str::to_owned),
            two_workgroup_finding,
            ..self.entry_line(&entry, race)
        };
        Ok(CheckResult::Answered(Box::new(line), warnings, outcome))
    }
}
