//! `run`: tests on devices, judged as they come.

pub mod execute;
pub mod forward;
pub mod misbehave;
pub mod plan;
pub mod progress;
pub mod verdict;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use rand::Rng;
use results::folder::{self, Folder};
use results::wire::{RunLine, VerdictWord};
use results::write::{Format, RunWriter, run_writer};
use runner::Variant;
use signal_hook::consts::{SIGINT, SIGTERM};
use sim::{Fault, SimDevice};

use crate::arguments::Run;
use crate::choice;
use crate::exit::{Failure, Outcome};
use crate::inputs::{self, Loaded};
use crate::output::{Data, cannot_print, complain, layout, say};
use execute::Execution;
use misbehave::Misbehaviour;
use plan::Plan;
use verdict::LineContext;

/// The suite that is run when nothing else is asked for.
const DEFAULT_SUITE: &str = "quick";
/// The time for it.
const DEFAULT_TIME: Duration = Duration::from_secs(60);
/// The part of the time that predictions may take.
const PREDICTION_PART: u32 = 4;
/// Where results folders are made when no other place is named.
const DEFAULT_OUT: &str = "vk-litmus-out";

/// How long each test is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// All tests on one device together.
    Time(Duration),
    /// Each test on each device.
    Instances(u64),
}

impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Budget::Time(time) => write!(f, "{} a device", humantime::format_duration(*time)),
            Budget::Instances(instances) => write!(f, "{instances} instances a test"),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// What ended it before anything was run, or kept it from going on.
pub fn run(arguments: &Run, quiet: bool) -> Result<Outcome, Failure> {
    if forward::is_asked(arguments) {
        return forward::run(arguments, quiet);
    }
    refuse_what_is_not_available(arguments)?;
    let mut writer = run_writer(arguments.format, Data::new(), layout()).map_err(Failure::input_error)?;
    let mut outcome = Outcome::Success;
    let tests = load(arguments, &mut outcome)?;
    match run_tests(arguments, quiet, tests, writer.as_mut()) {
        Ok(ran) => outcome.note(ran),
        // What was wrong before weighs more than a device that is not there.
        Err(failure) => {
            complain(failure.report());
            outcome.note(failure.outcome());
        }
    }
    Ok(outcome)
}

/// Runs what is a test.
fn run_tests(
    arguments: &Run,
    quiet: bool,
    tests: Vec<Loaded>,
    writer: &mut dyn RunWriter,
) -> Result<Outcome, Failure> {
    let started = Instant::now();
    let misbehaviour = Misbehaviour::parse(&arguments.misbehave)?;
    let budget = match (arguments.instances, arguments.time) {
        (Some(instances), _) => Budget::Instances(instances),
        (None, time) => Budget::Time(time.unwrap_or(DEFAULT_TIME)),
    };
    if tests.is_empty() {
        if arguments.shard.is_some() {
            writer.finish().map_err(cannot_print)?;
            return Ok(Outcome::Success);
        }
        return Err(Failure::input_message("no test to run"));
    }
    if let Some(path) = arguments.out.as_deref().filter(|_| !arguments.resume) {
        folder::ensure_empty(path).map_err(folder_failure)?;
    }
    let stress = arguments.stress.as_deref().map(plan::stress).transpose()?;
    let simulated = [SimDevice::NAME.to_owned()];
    let fault = fault(arguments)?;
    let devices = if fault == Fault::None { &arguments.device[..] } else { &simulated[..] };
    let (mut targets, environment) = plan::targets(devices, stress.as_ref())?;
    plan::break_rule(&mut targets, fault);
    let prediction_time = match budget {
        Budget::Time(time) => Some(time / PREDICTION_PART),
        Budget::Instances(_) => None,
    };
    let plan = Plan::new(targets, tests, arguments.model.as_deref(), prediction_time)?;

    let (folder, seed, done) = open_folder(arguments, &plan, budget, quiet)?;
    let context = LineContext {
        seed,
        instances: arguments.instances,
        model: arguments.model.clone(),
        stress: arguments.stress.clone(),
        fault: arguments.fault.clone(),
    };
    let execution = Execution {
        plan: &plan,
        context,
        budget,
        started,
        jobs: arguments.jobs.get(),
        retries: arguments.retries,
        validate: arguments.validate,
        environment: &environment,
        misbehaviour: &misbehaviour,
        interrupted: interrupted()?,
        // Lines that come while tests run would tear the bar apart.
        progress: !quiet && (arguments.format == Format::Text || !std::io::stdout().is_terminal()),
    };
    let ended = execution.go(folder, done, writer)?;
    writer.finish().map_err(cannot_print)?;

    let mut outcome = Outcome::Success;
    ended.folder.finish(&ended.lines).map_err(folder_failure)?;
    if !quiet {
        say(&format!("results in {}", ended.folder.path().display()));
    }
    if ended.validation_messages > 0 {
        say(&format!("error: {} messages of the validation layers", ended.validation_messages));
        outcome.note(Outcome::Environment);
    }
    if ended.interrupted {
        say(&format!("interrupted: go on with --resume --out {}", ended.folder.path().display()));
        outcome.note(Outcome::Environment);
    }
    outcome.note(judgement_outcome(&ended.lines, arguments.strict));
    Ok(outcome)
}

/// The fault of the simulated GPU that is asked for.
fn fault(arguments: &Run) -> Result<Fault, Failure> {
    let Some(name) = &arguments.fault else { return Ok(Fault::None) };
    if arguments.device.iter().any(|device| device != SimDevice::NAME) {
        return Err(Failure::input_message("`--fault` goes with `--device sim` alone"));
    }
    name.parse().map_err(Failure::input_error)
}

fn refuse_what_is_not_available(arguments: &Run) -> Result<(), Failure> {
    let refused = [
        ("--expect", arguments.expect.is_some()),
        ("--save-baseline", arguments.save_baseline),
        ("--gtest_list_tests", arguments.gtest_list_tests),
        ("--gtest_filter", arguments.gtest_filter.is_some()),
        ("--gtest_output", arguments.gtest_output.is_some()),
    ];
    match refused.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::not_available(format!("`{flag}`"))),
        None => Ok(()),
    }
}

/// The tests of this part of the run. What is no test is told, and the others still run.
fn load(arguments: &Run, outcome: &mut Outcome) -> Result<Vec<Loaded>, Failure> {
    let (suite, cts_name) = (arguments.suite.as_deref(), arguments.cts_name.as_deref());
    let mut sources = inputs::collect(&arguments.tests, suite, cts_name, || inputs::of_suite(DEFAULT_SUITE))?;
    // Tests that nobody named are left out where the model is not theirs.
    let named = !arguments.tests.is_empty() || cts_name.is_some();
    if let Some(asked) = arguments.model.as_ref().filter(|_| !named) {
        let chosen = choice::load(asked)?;
        sources.retain(|source| source.suits(&chosen.model));
    }
    let mut tests = Vec::new();
    for source in sources {
        if let Err(error) = source.variant.parse::<Variant>() {
            return Err(Failure::input_message(format!("{}: {error}", source.argument)));
        }
        match source.load() {
            Ok(loaded) => tests.push(loaded),
            Err(rejected) => {
                let (source, rejection) = *rejected;
                let failure = rejection.failure(&source.file);
                outcome.note(failure.outcome());
                complain(failure.report());
            }
        }
    }
    Ok(plan::part(tests, arguments.shard))
}

/// Verdicts that are there already, by device and test id.
pub type Done = BTreeMap<(String, String), RunLine>;

fn open_folder(
    arguments: &Run,
    plan: &Plan,
    budget: Budget,
    quiet: bool,
) -> Result<(Folder, u64, Done), Failure> {
    let planned = match &arguments.out {
        Some(path) if arguments.resume => folder::planned(path).map_err(folder_failure)?,
        _ => None,
    };
    let seed = match (arguments.seed, &planned) {
        (Some(seed), _) => seed,
        (None, Some(planned)) => planned.seed,
        (None, None) => {
            // Short enough to be typed again.
            let seed = u64::from(rand::rng().next_u32());
            if !quiet {
                say(&format!("seed {seed}"));
            }
            seed
        }
    };
    let record = plan.record(arguments, &budget.to_string(), seed)?;
    let path: PathBuf = match &arguments.out {
        Some(path) => path.clone(),
        None => {
            let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
            folder::fresh(DEFAULT_OUT.as_ref(), &now.replace(':', "-")).map_err(folder_failure)?
        }
    };
    if !arguments.resume {
        return Ok((Folder::start(&path, &record).map_err(folder_failure)?, seed, Done::new()));
    }
    let (folder, recovered) = Folder::resume(&path, &record).map_err(folder_failure)?;
    if recovered.truncated_bytes > 0 {
        say("warning: the journal ended in the middle of a line: that test is run again");
    }
    let done =
        recovered.lines.into_iter().map(|line| ((line.device.clone(), line.id.clone()), line)).collect();
    Ok((folder, seed, done))
}

fn folder_failure(error: folder::FolderError) -> Failure {
    if error.is_input() { Failure::input_error(error) } else { Failure::environment_error(error) }
}

/// A flag that SIGINT and SIGTERM set; a second one ends the program at once.
fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, flag.clone())
            .and_then(|_| signal_hook::flag::register(signal, flag.clone()))
            .map_err(Failure::environment_error)?;
    }
    Ok(flag)
}

/// What the verdicts make of the exit code.
fn judgement_outcome(lines: &[RunLine], strict: bool) -> Outcome {
    let mut outcome = Outcome::Success;
    let mut unexercised = 0_usize;
    for line in lines {
        match line.verdict {
            VerdictWord::Violates => outcome.note(Outcome::RuleBroken),
            VerdictWord::Inconclusive if line.reason.as_deref() == Some("not exercised") => unexercised += 1,
            VerdictWord::Inconclusive => outcome.note(Outcome::Environment),
            VerdictWord::Conforms | VerdictWord::Undefined | VerdictWord::Skipped => {}
        }
    }
    if unexercised > 0 {
        say(&format!("warning: {unexercised} verdicts are inconclusive, as the test was not exercised"));
        if strict {
            outcome.note(Outcome::RuleBroken);
        }
    }
    outcome
}
