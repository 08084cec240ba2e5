//! `run SHADER`: dispatches a user's shader repeatedly with its inputs.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use campaign::expectations::{self, RunExpectations as Excused};
use campaign::fault_injection::FaultInjection;
use campaign::kinds::litmus::TestBudget;
use campaign::kinds::shader::{self, ShaderKind};
use campaign::run_log::EarlierVerdicts;
use campaign::shader::prepare_run::{ShaderFileInputs, analyze_file, make_ids_unique};
use campaign::shader::source::{is_shader, needs_subgroup_size};
use campaign::shard;
use results::wire::VerdictWord;
use results::write::{OutputFormat, new_run_writer, number};

use super::progress::RunProgressBar;
use super::{DEFAULT_TIME, PREDICTION_TIME_DIVISOR, result_output};
use crate::arguments::Run;
use crate::exit::{Failure, Outcome};
use crate::output::{print_message, report_rejected, text_layout};

/// Time limit for predicting the contents of a shader, as for `check`.
const PREDICTION_TIME: Duration = Duration::from_secs(5);

/// Runs shaders.
///
/// # Errors
/// Returns the error that ended it before any dispatch, or that stopped it.
pub fn run_shaders(
    arguments: &Run,
    quiet: bool,
    verdicts: &mut Vec<(VerdictWord, bool)>,
) -> Result<Outcome, Failure> {
    super::reject_flags(
        "shaders",
        &[
            ("--suite", arguments.suite.is_some()),
            ("--progress", arguments.progress.is_some()),
            ("--cts-name", arguments.cts_name.is_some()),
            ("--save-baseline", arguments.save_baseline),
            ("--repeat", arguments.repeat > 1),
            ("--transform", arguments.transform > 0),
            ("--format gtest", arguments.format == OutputFormat::Gtest),
            ("--gtest_list_tests", arguments.gtest_list_tests),
            ("--gtest_filter", arguments.gtest_filter.is_some()),
            ("--gtest_output", arguments.gtest_output.is_some()),
        ],
    )?;
    if let Some(test) = arguments.tests.iter().find(|argument| !is_shader(argument)) {
        return Err(Failure::not_available(format!("litmus tests and shaders in one run (`{test}`)")));
    }
    let arguments = &super::complete_arguments(arguments)?;
    let started = Instant::now();
    let misbehaviour = FaultInjection::parse(&arguments.misbehave)?;
    let mut writer = new_run_writer(
        arguments.format,
        result_output(arguments.format, quiet),
        text_layout(arguments.table),
    )
    .map_err(Failure::input_error)?;
    let run_place = super::run_place(arguments, quiet);
    run_place.ensure_empty_folder()?;
    let chosen = shader::load_model(arguments.model.as_deref())?;
    let mut outcome = Outcome::Success;
    let budget = match (arguments.instances, arguments.time) {
        (Some(instances), _) => TestBudget::Instances(instances),
        (None, time) => TestBudget::Time(time.unwrap_or(DEFAULT_TIME)),
    };
    let prediction_time =
        budget.time().map_or(PREDICTION_TIME, |time| PREDICTION_TIME.min(time / PREDICTION_TIME_DIVISOR));
    let (mut all, mut opened) = (Vec::new(), None);
    let mut compilation = arguments.kernel.compilation()?;
    let needs_size = |file: &String| needs_subgroup_size(file, &compilation);
    if compilation.subgroup_size.is_none() && arguments.tests.iter().any(needs_size) {
        let targets = super::open_devices(arguments, false)?;
        let sizes = targets.iter().map(|target| target.listed.capabilities.subgroup_size.max(1));
        let sizes: Vec<u32> = sizes.collect::<BTreeSet<_>>().into_iter().collect();
        let [size] = sizes[..] else {
            return Err(Failure::input_message(format!(
                "subgroups of {sizes:?} invocations; expected devices with one size for several dispatches that \
                 use subgroups: name one device, or pass `--subgroup-size N`"
            )));
        };
        compilation.subgroup_size = Some(size);
        opened = Some(targets);
    }
    for file in &arguments.tests {
        let options = arguments.kernel.to_options(None);
        let shaders = options.and_then(|options| {
            let (flags, compilation) = (&arguments.kernel.to_words(), compilation.clone());
            let inputs = arguments.kernel.input_mode();
            analyze_file(
                &ShaderFileInputs { file, flags, compilation, inputs, options: &options },
                &chosen.model,
                prediction_time,
            )
        });
        match shaders {
            Ok(some) => all.extend(some),
            Err(failure) => report_rejected(&mut outcome, &failure),
        }
    }
    make_ids_unique(&mut all);
    if all.is_empty() {
        return match outcome {
            Outcome::Success => Err(Failure::input_message("no shader to run")),
            wrong => Ok(wrong),
        };
    }
    for shader in all.iter().filter(|_| !quiet) {
        let compiled = shader.compiler.iter().map(|compiler| format!("compiled by {compiler}"));
        compiled
            .chain(shader.notes.iter().cloned())
            .for_each(|note| print_message(&format!("{}: {note}", shader.file)));
    }
    let ids: Vec<String> = all.iter().map(|shader| shader.id.clone()).collect();
    let all = shard::select_shard(all, arguments.shard);
    if all.is_empty() {
        if let Some(part) = arguments.shard {
            super::report_empty_shard(part, ids.len() as u64, "shader");
        }
        return Ok(outcome);
    }
    let targets = opened.map_or_else(|| super::open_devices(arguments, false), Ok)?;
    let mut plan = shader::ShaderPlan::new(targets, all, chosen);
    let devices = plan.device_records()?;
    let expectations = super::load_expectations(arguments, &devices)?;
    let excused = Excused::new(expectations, &ids, devices);
    plan.skip_shaders(&|device, id| {
        excused.find_skip(device, id).map(|place| expectations::skip_reason(&place))
    });

    // Signals are handled from the moment the journal exists, so that an interruption leaves a valid one.
    let interrupted = crate::interrupt::interrupt_flag()?;
    let options = &super::run_options(arguments);
    let (folder, seed, done) = run_place.open(plan.to_record(options, budget)?, &print_message)?;
    let kind = ShaderKind { plan: &plan, options, budget, seed, fault_injection: &misbehaviour };
    super::write_command(arguments, folder.path())?;
    let stop = arguments.bisect.then(|| interrupted.clone());
    let bar =
        RunProgressBar::new(plan.len(), super::is_progress_shown(arguments, quiet), budget.time(), stop);
    let mut writer = super::EffectWriter { writer: writer.as_mut(), arguments, expected: &excused };
    let ended =
        super::execute_run(&kind, folder, done, &EarlierVerdicts::new(), &mut writer, &bar, &interrupted)?;
    super::collect_verdicts(&ended, verdicts);
    let took = format!("{}, ", number::format_seconds(started.elapsed().as_secs_f64()));
    for line in &ended.lines {
        if let Some(claim) = line.broken_claim() {
            print_message(&format!("{} on {}: {}", line.id, line.device, claim.describe_failure()));
            outcome.escalate_to(Outcome::RuleBroken);
        }
    }
    outcome.escalate_to(super::report_outcome(&ended, arguments, &excused, quiet, &took));
    Ok(outcome)
}
