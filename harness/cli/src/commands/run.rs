//! `run`: runs tests on devices, the simulated GPU included, and judges their outcomes. It uses worker processes, not the
//! library: a test may hang its device.

mod outcome;
mod progress;
mod shader;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use campaign::compilers::report_code;
use campaign::expectations::{self, RunExpectations};
use campaign::fault_injection::FaultInjection;
use campaign::kinds::litmus::plan::LitmusPlan;
use campaign::kinds::litmus::{LitmusKind, TestBudget};
use campaign::kinds::{RunOptions, progress as forward};
use campaign::run::{self, ProcessPool, RunKind, RunResult};
use campaign::run_log::{EarlierVerdicts, RunFolderOptions};
use campaign::shader::source::is_shader;
use campaign::shard::Shard;
use campaign::source::LoadedTest;
use campaign::targets::SimulatedFallback;
use campaign::{forms, gtest, inputs, models, shard, targets};
use clap::Parser;
use litmus::corpus::PROGRESS_SUITE;
use results::baseline;
use results::expectation::{Expectations, Triage};
use results::folder::{self, ResultsFolder};
use results::wire::{DeviceRecord, PlanRecord, RunLine, VerdictWord};
use results::write::gtest::{GtestCase, GtestWriter, format_test_list};
use results::write::{OutputFormat, RunWriter, new_run_writer, number};
use runner::RunVariant;
use sim::{Fault, SimDevice};

use crate::arguments::{Command, KernelArguments, Run};
use crate::commands::report::read_failure;
use crate::exit::{Failure, Outcome};
use crate::interrupt::interrupt_flag;
use crate::output::{
    StandardOutput, create_folder, output_failure, print_diagnostic, print_message, refuse_file_name,
    report_rejected, text_layout, write_file,
};
use outcome::{
    EffectWriter, bisect_exit_code, changed_files_outcome, collect_verdicts, judgement_outcome,
    report_empty_shard,
};
use progress::RunProgressBar;

const DEFAULT_SUITE: &str = "quick";
const DEFAULT_TIME: Duration = Duration::from_secs(60);
const FORM_TIME: Duration = Duration::from_secs(10);
/// Additional time for a run with the default time, so that every test runs on a busy machine.
const DEFAULT_GRACE: Duration = Duration::from_secs(120);
/// The share of the time for predictions, as a divisor.
const PREDICTION_TIME_DIVISOR: u32 = 4;
const DEVICE_VARIABLE: &str = "VK_LITMUS_DEVICE";

/// Runs the command.
///
/// # Errors
/// Returns the error that ended it before any test ran, or that stopped it.
pub fn run(arguments: &Run, quiet: bool) -> Result<Outcome, Failure> {
    let resumed = resume_arguments(arguments)?;
    let arguments = resumed.as_ref().unwrap_or(arguments);
    arguments.out.as_deref().map_or(Ok(()), refuse_file_name)?;
    if !arguments.bisect {
        return run_selected(arguments, quiet, &mut Vec::new());
    }
    // For `--bisect`: an error before the first verdict must not mark the commit as good or bad.
    let mut verdicts = Vec::new();
    let outcome = run_selected(arguments, quiet, &mut verdicts).unwrap_or_else(|failure| {
        print_diagnostic(failure.report());
        Outcome::from(&failure)
    });
    Ok(bisect_exit_code(&verdicts, outcome))
}

/// Restores the run of `--resume DIR` without `--out`, from the command line stored in the folder.
fn resume_arguments(arguments: &Run) -> Result<Option<Run>, Failure> {
    if !arguments.resume || arguments.out.is_some() {
        return Ok(None);
    }
    let [folder] = arguments.tests.as_slice() else {
        return Err(Failure::input_message(
            "`--resume` needs a folder: `run --resume DIR`, or `--resume --out DIR`",
        ));
    };
    let path = Path::new(folder).join(COMMAND_FILE);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::input_message(format!("{}: {error}", path.display())))?;
    let words: Vec<String> = serde_json::from_str(&text)
        .map_err(|error| Failure::input_message(format!("{}: {error}", path.display())))?;
    let line = crate::CommandLine::try_parse_from(words)
        .map_err(|error| Failure::input_message(format!("{}: {}", path.display(), error.kind())))?;
    let Command::Run(recorded) = line.command else {
        return Err(Failure::input_message(format!("{}: not the command of a run", path.display())));
    };
    let ignored = ignored_flags(&recorded, arguments);
    if !ignored.is_empty() {
        let flags = ignored.join(", ");
        print_message(&format!(
            "warning: {} also has {flags}: a results folder sets only tests, devices and budgets; repeat on this command line what still applies",
            path.display()
        ));
    }
    let mut run = with_recorded_plan(*recorded, arguments);
    // The command line may be that of a shard although the folder holds the merged run, so the plan decides.
    if let Some(plan) = folder::read_plan(folder.as_ref()).map_err(Failure::folder_error)? {
        run.shard = arguments.shard.or(plan_shard(&plan)?);
        run.knows_part = true;
    }
    run.out = Some(folder.into());
    Ok(Some(run))
}

/// Returns `arguments`, completed by the tests, devices and budgets of `recorded`, the command line in a
/// results folder. Options that are in both are taken from `arguments`; a later comparison with the folder's
/// plan rejects those that must not differ.
///
/// The folder may come from an untrusted source. Only the fields listed here are read from it, so a new flag
/// is ignored. No flag that names an output file, an executable or an exit code policy may be listed.
fn with_recorded_plan(recorded: Run, arguments: &Run) -> Run {
    Run {
        tests: recorded.tests,
        suite: arguments.suite.clone().or(recorded.suite),
        cts_name: arguments.cts_name.clone().or(recorded.cts_name),
        gtest_filter: arguments.gtest_filter.clone().or(recorded.gtest_filter),
        model: arguments.model.clone().or(recorded.model),
        progress: arguments.progress.clone().or(recorded.progress),
        device: if arguments.device.is_empty() { recorded.device } else { arguments.device.clone() },
        fault: arguments.fault.clone().or(recorded.fault),
        stress: arguments.stress.clone().or(recorded.stress),
        validate: recorded.validate,
        time: arguments.time.or(recorded.time.filter(|_| arguments.instances.is_none())),
        instances: arguments.instances.or(recorded.instances.filter(|_| arguments.time.is_none())),
        seed: arguments.seed.or(recorded.seed),
        shard: arguments.shard.or(recorded.shard),
        jobs: recorded.jobs,
        retries: recorded.retries,
        repeat: recorded.repeat,
        transform: recorded.transform,
        kernel: KernelArguments { compiler: arguments.kernel.compiler.clone(), ..recorded.kernel },
        ..arguments.clone()
    }
}

/// Returns the flags of `recorded` that [`with_recorded_plan`] does not take and that `arguments` does not repeat.
fn ignored_flags(recorded: &Run, arguments: &Run) -> Vec<&'static str> {
    let flags = [
        ("--strict", recorded.strict && !arguments.strict),
        ("--allow-unfinished", recorded.allow_unfinished && !arguments.allow_unfinished),
        ("--expect", recorded.expect.is_some() && arguments.expect.is_none()),
        ("--save-baseline", recorded.save_baseline && !arguments.save_baseline),
        ("--gtest_list_tests", recorded.gtest_list_tests && !arguments.gtest_list_tests),
        ("--gtest_output", recorded.gtest_output.is_some() && arguments.gtest_output.is_none()),
        ("--compiler", recorded.kernel.compiler.is_some() && arguments.kernel.compiler.is_none()),
        ("--strict-compiler", recorded.strict_compiler && !arguments.strict_compiler),
        ("--misbehave", !recorded.misbehave.is_empty() && arguments.misbehave.is_empty()),
    ];
    flags.into_iter().filter_map(|(flag, is_ignored)| is_ignored.then_some(flag)).collect()
}

/// Returns the shard of a plan.
fn plan_shard(plan: &PlanRecord) -> Result<Option<Shard>, Failure> {
    plan.shard.as_deref().map(shard::parse_shard).transpose().map_err(Failure::input_message)
}

/// File in a results folder with the arguments of the command line.
pub const COMMAND_FILE: &str = "command.json";

/// Stores the command line in a results folder, for `--resume DIR`.
fn write_command(arguments: &Run, folder: &Path) -> Result<(), Failure> {
    if arguments.resume {
        return Ok(());
    }
    let words: Option<Vec<String>> = std::env::args_os().map(|word| word.into_string().ok()).collect();
    let text = words.and_then(|words| serde_json::to_string(&words).ok());
    text.map_or(Ok(()), |text| write_file(&folder.join(COMMAND_FILE), (text + "\n").as_bytes()))
}

/// Runs tests of any kind, and collects their verdicts for a bisection.
fn run_selected(
    arguments: &Run,
    quiet: bool,
    verdicts: &mut Vec<(VerdictWord, bool)>,
) -> Result<Outcome, Failure> {
    if arguments.tests.iter().any(|argument| is_shader(argument)) {
        return shader::run_shaders(arguments, quiet, verdicts);
    }
    if !arguments.kernel.is_empty() || arguments.strict_compiler {
        return Err(Failure::input_message(
            "inputs of shaders (`--grid`, `--buffer` and others) and `--strict-compiler` need a shader file",
        ));
    }
    if arguments.suite.as_deref() == Some(PROGRESS_SUITE) || arguments.progress.is_some() {
        return forward_progress(arguments, quiet, verdicts);
    }
    // Google Test runners show every line on standard error as an error.
    let quiet = quiet || uses_gtest(arguments);
    let arguments = &complete_arguments(arguments)?;
    let output = arguments.gtest_output.as_deref().map(gtest::ResultFile::parse).transpose()?;
    let mut writer = match arguments.format {
        OutputFormat::Gtest => None,
        _ if output.is_some() => {
            return Err(Failure::input_message("`--gtest_output` needs `--format gtest`"));
        }
        format => Some(
            new_run_writer(format, result_output(format, quiet), text_layout(arguments.table))
                .map_err(Failure::input_error)?,
        ),
    };
    let mut outcome = Outcome::Success;
    let started = Instant::now();
    let SelectedTests { tests, ids, filtered_count: chosen } = load_tests(arguments, &mut outcome)?;
    if arguments.gtest_list_tests {
        let ids = tests.iter().map(|test| test.source.id.as_str());
        return StandardOutput::new().print(&format_test_list(ids)).map(|()| outcome);
    }
    let run = LoadedRun { arguments, quiet, ids, filtered_count: chosen, output, started, verdicts };
    let writer = writer.as_mut().map(|writer| writer.as_mut() as &mut dyn RunWriter);
    match run.run_tests(tests, writer) {
        Ok(ran) => outcome.escalate_to(ran),
        // An earlier mistake in the input has precedence over a missing device.
        Err(failure) => report_rejected(&mut outcome, &failure),
    }
    Ok(outcome)
}

/// Runs the forward-progress suite (`run --suite progress`).
fn forward_progress(
    arguments: &Run,
    quiet: bool,
    verdicts: &mut Vec<(VerdictWord, bool)>,
) -> Result<Outcome, Failure> {
    reject_flags(
        "tests of forward progress",
        &[
            ("--fault", arguments.fault.is_some()),
            ("--stress", arguments.stress.is_some()),
            ("--cts-name", arguments.cts_name.is_some()),
            ("--save-baseline", arguments.save_baseline),
            ("--repeat", arguments.repeat > 1),
            ("--transform", arguments.transform > 0),
            ("--gtest_list_tests", arguments.gtest_list_tests),
            ("--gtest_filter", arguments.gtest_filter.is_some()),
            ("--gtest_output", arguments.gtest_output.is_some()),
        ],
    )?;
    let misbehaviour = FaultInjection::parse(&arguments.misbehave)?;
    let scheduler =
        arguments.progress.as_deref().map(str::parse).transpose().map_err(Failure::input_error)?;
    let mut writer = new_run_writer(
        arguments.format,
        result_output(arguments.format, quiet),
        text_layout(arguments.table),
    )
    .map_err(Failure::input_error)?;
    let run_place = run_place(arguments, quiet);
    run_place.ensure_empty_folder()?;
    let chosen = models::load(arguments.model.as_deref().unwrap_or(forward::DEFAULT_MODEL))?;
    let targets = forward::select_targets(&arguments.device, scheduler.is_some(), &print_message)?;
    let (tests, rejected) =
        forward::load_tests(&arguments.tests, arguments.suite.as_deref(), arguments.shard)?;
    let mut outcome = Outcome::Success;
    rejected.iter().for_each(|failure| report_rejected(&mut outcome, failure));
    if tests.is_empty() {
        return Err(Failure::input_message("no test to run"));
    }
    let mut plan =
        forward::ProgressPlan::new(targets, tests, chosen, scheduler, arguments.expect.as_deref())?;
    let devices = plan.device_records()?;
    let expectations = load_expectations(arguments, &devices)?;
    let expected = RunExpectations::new(expectations, &plan.ids(), devices);
    plan.skip_tests(&|device, id| {
        expected.find_skip(device, id).map(|place| expectations::skip_reason(&place))
    });

    // Signals are handled from the moment the journal exists, so that an interruption leaves a valid one.
    let interrupted = interrupt_flag()?;
    let options = &run_options(arguments);
    let (folder, seed, done) = run_place.open(plan.to_record(options)?, &print_message)?;
    let started = Instant::now();
    let kind = forward::ProgressKind {
        plan: &plan,
        options,
        time: arguments.time,
        seed,
        fault_injection: &misbehaviour,
    };
    write_command(arguments, folder.path())?;
    let stop = arguments.bisect.then(|| interrupted.clone());
    let bar = RunProgressBar::new(kind.test_runs().len(), is_progress_shown(arguments, quiet), None, stop);
    let mut writer = EffectWriter { writer: writer.as_mut(), arguments, expected: &expected };
    let ended = execute_run(&kind, folder, done, &EarlierVerdicts::new(), &mut writer, &bar, &interrupted)?;
    collect_verdicts(&ended, verdicts);
    let took = format!("{}, ", number::format_seconds(started.elapsed().as_secs_f64()));
    outcome.escalate_to(report_outcome(&ended, arguments, &expected, quiet, &took));
    Ok(outcome)
}

/// Returns the stream for results: none for text if only errors are printed.
fn result_output(format: OutputFormat, quiet: bool) -> Box<dyn Write> {
    if quiet && format == OutputFormat::Text {
        Box::new(std::io::sink())
    } else {
        Box::new(StandardOutput::coloured())
    }
}

/// Rejects flags that a kind of run does not support.
fn reject_flags(kind: &str, given: &[(&str, bool)]) -> Result<(), Failure> {
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::not_available(format!("`{flag}` with {kind}"))),
        None => Ok(()),
    }
}

const SHARD_SEED: u64 = 1;

/// Returns the results folder and the seed of a run.
fn run_place(arguments: &Run, quiet: bool) -> RunFolderOptions<'_> {
    RunFolderOptions {
        folder: arguments.out.as_deref(),
        is_resumed: arguments.resume,
        // The shards of a run have one seed, or else their results cannot be merged.
        seed: arguments.seed.or(arguments.shard.map(|_| SHARD_SEED)),
        is_verbose: !quiet,
    }
}

/// Returns the options of a run other than tests and devices.
fn run_options(arguments: &Run) -> RunOptions {
    RunOptions {
        model: arguments.model.clone(),
        stress: arguments.stress.clone(),
        fault: arguments.fault.clone(),
        instances: arguments.instances,
        jobs: arguments.jobs.get(),
        retries: arguments.retries,
        repeats: arguments.repeat,
        validate: arguments.validate,
        shard: arguments.shard,
        suite: suite_name(arguments),
        grace: if arguments.time.is_none() { DEFAULT_GRACE } else { Duration::ZERO },
    }
}

/// Returns the suite that a run executes; empty if its tests are named.
fn suite_name(arguments: &Run) -> String {
    let is_named = !arguments.tests.is_empty() || arguments.cts_name.is_some();
    match &arguments.suite {
        Some(suite) => suite.clone(),
        None if is_named => String::new(),
        None => DEFAULT_SUITE.to_owned(),
    }
}

/// Returns true if progress is shown. Result lines on a terminal would break the bar.
fn is_progress_shown(arguments: &Run, quiet: bool) -> bool {
    !quiet && (arguments.format == OutputFormat::Text || !std::io::stdout().is_terminal())
}

/// Executes a run with worker processes of this program.
fn execute_run<K: RunKind>(
    kind: &K,
    folder: ResultsFolder,
    done: EarlierVerdicts,
    cached_verdicts: &EarlierVerdicts,
    writer: &mut dyn RunWriter,
    bar: &RunProgressBar,
    interrupted: &AtomicBool,
) -> Result<RunResult, Failure> {
    let run = run::Run {
        kind,
        workers: &ProcessPool::new()?,
        observer: bar,
        interrupt_flag: interrupted,
        reused_verdicts: cached_verdicts,
    };
    run.execute(folder, done, writer)
}

/// Completes the command line from environment variables.
fn complete_arguments(arguments: &Run) -> Result<Run, Failure> {
    let mut arguments = arguments.clone();
    let get = |name: &str| std::env::var(name).ok();
    if arguments.device.is_empty() && arguments.fault.is_none() {
        let named = get(DEVICE_VARIABLE).unwrap_or_default();
        arguments.device = named.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    }
    // The list names the tests of all shards, and a runner that names tests has already sharded them.
    let protocol =
        arguments.gtest_list_tests || (arguments.gtest_filter.is_some() && gtest::is_started_by_runner());
    if arguments.shard.is_none() && !arguments.knows_part && !protocol {
        if let Some(named) = shard::from_environment(&get).map_err(Failure::input_error)? {
            // Even with `--quiet`: an inherited variable can leave tests out by mistake.
            if !uses_gtest(&arguments) {
                let (shard, variables) = (named.shard, named.variables);
                print_message(&format!("part {shard} of the tests, by {variables}; --shard 1/1 runs all"));
            }
            arguments.shard = Some(named.shard);
        }
        gtest::acknowledge_shards()?;
    }
    Ok(arguments)
}

/// A run whose tests are loaded and whose devices are not.
struct LoadedRun<'a> {
    arguments: &'a Run,
    quiet: bool,
    /// Ids of all selected tests, including those of other shards.
    ids: Vec<String>,
    /// Number of tests that pass the filter, over all shards.
    filtered_count: usize,
    output: Option<gtest::ResultFile>,
    /// When the program began to load tests, which counts against their time.
    started: Instant,
    verdicts: &'a mut Vec<(VerdictWord, bool)>,
}

/// Loads the expectation files for the devices.
fn load_expectations(arguments: &Run, devices: &[DeviceRecord]) -> Result<Option<Expectations>, Failure> {
    arguments.expect.as_deref().map(|folder| expectations::load(folder, devices)).transpose()
}

impl LoadedRun<'_> {
    /// Runs the tests. Without a writer, the Google Test protocol is written.
    fn run_tests(
        self,
        tests: Vec<LoadedTest>,
        writer: Option<&mut dyn RunWriter>,
    ) -> Result<Outcome, Failure> {
        let LoadedRun { arguments, quiet, started, .. } = self;
        let misbehaviour = &FaultInjection::parse(&arguments.misbehave)?;
        let budget = self.budget(tests.len());
        if tests.is_empty() {
            return self.finish_empty(writer);
        }
        let mut run_place = run_place(arguments, quiet);
        run_place.ensure_empty_folder()?;
        let shared_verdicts = if writer.is_none() { gtest::SharedVerdicts::for_runner()? } else { None };
        run_place.seed = run_place.seed.or(shared_verdicts.as_ref().map(gtest::SharedVerdicts::default_seed));
        let targets = open_devices(arguments, writer.is_none())?;
        let remaining = budget.time().map(|time| time.saturating_sub(started.elapsed()));
        let prediction_time = remaining.map(|time| time / PREDICTION_TIME_DIVISOR);
        let records: Vec<DeviceRecord> =
            targets.iter().map(targets::device_record).collect::<Result<_, _>>()?;
        let expectations = load_expectations(arguments, &records)?;
        let expected = RunExpectations::new(expectations, &self.ids, records);
        let skips = |device: &str, id: &str| {
            expected.find_skip(device, id).map(|place| expectations::skip_reason(&place))
        };
        let plan = &LitmusPlan::new(targets, tests, arguments.model.as_deref(), prediction_time, &skips)?
            .with_baselines(baseline::BASELINES_FOLDER.as_ref(), &print_message)?;

        // Signals are handled from the moment the journal exists, so that an interruption leaves a valid one.
        let interrupted = interrupt_flag()?;
        let options = &run_options(arguments);
        let (folder, seed, done) = run_place.open(plan.to_record(options, budget)?, &print_message)?;
        let kind = LitmusKind { plan, options, budget, seed, started, fault_injection: misbehaviour };
        write_command(arguments, folder.path())?;
        let stop = arguments.bisect.then(|| interrupted.clone());
        let bar = RunProgressBar::new(
            plan.device_tests.len(),
            is_progress_shown(arguments, quiet),
            kind.total_time(),
            stop,
        );
        let ended = match writer {
            Some(writer) => {
                let mut writer = EffectWriter { writer, arguments, expected: &expected };
                execute_run(&kind, folder, done, &EarlierVerdicts::new(), &mut writer, &bar, &interrupted)?
            }
            None => {
                let triage = |line: &RunLine| expected.triage(line);
                let mut writer = GtestWriter::new(StandardOutput::new(), Box::new(triage), arguments.strict);
                let ended = match shared_verdicts {
                    None => execute_run(
                        &kind,
                        folder,
                        done,
                        &EarlierVerdicts::new(),
                        &mut writer,
                        &bar,
                        &interrupted,
                    )?,
                    Some(memory) => {
                        let cached_verdicts = memory.read_verdicts(plan)?;
                        let mut writer = gtest::RecordingWriter { inner: &mut writer, verdicts: memory };
                        execute_run(&kind, folder, done, &cached_verdicts, &mut writer, &bar, &interrupted)?
                    }
                };
                if let Some(output) = &self.output {
                    write_output(output, writer.cases())?;
                }
                ended
            }
        };
        collect_verdicts(&ended, self.verdicts);
        if !ended.is_interrupted {
            let on_message: targets::MessageSink<'_> = if quiet { &|_| {} } else { &print_message };
            let reduced = forms::reduce_forms(plan, &ended.lines, seed, on_message)?;
            let known = results::read::read_machine_code(ended.folder.path()).map_err(read_failure)?;
            let codes = report_code::violation_records(plan, &ended.lines, known, &reduced)?;
            ended.folder.write_machine_code(&codes).map_err(Failure::folder_error)?;
        }
        Ok(report_outcome(&ended, arguments, &expected, quiet, ""))
    }

    /// Returns the budget for the tests of this shard.
    fn budget(&self, tests: usize) -> TestBudget {
        let default_time = DEFAULT_TIME + FORM_TIME * self.arguments.transform.into();
        match (self.arguments.instances, self.arguments.time) {
            (Some(instances), _) => TestBudget::Instances(instances),
            (None, Some(time)) => TestBudget::Time(time),
            // A runner that requests a part of a suite gets a proportional part of the time.
            (None, None) if self.arguments.gtest_filter.is_some() => {
                TestBudget::Time(default_time.mul_f64(tests as f64 / self.ids.len().max(tests).max(1) as f64))
            }
            (None, None) => TestBudget::Time(default_time),
        }
    }

    /// Handles an empty selection, which is valid if other shards have tests.
    fn finish_empty(&self, writer: Option<&mut dyn RunWriter>) -> Result<Outcome, Failure> {
        if self.arguments.shard.is_none() && self.arguments.gtest_filter.is_none() {
            return Err(Failure::input_message("no test to run"));
        }
        if self.filtered_count == 0 && self.arguments.tests.is_empty() {
            let suite = self.arguments.suite.as_deref().unwrap_or(DEFAULT_SUITE);
            print_message(&format!(
                "warning: `--gtest_filter` selects no test of `{suite}`; `--suite` or names of tests change that"
            ));
        }
        let mut gtest =
            GtestWriter::new(StandardOutput::new(), Box::new(|_: &RunLine| Triage::Unlisted), false);
        let writer = writer.unwrap_or(&mut gtest);
        writer.announce_tests(&[]).and_then(|()| writer.finish()).map_err(output_failure)?;
        if let Some(output) = &self.output {
            write_output(output, &[])?;
        }
        if self.filtered_count == 0 {
            if self.arguments.strict {
                print_message("error: no test was run");
                return Ok(Outcome::RuleBroken);
            }
            return Ok(Outcome::Success);
        }
        if let Some(part) = self.arguments.shard.filter(|_| !uses_gtest(self.arguments)) {
            report_empty_shard(part, self.filtered_count as u64, "test");
        }
        Ok(Outcome::Success)
    }
}

/// Returns true if the command line uses the Google Test protocol.
fn uses_gtest(arguments: &Run) -> bool {
    arguments.format == OutputFormat::Gtest
        || arguments.gtest_list_tests
        || arguments.gtest_filter.is_some()
        || arguments.gtest_output.is_some()
}

/// Writes the XML or JSON file of Google Test.
fn write_output(output: &gtest::ResultFile, cases: &[GtestCase]) -> Result<(), Failure> {
    if let Some(folder) = output.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_folder(folder)?;
    }
    write_file(&output.path, output.format_cases(cases)?.as_bytes())
}

/// Opens the devices of a run, with the injected fault.
fn open_devices(arguments: &Run, one: bool) -> Result<Vec<targets::DeviceTarget>, Failure> {
    let stress = arguments.stress.as_deref().map(targets::load_stress).transpose()?;
    let simulated = [SimDevice::NAME.to_owned()];
    let fault = parse_fault(arguments)?;
    let named = if fault == Fault::None { &arguments.device[..] } else { &simulated[..] };
    let fallback = SimulatedFallback::from_environment()
        .refused_with("--strict", arguments.strict)
        .refused_with("--bisect", arguments.bisect);
    let mut targets = targets::select_targets(named, stress.as_ref(), &fallback, &print_message)?;
    if !FaultInjection::parse(&arguments.misbehave)?.accepts_null_devices() {
        targets::refuse_compile_only(&targets)?;
    }
    if one && targets.len() > 1 {
        return Err(Failure::input_message(
            "the Google Test protocol supports one device: name one with `--device`",
        ));
    }
    targets::inject_fault(&mut targets, fault);
    Ok(targets)
}

/// Reports how a run ended and returns its exit code; `duration` precedes its folder. If the code is not 0, the
/// last line is its reason and what to do.
fn report_outcome(
    ended: &RunResult,
    arguments: &Run,
    expected: &RunExpectations,
    quiet: bool,
    duration: &str,
) -> Outcome {
    let mut outcome = Outcome::Success;
    let path = ended.folder.path().display();
    if !quiet {
        print_message(&format!("{duration}results in {path}"));
    }
    if arguments.save_baseline {
        outcome.escalate_to(save_baseline(ended, quiet));
    }
    if !expected.report(&ended.lines, quiet, &print_message) {
        outcome.escalate_to(Outcome::RuleBroken);
    }
    if ended.validation_messages > 0 {
        let messages = number::plural(ended.validation_messages as u64, "message");
        print_message(&format!(
            "error: the validation layers printed {messages}, listed above: report them, or run without `--validate`"
        ));
        outcome.escalate_to(Outcome::Environment);
    }
    outcome.escalate_to(changed_files_outcome(ended, arguments));
    outcome.escalate_to(judgement_outcome(&ended.lines, arguments, expected, quiet, ended.folder.path()));
    let stopped = arguments.bisect && ended.lines.iter().any(|line| line.verdict == VerdictWord::Violates);
    if ended.is_interrupted && !stopped {
        print_message(&format!("interrupted: continue with `vk-litmus run --resume {path}`"));
        outcome.escalate_to(Outcome::Environment);
    }
    outcome
}

/// Saves the verdicts as baselines of the devices.
fn save_baseline(ended: &RunResult, quiet: bool) -> Outcome {
    let planned = folder::read_plan(ended.folder.path());
    let saved = planned.map_err(baseline::BaselineError::from).and_then(|plan| match plan {
        Some(plan) => baseline::save(baseline::BASELINES_FOLDER.as_ref(), &plan, &ended.lines),
        None => Ok(Vec::new()),
    });
    match saved {
        Ok(paths) => {
            for path in paths.iter().filter(|_| !quiet) {
                print_message(&format!("baseline in {}", path.display()));
            }
            Outcome::Success
        }
        Err(error) => {
            print_message(&format!("error: {error}"));
            Outcome::Environment
        }
    }
}

/// Parses the fault of the simulated GPU.
fn parse_fault(arguments: &Run) -> Result<Fault, Failure> {
    let Some(name) = &arguments.fault else { return Ok(Fault::None) };
    if arguments.device.iter().any(|device| device != SimDevice::NAME) {
        return Err(Failure::input_message("`--fault` needs `--device sim`"));
    }
    name.parse().map_err(Failure::input_error)
}

struct SelectedTests {
    /// The tests of this shard.
    tests: Vec<LoadedTest>,
    /// Ids of the tests of all shards.
    ids: Vec<String>,
    /// Number of tests that pass the filter.
    filtered_count: usize,
}

/// Loads the selected tests. An invalid test is reported, and the others still run.
fn load_tests(arguments: &Run, outcome: &mut Outcome) -> Result<SelectedTests, Failure> {
    let (suite, cts_name) = (arguments.suite.as_deref(), arguments.cts_name.as_deref());
    let mut sources =
        inputs::collect(&arguments.tests, suite, cts_name, || inputs::suite_tests(DEFAULT_SUITE))?;
    // Tests of a suite are skipped if the model does not apply to them.
    let named = !arguments.tests.is_empty() || cts_name.is_some();
    if let Some(model_name) = arguments.model.as_ref().filter(|_| !named) {
        let chosen = models::load(model_name)?;
        sources.retain(|source| source.is_device_program_judged_by(&chosen.model));
    }
    let mut tests = Vec::new();
    for source in sources {
        if let Err(error) = source.variant.parse::<RunVariant>() {
            return Err(Failure::input_message(format!("{}: {error}", source.argument)));
        }
        match source.load() {
            Ok(loaded) => tests.push(loaded),
            Err(rejected) => report_rejected(outcome, &rejected.failure),
        }
    }
    let tests = forms::add_forms(tests, arguments.transform, arguments.seed.unwrap_or(0))?;
    let ids = tests.iter().map(|test| test.source.id.clone()).collect();
    let chosen = gtest::filter_tests(arguments.gtest_filter.as_deref(), tests);
    let number = chosen.len();
    Ok(SelectedTests { tests: shard::select_shard(chosen, arguments.shard), ids, filtered_count: number })
}
