//! `run`: tests on devices, judged as they come.

pub mod execute;
pub mod expect;
pub mod forward;
pub mod gtest;
pub mod plan;
pub mod progress;
pub mod verdict;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use campaign::choice;
use campaign::inputs;
use campaign::misbehave::Misbehaviour;
use campaign::source::Loaded;
use campaign::{shard, targets};
use rand::Rng;
use results::expectation::{Expectations, Standing};
use results::folder::{self, Folder};
use results::wire::{RunLine, VerdictWord};
use results::write::gtest::Gtest;
use results::write::{Format, RunWriter, run_writer};
use runner::Variant;
use signal_hook::consts::{SIGINT, SIGTERM};
use sim::{Fault, SimDevice};

use crate::arguments::Run;
use crate::commands::codegen::beside;
use crate::commands::report::read_failure;
use crate::exit::{Failure, Outcome};
use crate::output::{Data, cannot_print, complain, layout, say};
use execute::Execution;
use expect::Expected;
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
/// The devices where the command line names none.
const DEVICE_VARIABLE: &str = "VK_LITMUS_DEVICE";

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
    // Runners of Google Test show everything on standard error as an error.
    let quiet = quiet || gtest::is_spoken(arguments);
    let arguments = &complete(arguments, quiet)?;
    let output = arguments.gtest_output.as_deref().map(gtest::Output::parse).transpose()?;
    let mut writer = match arguments.format {
        Format::Gtest => None,
        _ if output.is_some() => {
            return Err(Failure::input_message("`--gtest_output` goes with `--format gtest` alone"));
        }
        format => Some(run_writer(format, Data::coloured(), layout()).map_err(Failure::input_error)?),
    };
    let expectations = arguments.expect.as_deref().map(expect::load).transpose()?.unwrap_or_default();
    let mut outcome = Outcome::Success;
    let (tests, ids) = load(arguments, &mut outcome)?;
    if arguments.gtest_list_tests {
        outcome.note(gtest::list_tests(&tests)?);
        return Ok(outcome);
    }
    let run = Prepared { arguments, quiet, ids, expectations, output };
    let writer = writer.as_mut().map(|writer| writer.as_mut() as &mut dyn RunWriter);
    match run.tests(tests, writer) {
        Ok(ran) => outcome.note(ran),
        // What was wrong before weighs more than a device that is not there.
        Err(failure) => {
            complain(failure.report());
            outcome.note(Outcome::from(&failure));
        }
    }
    Ok(outcome)
}

/// What the environment says where the command line does not.
fn complete(arguments: &Run, quiet: bool) -> Result<Run, Failure> {
    let mut arguments = arguments.clone();
    let get = |name: &str| std::env::var(name).ok();
    if arguments.device.is_empty() && arguments.fault.is_none() {
        let named = get(DEVICE_VARIABLE).unwrap_or_default();
        arguments.device = named.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    }
    // A list has all tests, and whoever asks for tests by name has divided them already.
    let protocol = arguments.gtest_list_tests || (arguments.gtest_filter.is_some() && gtest::is_driven());
    if arguments.shard.is_none() && !protocol {
        if let Some(named) = shard::from_environment(&get).map_err(Failure::input_error)? {
            if !quiet {
                let (shard, variables) = (named.shard, named.variables);
                say(&format!("part {shard} of the tests, by {variables}; --shard 1/1 runs all"));
            }
            arguments.shard = Some(named.shard);
        }
        gtest::acknowledge_shards()?;
    }
    Ok(arguments)
}

/// A run of which everything is known but the devices.
struct Prepared<'a> {
    arguments: &'a Run,
    quiet: bool,
    /// The ids of all tests that were asked for, those of other parts too.
    ids: Vec<String>,
    expectations: Expectations,
    output: Option<gtest::Output>,
}

impl Prepared<'_> {
    /// Runs what is a test. Without a writer it is Google Test's protocol that is written.
    fn tests(self, tests: Vec<Loaded>, writer: Option<&mut dyn RunWriter>) -> Result<Outcome, Failure> {
        let Prepared { arguments, quiet, .. } = self;
        let started = Instant::now();
        let misbehaviour = Misbehaviour::parse(&arguments.misbehave)?;
        let budget = self.budget(tests.len());
        if tests.is_empty() {
            return self.nothing(writer);
        }
        if let Some(path) = arguments.out.as_deref().filter(|_| !arguments.resume) {
            folder::ensure_empty(path).map_err(folder_failure)?;
        }
        let stress = arguments.stress.as_deref().map(targets::stress).transpose()?;
        let simulated = [SimDevice::NAME.to_owned()];
        let fault = fault(arguments)?;
        let devices = if fault == Fault::None { &arguments.device[..] } else { &simulated[..] };
        let mut targets = targets::targets(devices, stress.as_ref(), &say)?;
        if writer.is_none() && targets.len() > 1 {
            return Err(Failure::input_message("names of Google Test hold no device: run on one at a time"));
        }
        targets::break_rule(&mut targets, fault);
        let prediction_time = match budget {
            Budget::Time(time) => Some(time / PREDICTION_PART),
            Budget::Instances(_) => None,
        };
        let expected = Expected::new(self.expectations, &self.ids, expect::devices(&targets)?);
        let skips = |device: &str, id: &str| expected.skips(device, id).map(|place| expect::reason(&place));
        let plan = Plan::new(targets, tests, arguments.model.as_deref(), prediction_time, &skips)?;

        // From the journal's first moment on, an interruption ends in order.
        let interrupted = interrupted()?;
        let (folder, seed, done) = open_folder(arguments, &plan, budget, quiet)?;
        let context = LineContext {
            seed,
            instances: arguments.instances,
            model: arguments.model.clone(),
            stress: arguments.stress.clone(),
            fault: arguments.fault.clone(),
        };
        let execute = |remembered: &Done, writer: &mut dyn RunWriter| {
            let execution = Execution {
                plan: &plan,
                context,
                budget,
                started,
                jobs: arguments.jobs.get(),
                retries: arguments.retries,
                validate: arguments.validate,
                misbehaviour: &misbehaviour,
                interrupted,
                // Lines that come while tests run would tear the bar apart.
                progress: !quiet && (arguments.format == Format::Text || !std::io::stdout().is_terminal()),
                remembered,
            };
            let ended = execution.go(folder, done, writer)?;
            writer.finish().map_err(cannot_print)?;
            Ok::<_, Failure>(ended)
        };
        let ended = match writer {
            Some(writer) => execute(&Done::new(), writer)?,
            None => {
                let standing = |line: &RunLine| expected.standing(line);
                let mut writer = Gtest::new(Data::new(), Box::new(standing), arguments.strict);
                let ended = match gtest::Memory::of_runner()? {
                    None => execute(&Done::new(), &mut writer)?,
                    Some(memory) => {
                        let remembered = memory.recall(&plan)?;
                        execute(&remembered, &mut gtest::Remembering { inner: &mut writer, memory })?
                    }
                };
                if let Some(output) = &self.output {
                    output.write(writer.cases())?;
                }
                ended
            }
        };

        let mut outcome = Outcome::Success;
        ended.folder.finish(&ended.lines).map_err(folder_failure)?;
        if !ended.interrupted {
            let known = results::read::machine_code(ended.folder.path()).map_err(read_failure)?;
            let codes = beside::violations(&plan, &ended.lines, known)?;
            ended.folder.keep_machine_code(&codes).map_err(folder_failure)?;
        }
        if !quiet {
            say(&format!("results in {}", ended.folder.path().display()));
        }
        if arguments.save_baseline {
            outcome.note(save_baseline(&ended, quiet));
        }
        if ended.validation_messages > 0 {
            say(&format!("error: {} messages of the validation layers", ended.validation_messages));
            outcome.note(Outcome::Environment);
        }
        if ended.interrupted {
            say(&format!("interrupted: go on with --resume --out {}", ended.folder.path().display()));
            outcome.note(Outcome::Environment);
        }
        outcome.note(judgement_outcome(&ended.lines, arguments, &expected, quiet));
        outcome.note(expected.report(&ended.lines, quiet));
        Ok(outcome)
    }

    /// How long the tests of this part are run.
    fn budget(&self, tests: usize) -> Budget {
        match (self.arguments.instances, self.arguments.time) {
            (Some(instances), _) => Budget::Instances(instances),
            (None, Some(time)) => Budget::Time(time),
            // Of a suite that a runner asks for piece by piece, each piece has its share of the time.
            (None, None) if self.arguments.gtest_filter.is_some() => {
                Budget::Time(DEFAULT_TIME.mul_f64(tests as f64 / self.ids.len().max(tests).max(1) as f64))
            }
            (None, None) => Budget::Time(DEFAULT_TIME),
        }
    }

    /// No test is left: nothing is wrong where others have them all.
    fn nothing(&self, writer: Option<&mut dyn RunWriter>) -> Result<Outcome, Failure> {
        if self.arguments.shard.is_none() && self.arguments.gtest_filter.is_none() {
            return Err(Failure::input_message("no test to run"));
        }
        let mut gtest = Gtest::new(Data::new(), Box::new(|_: &RunLine| Standing::Unlisted), false);
        let writer = writer.unwrap_or(&mut gtest);
        writer.begins(&[]).and_then(|()| writer.finish()).map_err(cannot_print)?;
        if let Some(output) = &self.output {
            output.write(&[])?;
        }
        Ok(Outcome::Success)
    }
}

/// Keeps the verdicts as the devices' baselines.
fn save_baseline(ended: &execute::Ended, quiet: bool) -> Outcome {
    let planned = folder::planned(ended.folder.path());
    let saved = planned.map_err(results::baseline::BaselineError::from).and_then(|plan| match plan {
        Some(plan) => results::baseline::save(results::baseline::FOLDER.as_ref(), &plan, &ended.lines),
        None => Ok(Vec::new()),
    });
    match saved {
        Ok(paths) => {
            for path in paths.iter().filter(|_| !quiet) {
                say(&format!("baseline in {}", path.display()));
            }
            Outcome::Success
        }
        Err(error) => {
            say(&format!("error: {error}"));
            Outcome::Environment
        }
    }
}

/// The fault of the simulated GPU that is asked for.
fn fault(arguments: &Run) -> Result<Fault, Failure> {
    let Some(name) = &arguments.fault else { return Ok(Fault::None) };
    if arguments.device.iter().any(|device| device != SimDevice::NAME) {
        return Err(Failure::input_message("`--fault` goes with `--device sim` alone"));
    }
    name.parse().map_err(Failure::input_error)
}

/// The tests of this part of the run, and the ids of those of all parts. What is no test is told, and the others still run.
fn load(arguments: &Run, outcome: &mut Outcome) -> Result<(Vec<Loaded>, Vec<String>), Failure> {
    let (suite, cts_name) = (arguments.suite.as_deref(), arguments.cts_name.as_deref());
    let mut sources = inputs::collect(&arguments.tests, suite, cts_name, || inputs::of_suite(DEFAULT_SUITE))?;
    // Tests that nobody named are left out where the model is not theirs.
    let named = !arguments.tests.is_empty() || cts_name.is_some();
    if let Some(asked) = arguments.model.as_ref().filter(|_| !named) {
        let chosen = choice::load(asked)?;
        sources.retain(|source| source.suits_devices(&chosen.model));
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
                outcome.note(Outcome::from(&failure));
                complain(failure.report());
            }
        }
    }
    let ids = tests.iter().map(|test| test.source.id.clone()).collect();
    Ok((shard::part(gtest::filtered(arguments, tests), arguments.shard), ids))
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

/// What the verdicts make of the exit code, but for expectations that were not met.
fn judgement_outcome(lines: &[RunLine], arguments: &Run, expected: &Expected, quiet: bool) -> Outcome {
    let mut outcome = Outcome::Success;
    let mut unexercised = 0_usize;
    for line in lines.iter().filter(|line| !expected.standing(line).is_excused()) {
        match line.verdict {
            VerdictWord::Violates => outcome.note(Outcome::RuleBroken),
            VerdictWord::Inconclusive if line.reason.as_deref() == Some("not exercised") => unexercised += 1,
            // To runners of Google Test a test has failed, or the whole program has crashed: there is nothing between.
            VerdictWord::Inconclusive if arguments.format == Format::Gtest => {
                outcome.note(Outcome::RuleBroken)
            }
            VerdictWord::Inconclusive => outcome.note(Outcome::Environment),
            VerdictWord::Conforms | VerdictWord::Undefined | VerdictWord::Skipped => {}
        }
    }
    if unexercised > 0 {
        if !quiet || arguments.format != Format::Gtest {
            say(&format!("warning: {unexercised} verdicts are inconclusive, as the test was not exercised"));
        }
        if arguments.strict {
            outcome.note(Outcome::RuleBroken);
        }
    }
    outcome
}
