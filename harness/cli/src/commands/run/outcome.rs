//! The exit code of a run, and the messages that explain it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use campaign::expectations::RunExpectations;
use campaign::run::RunResult;
use campaign::shard::Shard;
use results::Reason;
use results::wire::{RunLine, VerdictWord};
use results::write::{ExitEffect, OutputFormat, RunWriter, number};

use super::{COMMAND_FILE, write_command};
use crate::arguments::Run;
use crate::exit::Outcome;
use crate::output::print_message;

/// Returns the exit code for `git bisect`, from each verdict with true if its test was exercised, and from
/// the outcome of the run.
pub(super) fn bisect_exit_code(verdicts: &[(VerdictWord, bool)], ended: Outcome) -> Outcome {
    if verdicts.iter().any(|(verdict, _)| *verdict == VerdictWord::Violates) {
        return Outcome::RuleBroken;
    }
    let is_good =
        |(verdict, exercised): &(VerdictWord, bool)| *verdict == VerdictWord::Conforms && *exercised;
    let all_good = !verdicts.is_empty() && verdicts.iter().all(is_good);
    if all_good && ended == Outcome::Success { Outcome::Success } else { Outcome::Untested }
}

/// Collects verdicts for a bisection; a failed assertion about a shader marks the commit as bad.
pub(super) fn collect_verdicts(ended: &RunResult, verdicts: &mut Vec<(VerdictWord, bool)>) {
    let verdict =
        |line: &RunLine| if line.broken_claim().is_some() { VerdictWord::Violates } else { line.verdict };
    verdicts.extend(ended.lines.iter().map(|line| (verdict(line), line.exercised)));
}

/// Reports that a shard has no test. This is not an error, and is printed even with `--quiet`.
pub(super) fn report_empty_shard(part: Shard, count: u64, noun: &str) {
    print_message(&format!("part {part} of {} is empty", number::plural(count, noun)));
}

/// Reports files of the results folder that another process changed, and returns their effect on the exit code.
pub(super) fn changed_files_outcome(ended: &RunResult, arguments: &Run) -> Outcome {
    let Some(first) = ended.changed_files.first() else { return Outcome::Success };
    let path = ended.folder.path();
    if first.is_restored && !path.join(COMMAND_FILE).exists() {
        // Without it, `--resume` needs the whole command line.
        let _ = write_command(arguments, path);
    }
    for file in &ended.changed_files {
        let end = match file.is_restored {
            true => "it was written again from memory; check what else uses this folder",
            false => "another run uses the folder now, so it was not written: run again with another `--out`",
        };
        let file = path.join(file.name);
        print_message(&format!("error: {} was removed or changed during the run: {end}", file.display()));
    }
    Outcome::Environment
}

/// Returns the effect of a verdict on the exit code.
fn exit_effect(line: &RunLine, arguments: &Run, expected: &RunExpectations) -> ExitEffect {
    let triage = expected.triage(line);
    let fails = triage.is_unmet()
        || line.broken_claim().is_some()
        || !triage.is_excused()
            && match line.verdict {
                VerdictWord::Violates => true,
                VerdictWord::Inconclusive if line.has_reason(Reason::NotExercised) => arguments.strict,
                VerdictWord::Inconclusive => !(arguments.allow_unfinished && line.has_reason(Reason::NoTime)),
                VerdictWord::Undefined => is_undefined_shader(line, arguments),
                VerdictWord::Conforms | VerdictWord::Skipped => false,
            };
    if fails { ExitEffect::Fails } else { ExitEffect::Accepted }
}

/// Returns true for a shader that is undefined in its language, or in its module if that counts.
fn is_undefined_shader(line: &RunLine, arguments: &Run) -> bool {
    line.shader.as_ref().is_some_and(|shader| !shader.is_right_in_language || arguments.strict_compiler)
}

/// Passes verdicts to a writer with their effect on the exit code.
pub(super) struct EffectWriter<'a> {
    pub(super) writer: &'a mut dyn RunWriter,
    pub(super) arguments: &'a Run,
    pub(super) expected: &'a RunExpectations,
}

impl RunWriter for EffectWriter<'_> {
    fn announce_tests(&mut self, ids: &[&str]) -> io::Result<()> {
        self.writer.announce_tests(ids)
    }

    fn announce_test(&mut self, id: &str) -> io::Result<()> {
        self.writer.announce_test(id)
    }

    fn write_verdict(&mut self, line: &RunLine) -> io::Result<()> {
        let effect = exit_effect(line, self.arguments, self.expected);
        self.writer.write_with_effect(line, effect)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.writer.finish()
    }
}

/// Returns the exit code of the verdicts, without unmet expectations, and prints why it is not 0 and what to do;
/// `folder` holds the results.
pub(super) fn judgement_outcome(
    lines: &[RunLine],
    arguments: &Run,
    expected: &RunExpectations,
    quiet: bool,
    folder: &Path,
) -> Outcome {
    let mut outcome = Outcome::Success;
    let (mut violating, mut weak, mut unfinished) = (0_usize, 0_usize, 0_usize);
    let mut unexercised: Vec<&RunLine> = Vec::new();
    let (mut undefined, mut undefined_modules) = (0_u64, 0_u64);
    let mut undecided: BTreeMap<&str, u64> = BTreeMap::new();
    let mut first_violation = None;
    let is_skipped = |line: &RunLine| line.verdict == VerdictWord::Skipped;
    let is_named = arguments.gtest_filter.is_some();
    let is_listed = lines.iter().all(|line| expected.triage(line).is_excused());
    // A Google Test runner runs one test per process and reports a skipped one as such.
    let is_intended = if arguments.strict { is_named && is_listed } else { is_named || is_listed };
    if lines.iter().all(is_skipped) && !is_intended {
        let reason = |line: &RunLine| line.detail.clone().or_else(|| line.reason.clone());
        let reasons: BTreeSet<String> = lines.iter().filter_map(reason).collect();
        let reasons = reasons.into_iter().collect::<Vec<_>>().join("; ");
        print_message(&format!(
            "error: every test was skipped: {reasons}; `vk-litmus devices` lists other devices"
        ));
        outcome.escalate_to(Outcome::Environment);
    }
    for line in lines.iter().filter(|line| !expected.triage(line).is_excused()) {
        match line.verdict {
            VerdictWord::Violates => {
                first_violation.get_or_insert(line.id.as_str());
                violating += 1;
                weak += usize::from(results::is_weak_violation(line));
                outcome.escalate_to(Outcome::RuleBroken);
            }
            VerdictWord::Inconclusive if line.has_reason(Reason::NotExercised) => {
                unexercised.push(line);
            }
            VerdictWord::Inconclusive if arguments.allow_unfinished && line.has_reason(Reason::NoTime) => {
                unfinished += 1;
            }
            VerdictWord::Inconclusive => {
                *undecided.entry(line.reason.as_deref().unwrap_or("inconclusive")).or_default() += 1;
                // Google Test distinguishes only failed tests and crashed programs.
                let is_gtest = arguments.format == OutputFormat::Gtest;
                outcome.escalate_to(if is_gtest { Outcome::RuleBroken } else { Outcome::Environment });
            }
            VerdictWord::Undefined if is_undefined_shader(line, arguments) => {
                undefined += 1;
                outcome.escalate_to(Outcome::RuleBroken);
            }
            VerdictWord::Undefined if line.shader.is_some() => undefined_modules += 1,
            VerdictWord::Conforms | VerdictWord::Undefined | VerdictWord::Skipped => {}
        }
    }
    if unfinished > 0 && !quiet {
        let tests = number::plural(unfinished as u64, "test");
        print_message(&format!("warning: {tests} had no time and did not run (`--time` gives more)"));
    }
    if !unexercised.is_empty() {
        if !quiet || (arguments.strict && arguments.format != OutputFormat::Gtest) {
            let longer = match arguments.instances {
                Some(instances) => format!("--instances {}", instances.saturating_mul(10)),
                None => "--time 2m".to_owned(),
            };
            print_message(&not_exercised_warning(&unexercised, arguments.strict, &longer));
        }
        if arguments.strict {
            outcome.escalate_to(Outcome::RuleBroken);
        }
    }
    if !undecided.is_empty() {
        print_message(&undecided_summary(&undecided, folder));
    }
    if undefined > 0 && arguments.format != OutputFormat::Gtest {
        let shaders = number::plural(undefined, "shader");
        print_message(&format!(
            "error: undefined behaviour in {shaders}, so the device was not judged: `vk-litmus race SHADER` explains it"
        ));
    }
    if undefined_modules > 0 && !quiet {
        let modules = number::plural(undefined_modules, "module");
        print_message(&format!(
            "warning: {modules} undefined, whose source is right in its language, so the device was not judged: `vk-litmus race SHADER` explains it; `--strict-compiler` makes this an error"
        ));
    }
    if let Some(first) = first_violation.filter(|_| arguments.format != OutputFormat::Gtest) {
        print_message(&violation_summary(violating, weak, first, folder));
    }
    outcome
}

/// Describes tests whose threads never overlapped, or shaders with few dispatches, and the option for a longer run.
fn not_exercised_warning(lines: &[&RunLine], strict: bool, longer: &str) -> String {
    let (severity, note) =
        if strict { ("error", "") } else { ("warning", "; `--strict` makes this an error") };
    let tests = number::plural(lines.len() as u64, "test");
    let verb = if lines.len() == 1 { "is" } else { "are" };
    let (why, otherwise) = match lines.iter().all(|line| line.shader.is_some()) {
        true => ("there were too few dispatches", ""),
        false => ("the threads overlapped too seldom", " or on an idle machine"),
    };
    format!("{severity}: {tests} {verb} inconclusive: {why}. Run longer (`{longer}`){otherwise}{note}")
}

/// Describes how to continue after violations.
fn violation_summary(count: usize, weak: usize, first: &str, folder: &Path) -> String {
    let (tests, folder) = (number::plural(count as u64, "test"), folder.display());
    let weak = results::describe_weak_violations(weak, count);
    format!(
        "error: the device broke a rule in {tests}{weak}: `vk-litmus report {folder}` explains it, `vk-litmus repro {first} --results {folder} --out repro` makes a bug report"
    )
}

/// Describes the tests without a verdict, counted by reason, and how to get one.
fn undecided_summary(undecided: &BTreeMap<&str, u64>, folder: &Path) -> String {
    let folder = folder.display();
    let tests = number::plural(undecided.values().sum(), "test");
    let reasons: Vec<String> = undecided.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let advice = if undecided.keys().all(|reason| *reason == Reason::NoTime.name()) {
        format!("`vk-litmus run --resume {folder} --time 2m` runs them, `--allow-unfinished` accepts it")
    } else {
        format!("`vk-litmus report {folder}` lists them with causes and advice")
    };
    format!("error: {tests} without a verdict ({}): {advice}", reasons.join(", "))
}
