//! Transformed forms of the tests of a run, and the transformations that a violation needs.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use litmus::minimize::ddmin;
use results::wire::{NeededTransformations, RunLine, VerdictWord};
use runner::RunVariant;
use shaders::Variant;
use shaders::transform::KernelForm;

use crate::Failure;
use crate::kinds::litmus::plan::LitmusPlan;
use crate::measure::{MeasuredTest, Measurement, run_trials};
use crate::source::LoadedTest;
use crate::targets::MessageSink;

/// The limits of the time of one try, which is twice that of the run.
const MIN_TRY_TIME: Duration = Duration::from_millis(250);
const MAX_TRY_TIME: Duration = Duration::from_secs(10);
/// The time of all tries of a run.
const REDUCTION_TIME: Duration = Duration::from_secs(120);

/// Adds `count` transformed forms after each test that is not one. Their seeds follow from that of the run.
///
/// # Errors
/// If a variant is unknown.
pub fn add_forms(tests: Vec<LoadedTest>, count: u16, seed: u64) -> Result<Vec<LoadedTest>, Failure> {
    let mut all = Vec::new();
    for loaded in tests {
        let variant: RunVariant = loaded.source.variant.parse().map_err(Failure::input_error)?;
        all.push(loaded.clone());
        for number in 0..if variant.shader.form.is_none() { count } else { 0 } {
            let form = KernelForm::new((seed as u16).wrapping_mul(count).wrapping_add(number));
            let source =
                loaded.source.clone().with_variant_replaced(&with_form(variant, Some(form)).to_string());
            all.push(LoadedTest { source, ..loaded.clone() });
        }
    }
    Ok(all)
}

fn with_form(variant: RunVariant, form: Option<KernelForm>) -> RunVariant {
    RunVariant { shader: Variant { form, ..variant.shader }, ..variant }
}

/// A violation in a transformed form, with the transformations that it needs.
#[derive(Clone, Debug)]
pub struct ReducedForm {
    /// Id of the violating test.
    pub id: String,
    /// Name of the device.
    pub device: String,
    pub transformations: NeededTransformations,
}

/// Searches for shortest lists of transformations with which tests that violate the model in transformed forms
/// still do, by delta debugging. A form that has all transformations of a list that is already known for its test
/// and device may show the same violation, and is not reduced. Reports each list with a command.
///
/// # Errors
/// If no worker can be started.
pub fn reduce_forms(
    plan: &LitmusPlan,
    lines: &[RunLine],
    seed: u64,
    on_message: MessageSink<'_>,
) -> Result<Vec<ReducedForm>, Failure> {
    let deadline = Instant::now() + REDUCTION_TIME;
    let mut reduced: Vec<ReducedForm> = Vec::new();
    // Lists of transformations, with the test and the device of each.
    let mut known: Vec<(_, Vec<&str>)> = Vec::new();
    let mut skipped_count = 0;
    let violations = lines
        .iter()
        .rev()
        .filter(|line| line.verdict == VerdictWord::Violates)
        .map(|line| ((line.id.as_str(), line.device.as_str()), line))
        .collect::<HashMap<_, _>>();
    for cell in &plan.device_tests {
        let (item, target) = (&plan.tests[cell.test_index], &plan.targets[cell.target_index]);
        let source = &item.loaded.source;
        let plain = with_form(item.variant, None);
        let origin = (source.origin.clone(), plain, cell.target_index);
        let violation = violations.get(&(source.id.as_str(), target.name.as_str()));
        let (Some(line), Some(form), Some(prediction)) =
            (violation, item.variant.shader.form, cell.known_prediction())
        else {
            continue;
        };
        if known.iter().any(|(of, names)| *of == origin && contains_names(&form.names(), names)) {
            continue;
        }
        if Instant::now() >= deadline {
            skipped_count += 1;
            continue;
        }
        let time = Duration::try_from_secs_f64(2.0 * line.seconds).unwrap_or(MAX_TRY_TIME);
        let mut violates = |steps: &[u32]| -> Result<bool, Failure> {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            let variant = with_form(plain, (!steps.is_empty()).then(|| form.with_steps(steps)));
            let subject = MeasuredTest {
                id: source.id.clone(),
                text: item.loaded.text.clone(),
                variant: variant.to_string(),
                test: item.judged_test().clone(),
                prediction: prediction.clone(),
            };
            let time = time.clamp(MIN_TRY_TIME, MAX_TRY_TIME);
            let trial = Measurement { subject: &subject, stress: &target.stress, time, seed };
            let ended = run_trials(target, &[trial], 3 * MAX_TRY_TIME)?;
            Ok(ended.iter().flatten().any(|observed| subject.count_outcomes(observed).forbidden > 0))
        };
        let mut steps = form.steps();
        let found = if violates(&[])? {
            known.push((origin, Vec::new()));
            "the violation needs no transformation: the test without a form shows it too".to_owned()
        } else if violates(&steps)? {
            ddmin(&mut steps, &mut violates)?;
            let least = form.with_steps(&steps);
            let again = source.clone().with_variant_replaced(&with_form(plain, Some(least)).to_string());
            let replay = line.replay.replace(&source.argument, &again.argument);
            let (names, count) = (least.names(), form.steps().len());
            let message = format!(
                "the violation needs {} of {count} transformations: {}\nagain: {replay}",
                steps.len(),
                names.join(", ")
            );
            let transformations = NeededTransformations {
                id: again.id,
                names: names.iter().map(|name| (*name).to_owned()).collect(),
                replay,
            };
            known.push((origin, names));
            let (id, device) = (source.id.clone(), target.name.clone());
            reduced.push(ReducedForm { id, device, transformations });
            message
        } else {
            "the violation did not show again in the time of its reduction".to_owned()
        };
        on_message(&format!("{} on {}: {found}", source.id, target.name));
    }
    if skipped_count > 0 {
        let seconds = REDUCTION_TIME.as_secs();
        on_message(&format!("{skipped_count} more forms violate: the time to reduce forms is {seconds} s"));
    }
    Ok(reduced)
}

/// Returns true if a list has each name of another as often as that.
fn contains_names(all: &[&str], some: &[&str]) -> bool {
    let count = |names: &[&str], name| names.iter().filter(|other| **other == name).count();
    some.iter().all(|name| count(some, *name) <= count(all, *name))
}
